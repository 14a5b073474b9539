"""The wheel alone, in a fresh environment outside the checkout, does the demo's whole job."""

import contextlib
import csv
import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_editable, build_wheel

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    with contextlib.chdir(ROOT):
        return folder / build_wheel(str(folder))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and somebody else's `app` and `backend`; dependencies are borrowed from this one."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--disable-pip-version-check",
        str(wheel),
    ]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    # As a line of a .pth file the folder comes after the environment's own packages, and .pth files in it (that of an
    # editable Burnish) do not count.
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    make_packages(site)
    return folder


def make_packages(folder: Path) -> None:
    """Packages `app` and `backend` of somebody else."""
    for name in ("app", "backend"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("OWNER = 'somebody else'\n", encoding="utf-8")


@pytest.fixture
def working_folder(tmp_path: Path) -> Path:
    """A project in which a person might start Burnish; folders named `app` and `backend` are common there."""
    folder = tmp_path / "project"
    folder.mkdir()
    make_packages(folder)
    return folder


def run(environment: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of the fresh environment, with runs and caches of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    own = {"BURNISH_RUNS": str(folder.parent / "runs"), "BURNISH_CACHE": str(folder.parent / "cache")}
    program = [str(environment / "bin" / command[0]), *command[1:]]
    return subprocess.run(program, cwd=folder, env={**kept, **own}, capture_output=True, text=True, check=False)


def installed(environment: Path) -> Path:
    """The folder of our one package."""
    (folder,) = environment.glob("lib/python*/site-packages/burnish")
    return folder


def test_wheel_carries_packages_resources_and_licence(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in (
        "burnish/__main__.py",
        "burnish/app/__init__.py",
        "burnish/backend/__main__.py",
        "burnish/resources/demo/sentiment.yaml",
        "burnish/resources/demo/bert-tiny/model.safetensors",
        "burnish/resources/demo/sentiment/train.csv",
        "burnish/resources/demo/SOURCES.md",
        "burnish/resources/theme/burnish.qss",
        "burnish/resources/languages/de/LC_MESSAGES/burnish.mo",
    ):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)


def test_wheel_is_one_package_with_every_module_and_nothing_else(wheel: Path):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == {"burnish"}
    parts = {path.split("/")[1] for path in names}
    assert parts == {"__init__.py", "__main__.py", "app", "backend", "resources"}
    modules = {path.relative_to(ROOT).as_posix() for part in ("app", "backend") for path in (ROOT / part).rglob("*.py")}
    assert {f"burnish/{module}" for module in modules} <= names
    assert [name for name in names if "__pycache__" in name] == []


def test_an_editable_installation_copies_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build_editable(str(tmp_path))) as editable:
        (path_file,) = (name for name in editable.namelist() if ".dist-info/" not in name)
        assert editable.read(path_file).decode() == str(ROOT)


def test_an_installed_burnish_is_not_on_the_path_of_other_programs(environment: Path, tmp_path: Path):
    code = "import app, backend, burnish; print(app.OWNER, backend.OWNER, sep=', ')"
    done = run(environment, tmp_path, "python", "-c", code)
    assert done.stdout == "somebody else, somebody else\n", done.stderr


def test_the_command_works_beside_packages_of_the_same_names(environment: Path, working_folder: Path):
    done = run(environment, working_folder, "burnish", "describe", "--json", "--no-devices")
    assert done.returncode == 0, done.stderr
    catalog = json.loads(done.stdout)
    assert "text_classification" in {task["name"] for task in catalog["tasks"]}
    assert catalog["problems"] == []


def test_python_runs_the_package_beside_packages_of_the_same_names(environment: Path, working_folder: Path):
    done = run(environment, working_folder, "python", "-m", "burnish", "runs")
    assert done.returncode == 0, done.stderr


def test_the_window_opens_beside_packages_of_the_same_names(environment: Path, working_folder: Path):
    """As a child, like every process of ours."""
    code = (
        f"import subprocess, sys; sys.path.insert(0, {str(installed(environment))!r})\n"
        "from backend.contract.processes import python_command\n"
        "sys.exit(subprocess.call(python_command('app', '--report-first-paint')))"
    )
    done = run(environment, working_folder, "python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["first_paint_seconds"] > 0


def test_the_wheel_speaks_german(environment: Path, tmp_path: Path):
    path = f"import sys; sys.path.insert(0, {str(installed(environment))!r}); "
    code = "from app.core import i18n; i18n.choose('de'); print(i18n.tr('Training data'))"
    done = run(environment, tmp_path, "python", "-c", path + code)
    assert done.stdout == "Trainingsdaten\n", done.stderr


@pytest.mark.slow
def test_demo_ends_with_a_predictions_file(environment: Path, working_folder: Path):
    """Supervisor, engine and the processes that list devices, beside packages of the same names."""
    before = sorted(working_folder.rglob("*"))
    spec = installed(environment) / "resources" / "demo" / "sentiment.yaml"
    # One epoch is enough here; the whole demo has its own test. One thread, as other tests run beside.
    shortened = re.sub(r"epochs: \d+", "epochs: 1", spec.read_text(encoding="utf-8"))
    shortened = shortened.replace("device: auto}", "device: auto, threads: 1}")
    assert "epochs: 1," in shortened
    assert "threads: 1" in shortened
    spec.write_text(shortened, encoding="utf-8")

    done = run(environment, working_folder, "burnish", "demo", "--headless")

    assert done.returncode == 0, done.stderr
    predictions = Path(done.stdout.splitlines()[-1])
    assert predictions.is_absolute()
    assert predictions.is_relative_to(working_folder.parent / "runs")
    with predictions.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 600
    assert list(rows[0])[:5] == ["text", "label", "source", "prediction", "actual"]
    right = sum(row["prediction"] == row["actual"] for row in rows)
    assert right > 420, "an epoch beats the trivial half by far"
    assert sorted(working_folder.rglob("*")) == before, "nothing is left where Burnish was started"
