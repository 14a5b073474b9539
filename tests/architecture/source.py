"""Parses a source file for the architecture tests."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Module:
    """One source file."""

    path: str
    """Relative to the repository, with slashes."""
    text: str
    tree: ast.Module

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Everything of this very kind in the whole file."""
        return self._nodes[kind]

    @cached_property
    def _nodes(self) -> defaultdict[type, list]:
        found = defaultdict(list)
        for node in ast.walk(self.tree):  # once: many rules look at every file
            found[type(node)].append(node)
        return found

    def imports(self) -> Iterator[tuple[int, str]]:
        """(line, dotted name) of everything it imports, also inside functions; `from a import b` is `a.b`."""
        for node in self.nodes(ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        for node in self.nodes(ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)

    def at(self, line: int) -> str:
        """How a finding names its place."""
        return f"{self.path}:{line}"
