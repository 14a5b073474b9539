"""What must answer at once loads nothing slow; told by the modules that were loaded, not by a clock."""

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = ["torch", "jax", "flax", "transformers", "datasets", "accelerate", "sklearn", "scipy", "pandas", "PySide6"]


def loaded(root: Path, code: str, *others: str) -> set[str]:
    """Which slow packages, or others of these, a fresh process has loaded after `code`."""
    report = f"\nimport sys; print(*sorted(set({[*SLOW, *others]!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code + report], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_static_catalog_loads_no_framework(root: Path):
    code = "import msgspec; from backend.catalog import catalog; assert len(msgspec.json.encode(catalog())) > 1000"
    assert loaded(root, code) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["describe", "--help"]])
def test_command_line_loads_no_framework_to_explain_itself(root: Path, arguments: list[str]):
    code = f"from backend.__main__ import main\ntry: main({arguments!r})\nexcept SystemExit as end: assert not end.code"
    assert loaded(root, code) == set()


def test_helper_hands_questions_out_without_what_answers_them(root: Path):
    assert loaded(root, "import backend.helper.server", "numpy", "pyarrow", "huggingface_hub", "tokenizers") == set()


def test_loop_is_imported_without_a_framework(root: Path):
    assert not loaded(root, "import backend.training.loop, backend.inference.predict") & {
        "torch",
        "jax",
        "flax",
        "accelerate",
        "PySide6",
    }
