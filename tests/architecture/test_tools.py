"""What the tools of the house say: import contracts, format and lint."""

import subprocess
import sys
from pathlib import Path


def passes(root: Path, *command: str) -> None:
    """The tool of this environment ends well, or its output is the message."""
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run([str(program), *command[1:]], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_contracts_are_kept(root: Path):
    passes(root, "lint-imports", "--no-cache")


def test_code_is_laid_out(root: Path):
    passes(root, "ruff", "format", "--check", "--no-cache", ".")


def test_linter_finds_nothing(root: Path):
    passes(root, "ruff", "check", "--no-cache", ".")
