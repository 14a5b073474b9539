"""Owns a source file as the rules of the house see it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """One source file."""

    path: str
    """Relative to the repository, with slashes."""
    text: str
    tree: ast.Module

    def imports(self) -> Iterator[tuple[int, str]]:
        """(line, dotted name) of everything it imports, also inside functions; `from a import b` is `a.b`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)

    def at(self, line: int) -> str:
        """How a finding names its place."""
        return f"{self.path}:{line}"
