"""What is written about Burnish is true of it, as far as a test can tell."""

import re
import tomllib
from pathlib import Path

import pytest

from backend.__main__ import COMMANDS
from backend.contract import spec_file
from backend.contract.spec import run_spec
from docs import settings_page

DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/jax.md"]
PICTURES = "docs/screenshots/"


def test_page_of_settings_is_what_the_program_declares(root: Path):
    assert (root / "docs" / "settings.md").read_text(encoding="utf-8") == settings_page.page(), "run: make docs"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(root: Path, document: str):
    links = re.findall(r"\]\(([^)#]+)\)", (root / document).read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith(("http", PICTURES))]
    assert [link for link in local if not (root / link).exists()] == []


def test_readme_names_every_command(root: Path):
    text = (root / "README.md").read_text(encoding="utf-8")
    commands = [command.name for command in COMMANDS if not command.name.startswith("_")]
    assert [name for name in commands if name not in text] == []


def test_specs_in_the_readme_are_valid(root: Path, tmp_path: Path):
    blocks = re.findall(r"```yaml\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    for number, block in enumerate(blocks):
        path = tmp_path / f"{spec_file.parse(block).get('name', number)}.yaml"  # so that later ones can include it
        path.write_text(block, encoding="utf-8")
        run_spec(spec_file.read(path))


def test_make_targets_in_the_documents_exist(root: Path):
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"`make ([a-z]+)", (root / document).read_text(encoding="utf-8")))
        assert named <= targets


def test_libraries_are_each_given_a_reason(root: Path):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=\[]", line)[0].lower() for line in project["dependencies"]}
    names |= {"accelerate", "pyqtgraph", "hatchling", "import-linter", "ruff", "basedpyright", "pytest-qt"}
    table = (root / "ARCHITECTURE.md").read_text(encoding="utf-8").lower()
    assert [name for name in sorted(names - {"numpy"}) if f"| {name}" not in table] == []


def test_carried_material_is_named_in_the_notice(root: Path):
    notice = (root / "NOTICE").read_text(encoding="utf-8")
    carried = [path for path in (root / "resources" / "demo").iterdir() if path.is_dir()]
    assert len(carried) >= 2
    assert [path.name for path in carried if f"resources/demo/{path.name}" not in notice] == []


def test_licence_is_whole(root: Path):
    text = (root / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
