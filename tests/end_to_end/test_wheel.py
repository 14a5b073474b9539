"""The wheel alone, in a fresh environment outside the checkout, does the demo's whole job."""

import csv
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("burnish-*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it; what the wheel depends on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    # As a line of a .pth file the folder comes after the environment's own packages, and .pth files in it (that of an
    # editable Burnish) do not count.
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.fixture
def empty_folder(tmp_path: Path) -> Path:
    """Somewhere that is no checkout, where a person might start Burnish."""
    folder = tmp_path / "somewhere"
    folder.mkdir()
    return folder


def run(environment: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of the fresh environment, with runs and caches of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    own = {"BURNISH_RUNS": str(folder.parent / "runs"), "BURNISH_CACHE": str(folder.parent / "cache")}
    program = [str(environment / "bin" / command[0]), *command[1:]]
    return subprocess.run(program, cwd=folder, env={**kept, **own}, capture_output=True, text=True, check=False)


def test_wheel_carries_packages_resources_and_licence(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in (
        "app/__init__.py",
        "backend/__main__.py",
        "burnish_resources/demo/sentiment.yaml",
        "burnish_resources/demo/bert-tiny/model.safetensors",
        "burnish_resources/demo/sentiment/train.csv",
        "burnish_resources/demo/SOURCES.md",
        "burnish_resources/theme/burnish.qss",
        "burnish_resources/languages/de/LC_MESSAGES/burnish.mo",
    ):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)


def test_wheel_carries_every_module_and_nothing_else(wheel: Path):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == {"app", "backend", "burnish_resources"}
    modules = {path.relative_to(ROOT).as_posix() for part in ("app", "backend") for path in (ROOT / part).rglob("*.py")}
    assert modules <= names
    assert [name for name in names if "__pycache__" in name] == []


def test_burnish_comes_from_the_wheel(environment: Path, empty_folder: Path):
    code = "import app, backend; from backend.contract.resources import resource; print(backend.__file__, resource())"
    done = run(environment, empty_folder, "python", "-c", code)
    for path in done.stdout.split():
        assert Path(path).is_relative_to(environment), done.stdout + done.stderr


def test_the_wheel_speaks_german(environment: Path, empty_folder: Path):
    code = "from app.core import i18n; i18n.choose('de'); print(i18n.tr('Training data'))"
    done = run(environment, empty_folder, "python", "-c", code)
    assert done.stdout == "Trainingsdaten\n", done.stderr


@pytest.mark.slow
def test_demo_ends_with_a_predictions_file(environment: Path, empty_folder: Path):
    (spec,) = environment.glob("lib/python*/site-packages/burnish_resources/demo/sentiment.yaml")
    # One epoch is enough here; the whole demo has its own test. One thread, as other tests run beside.
    shortened = re.sub(r"epochs: \d+", "epochs: 1", spec.read_text(encoding="utf-8"))
    shortened = shortened.replace("device: auto}", "device: auto, threads: 1}")
    assert "epochs: 1," in shortened
    assert "threads: 1" in shortened
    spec.write_text(shortened, encoding="utf-8")

    done = run(environment, empty_folder, "burnish", "demo", "--headless")

    assert done.returncode == 0, done.stderr
    predictions = Path(done.stdout.splitlines()[-1])
    assert predictions.is_absolute()
    assert predictions.is_relative_to(empty_folder.parent / "runs")
    with predictions.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 600
    assert list(rows[0])[:5] == ["text", "label", "source", "prediction", "actual"]
    right = sum(row["prediction"] == row["actual"] for row in rows)
    assert right > 420, "an epoch beats the trivial half by far"
    assert list(empty_folder.iterdir()) == [], "nothing is left where Burnish was started"


def test_demo_works_beside_folders_with_the_packages_names(environment: Path, empty_folder: Path):
    """Folders named `app` and `backend` are common in people's working folders."""
    for name in ("app", "backend"):
        (empty_folder / name).mkdir()
        (empty_folder / name / "__init__.py").write_text("raise RuntimeError('the wrong package')")
    done = run(environment, empty_folder, "burnish", "describe", "--json")
    assert done.returncode == 0, done.stderr
