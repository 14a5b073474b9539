"""`burnish data import tatoeba`: the two tables of the mT5 example, written once, and read again by `files`."""

import shutil
import tarfile
from pathlib import Path

import pytest

from backend.contract.spec import DataSection
from backend.data.sources.files import Files, Settings
from backend.data.sources.source import Reading

VERSES = Path(__file__).parents[2] / "data" / "parallel"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return Path(shutil.copytree(VERSES, tmp_path / "eng-spa"))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")


def test_both_directions_alternate_under_the_references_header(burnish, pair: Path) -> None:
    done = burnish("data", "import", "tatoeba", pair)
    assert done.returncode == 0, done.stderr
    table = lines(pair / "train.tsv")
    assert table[0] == "\tprefix\tinput_text\ttarget_text"
    english = "In the beginning God created the heaven and the earth."
    spanish = "EN el principio crió Dios los cielos y la tierra."
    assert table[1] == f"0\ttranslate spanish to english\t{spanish}\t{english}"
    assert table[2] == f"1\ttranslate english to spanish\t{english}\t{spanish}"


def test_every_pair_gives_two_rows(burnish, pair: Path, tmp_path: Path) -> None:
    done = burnish("data", "import", "tatoeba", pair, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path / "out" / "train.tsv")) == 2 * 60 + 2
    assert len(lines(tmp_path / "out" / "eval.tsv")) == 2 * 20 + 2


def test_tables_that_are_there_stay_as_they_are(burnish, pair: Path) -> None:
    (pair / "train.tsv").write_text("mine")
    done = burnish("data", "import", "tatoeba", pair)
    assert (pair / "train.tsv").read_text() == "mine"
    assert "it is there already" in done.stdout
    assert len(lines(pair / "eval.tsv")) == 42


def test_an_archive_is_imported_beside_itself(burnish, pair: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "eng-spa.tar", "w") as tar:
        tar.add(pair, "data/eng-spa")
    assert burnish("data", "import", "tatoeba", tmp_path / "eng-spa.tar").returncode == 0
    assert len(lines(tmp_path / "train.tsv")) == 122


def test_the_table_is_read_by_files_cell_by_cell(burnish, pair: Path, tmp_path: Path) -> None:
    (pair / "train.src").write_text('He said "go" to me\n"quoted"\ttabbed\nNA\n', encoding="utf-8")
    (pair / "train.trg").write_text("සිංහල, භාෂාව\nuno\n\n", encoding="utf-8")
    assert burnish("data", "import", "tatoeba", pair, "--languages", "english,sinhala").returncode == 0
    rows = Files(Settings()).read("train", DataSection(train=str(pair / "train.tsv")), Reading(tmp_path / "cache"))
    assert rows is not None
    assert rows.table.column_names == ["", "prefix", "input_text", "target_text"]
    assert rows.table["input_text"].to_pylist()[1::2] == ['He said "go" to me', '"quoted"\ttabbed', "NA"]
    assert rows.table["target_text"].to_pylist()[1::2] == ["සිංහල, භාෂාව", "uno", ""]


def test_real_verses_are_read_again_by_files(burnish, pair: Path, tmp_path: Path) -> None:
    assert burnish("data", "import", "tatoeba", pair).returncode == 0
    rows = Files(Settings()).read("train", DataSection(train=str(pair / "train.tsv")), Reading(tmp_path / "cache"))
    assert rows is not None
    assert rows.table["input_text"].to_pylist()[1::2] == (VERSES / "train.src").read_text("utf-8").splitlines()


def test_unknown_languages_are_asked_for(burnish, pair: Path) -> None:
    done = burnish("data", "import", "tatoeba", pair.rename(pair.with_name("mine")))
    assert done.returncode == 2
    assert "for example english,sinhala" in done.stderr


def test_unequal_files_leave_no_table(burnish, pair: Path) -> None:
    (pair / "test.trg").write_text("uno\n")
    done = burnish("data", "import", "tatoeba", pair)
    assert done.returncode == 2
    assert "test.src has 20 lines and test.trg has 1" in done.stderr
    assert sorted(pair.glob("*eval*")) == []
