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


def test_plan_and_the_check_of_a_run_load_the_hub_library_for_hub_models_alone(root: Path):
    code = "import backend.preflight.cost, backend.preflight.checks, backend.commands.plan"
    assert loaded(root, code, "huggingface_hub", "httpx") == set()


@pytest.mark.parametrize(("source", "expected"), [("demo", set()), ("hub", {"pandas"})])
def test_pyarrow_loads_pandas_only_for_the_source_that_uses_it(root: Path, source: str, expected: set[str]):
    code = f"from backend.preflight.pandas_left_out import leave_pandas_out\nleave_pandas_out({source!r})"
    assert loaded(root, f"{code}\nimport pyarrow\nassert pyarrow.array(['a', None]).null_count == 1") == expected


def test_opening_a_model_of_a_usual_type_and_its_tokenizer_loads_no_framework(root: Path, tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "bert", "dtype": "float16"}')
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]))
    code = (
        "from pathlib import Path; from backend.models.remote_code import check_config\n"
        "from backend.tokenizers.loading import open_tokenizer\n"
        f"check_config(Path({str(tmp_path)!r}), wanted=False)\n"
        f"assert open_tokenizer({str(tmp_path)!r})('a')['input_ids'] == [2, 5, 3]"
    )
    assert loaded(root, code) - {"pandas"} == {"transformers"}


def test_loop_is_imported_without_a_framework(root: Path):
    assert not loaded(root, "import backend.training.loop, backend.inference.predict") & {
        "torch",
        "jax",
        "flax",
        "accelerate",
        "PySide6",
    }
