"""The program `burnish`, also `python -m burnish`: it puts `app` and `backend` on the path of its own process alone."""

import sys
from pathlib import Path

_INSTALLED = Path(__file__).resolve().parent
_ROOT = _INSTALLED if (_INSTALLED / "backend").is_dir() else _INSTALLED.parent
"""The folder that holds our packages: this one in a wheel, the one above in a checkout."""


def main() -> int:
    """Run one command; its exit code."""
    sys.path.insert(0, str(_ROOT))
    from backend.__main__ import main as run_command  # found only now, ahead of any other package of that name

    return run_command()


if __name__ == "__main__":
    sys.exit(main())
