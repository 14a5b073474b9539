"""A process of ours finds our packages, whatever else bears their names, and passes nothing of ours on."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from backend.contract.processes import python_command

SHOW = """
import json, os, sys
import app, backend
print(json.dumps([app.__path__[0], backend.__path__[0], os.environ["PYTHONPATH"], sys.argv[1:], __name__]))
"""


@pytest.fixture
def other_packages(tmp_path: Path) -> Path:
    """A folder with packages `app` and `backend` of somebody else."""
    for name in ("app", "backend"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the wrong package')\n")
    return tmp_path


def test_a_child_finds_our_packages_ahead_of_all_others(other_packages: Path):
    (other_packages / "shown.py").write_text(SHOW)
    environment = {**os.environ, "PYTHONPATH": str(other_packages)}
    command = python_command("shown", "--a", "b c")
    done = subprocess.run(command, cwd=other_packages, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    root = Path(__file__).parents[2]
    assert json.loads(done.stdout) == [
        str(root / "app"), str(root / "backend"), str(other_packages), ["--a", "b c"], "__main__"
    ]  # fmt: skip
