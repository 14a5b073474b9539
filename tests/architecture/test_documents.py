"""What is written about Burnish is true of it, as far as a test can tell."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from backend.__main__ import COMMANDS, Parser
from backend.contract import spec_file
from backend.contract.spec import run_spec, validate
from backend.contract.spec.search import SEARCH, SearchSection
from docs import settings_page
from tests.architecture.source import Module

ROOT = Path(__file__).parents[2]
GUIDE = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "guide").glob("*.md"))
PAGES = ["README.md", *GUIDE, "docs/jax.md", "docs/memory.md", "docs/results.md", "docs/settings.md", "docs/speed.md"]
"""What people read who use Burnish."""
DOCUMENTS = [*PAGES, "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
FENCED = r"^```(\w*)\n(.*?)^```"
LINK = r"\]\(([^)\s]+)\)"
LONGEST_README = 150
"""Lines; what is more belongs into the guide."""


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def blocks(document: str, *kinds: str) -> list[str]:
    found = re.findall(FENCED, text_of(document), re.DOTALL | re.MULTILINE)
    return [block for kind, block in found if kind in kinds]


def prose(document: str) -> str:
    return re.sub(FENCED, "", text_of(document), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_page_of_settings_is_what_the_program_declares():
    assert text_of("docs/settings.md") == settings_page.page(), "run: make docs"


def test_readme_is_short():
    assert len(text_of("README.md").splitlines()) <= LONGEST_README


def test_guide_has_a_page_for_each_subject():
    subjects = "another-machine choosing-a-model command-line first-run other-schedulers predictions ray reading-a-run search several-devices slurm tokenizer your-data"
    assert [Path(page).stem for page in GUIDE] == subjects.split()
    assert [page for page in GUIDE if f"]({page})" not in text_of("README.md")] == []


# Links and pictures


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str):
    lost = []
    for link in re.findall(LINK, prose(document)):
        path, _, anchor = link.partition("#")
        target = (ROOT / document).parent / path if path else ROOT / document
        if not link.startswith("http") and (not target.exists() or (anchor and anchor not in anchors(target))):
            lost.append(link)
    assert lost == []


def test_every_picture_is_shown():
    shown = {Path(link).name for page in PAGES for link in re.findall(LINK, text_of(page)) if link.endswith(".png")}
    assert {path.name for path in (ROOT / "docs" / "screenshots").iterdir()} == shown


@pytest.mark.parametrize("page", GUIDE)
def test_every_step_of_the_guide_has_a_picture(page: str):
    sections = re.split(r"^## ", text_of(page), flags=re.MULTILINE)[1:]
    steps = [section for section in sections if re.match(r"\d+\. ", section)]
    assert [step.splitlines()[0] for step in steps if "](../screenshots/" not in step] == []


# Names and commands


@pytest.mark.parametrize("page", GUIDE)
def test_names_in_bold_stand_in_the_window(page: str, modules: list[Module]):
    """Bold is kept for what a person reads in the window."""
    names = {" ".join(name.split()) for name in re.findall(r"\*\*(.+?)\*\*", prose(page), re.DOTALL)}
    texts = "\n".join(module.text for module in modules if module.path.startswith("app/"))
    assert sorted(name for name in names if f'"{name}"' not in texts) == []


def test_guide_names_every_command():
    text = text_of("docs/guide/command-line.md")
    assert [command.name for command in COMMANDS if command.help and command.name not in text] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_documents_are_understood(page: str, capsys: pytest.CaptureFixture[str]):
    lines = [line for block in blocks(page, "", "sh") for line in block.replace("\\\n", " ").splitlines()]
    whole = [re.sub(r"^([A-Z_]+=\S+ )+", "", line) for line in lines]
    for command in [line for line in whole if re.match(r"burnish\b", line)]:
        answer(shlex.split(command, comments=True), capsys)


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_have_these_names_and_options(page: str, capsys: pytest.CaptureFixture[str]):
    """In a sentence what a command must be given may be left out."""
    for command in re.findall(r"`(?:\.venv/bin/)?(burnish(?: [^`]+)?)`", prose(page)):
        words = shlex.split(command)
        known = answer([*words, "--help"], capsys)
        assert [word for word in words if word.startswith("--") and word not in known] == [], command


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the parser prints; it must understand the words."""
    commands = {command.name: command for command in COMMANDS if command.help}
    if words[1:] in ([], ["--help"]):
        return ""
    assert words[1] in commands, shlex.join(words)
    parser = Parser(prog="burnish", allow_abbrev=False)
    commands[words[1]].add_arguments(parser)
    code = None
    try:
        parser.parse_args(words[2:])
    except SystemExit as end:
        code = end.code
    printed = capsys.readouterr()
    assert not code, f"{shlex.join(words)}: {printed.err}"
    return printed.out


def test_specs_in_the_documents_are_valid(tmp_path: Path):
    found = [block for page in ("README.md", *GUIDE) for block in blocks(page, "yaml")]
    assert len(found) >= 6
    for number, block in enumerate(found):
        path = tmp_path / f"{spec_file.parse(block).get('name', number)}.yaml"  # so that later ones can include it
        path.write_text(block, encoding="utf-8")
        values = spec_file.read(path)
        if SEARCH in values:
            validate(SearchSection, values.pop(SEARCH), SEARCH)
        run_spec(values)


def test_make_targets_in_the_documents_exist(root: Path):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in DOCUMENTS:
        assert set(re.findall(r"`make ([a-z-]+)", text_of(document))) <= targets


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_named_files_exist(document: str, root: Path):
    found = re.findall(
        r"`((?:app|backend|burnish|contract|docs|engines|packaging|resources|tests)/[^`<\s]*)`", prose(document)
    )
    places = (root, root / "backend")
    assert [path for path in found if not any((place / path).exists() for place in places)] == []


def test_every_package_is_in_the_architecture(root: Path):
    text = text_of("ARCHITECTURE.md")
    packages = [path for side in ("app", "backend") for path in (root / side).glob("[a-z]*/__init__.py")]
    assert [path.parent.name for path in packages if not re.search(rf"`(\w+/)?{path.parent.name}`", text)] == []


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
