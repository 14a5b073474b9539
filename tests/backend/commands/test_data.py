"""Tests `burnish data report`, `prepare` and `import` from the command line, and the same question asked by the window."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.contract.resources import resource
from backend.contract.spec import DataSection
from backend.data.prefixed_tables import write_tables
from backend.data.sources.files import Files, Settings
from backend.data.sources.source import ReadOptions

VERSES = Path(__file__).parents[2] / "data" / "parallel"

TRAIN, VALIDATION = (resource("demo", "sentiment", f"{split}.csv") for split in ("train", "validation"))
NER = Path(__file__).parents[2] / "data" / "ner"


def test_report_on_a_file_compares_it_with_validation_data(burnish) -> None:
    done = burnish(
        "data", "report", TRAIN, "--validation", VALIDATION, "--task", "text_classification",
        "--tokenizer", resource("demo", "bert-tiny"), "--json",
    )  # fmt: skip

    found = json.loads(done.stdout)
    train, validation = found["splits"]["train"], found["splits"]["validation"]
    assert (train["rows"], validation["rows"]) == (2400, 600)
    assert validation["in_train"] == 7
    assert train["columns"]["text"]["tokens"]["mean"] > train["columns"]["text"]["words"]["mean"]
    assert [one["label"] for one in train["columns"]["label"]["labels"]] == ["negative", "positive"]


def test_report_on_a_folder_measures_each_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in {"train": "a,1\n", "dev": "b,2\nc,1\n", "test": "d,1\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"text,label\n{rows}", encoding="utf-8")

    assert main(["data", "report", str(tmp_path)]) == 0

    told = capsys.readouterr().out
    assert "train: 1 row (train.csv)" in told
    assert "validation: 2 rows (dev.csv)" in told
    assert "test: 1 row (test.csv)" in told


def test_report_on_a_spec_says_it_in_words(burnish, spec: Path) -> None:
    done = burnish("data", "report", spec)

    assert done.returncode == 0, done.stderr
    assert "train: 2,400 rows (train.csv)" in done.stdout
    assert "label: negative 1,202 (50.1%), positive 1,198 (49.9%)" in done.stdout


def test_fraction_is_taken_off_as_a_run_does(burnish, spec: Path) -> None:
    done = burnish("data", "report", spec, "--set", "data.validation=0.25", "--json")

    splits = json.loads(done.stdout)["splits"]
    assert (splits["train"]["rows"], splits["validation"]["rows"]) == (1800, 600)
    assert splits["validation"]["in_train"] > 0


def test_other_sources_are_named(burnish) -> None:
    done = burnish(
        "data", "report", NER / "train.conll", "--source", "conll", "--task", "token_classification", "--json"
    )

    columns = json.loads(done.stdout)["splits"]["train"]["columns"]
    assert columns["tokens"]["part"] == "tokens"
    assert columns["tags"]["labels"][0]["label"] == "O"


def test_tags_of_few_sentences_are_labels_in_text_too(burnish, tmp_path: Path) -> None:
    path = tmp_path / "slots.tsv"
    path.write_text("Sentence\tSlot\nJohn smiles\tB-PER O\nMary\tB-PER\n", encoding="utf-8")

    done = burnish("data", "report", path, "--task", "token_classification", "--json")

    slot = json.loads(done.stdout)["splits"]["train"]["columns"]["Slot"]
    assert {one["label"]: one["count"] for one in slot["labels"]} == {"B-PER": 2, "O": 1}


def test_missing_file_is_one_sentence(burnish) -> None:
    done = burnish("data", "report", "nothing.csv")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "nothing.csv" in done.stderr


@pytest.mark.slow
def test_training_finds_what_was_prepared(burnish, spec: Path, tmp_path: Path) -> None:
    prepared = burnish("data", "prepare", spec, BURNISH_CACHE=str(tmp_path / "cache"))
    trained = burnish(
        "train", spec, "--set", "training.max_steps=1", "--set", "evaluation.max_rows=8", BURNISH_CACHE=str(tmp_path / "cache")
    )  # fmt: skip

    assert prepared.returncode == trained.returncode == 0, trained.stderr
    assert "train       2,400 rows, 2,400 features" in prepared.stdout
    assert "train: 2400 features, cached" in trained.stderr


def test_file_that_cannot_be_read_is_recognised_with_exit_code_2(tmp_path: Path, capsys):
    (tmp_path / "rows.csv").write_bytes(b"text\na\0b\n")
    assert main(["data", "recognise", str(tmp_path / "rows.csv")]) == 2
    said = capsys.readouterr()
    assert "NUL" in said.err.splitlines()[-1]
    assert "NUL" not in said.out
    assert main(["data", "recognise", str(tmp_path / "rows.csv"), "--json"]) == 2
    assert "NUL" in json.loads(capsys.readouterr().out)["unreadable"][0]


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


def test_rows_of_an_import_are_counted_without_a_promised_total(pair: Path, tmp_path: Path) -> None:
    reported = []
    write_tables(pair, tmp_path, ("english", "spanish"), lambda *report: reported.append(report))
    assert [done for done, _, _ in reported] == [120, 40]
    assert {(total, unit) for _, total, unit in reported} == {(0, "rows")}


def test_every_pair_gives_two_rows(burnish, pair: Path, tmp_path: Path) -> None:
    done = burnish("data", "import", "tatoeba", pair, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path / "out" / "train.tsv")) == 2 * 60 + 2
    assert len(lines(tmp_path / "out" / "eval.tsv")) == 2 * 20 + 2


def test_tables_that_are_there_stay_as_they_are(burnish, pair: Path) -> None:
    (pair / "train.tsv").write_text("mine")
    done = burnish("data", "import", "tatoeba", pair)
    assert (pair / "train.tsv").read_text() == "mine"
    assert "it already exists" in done.stdout
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
    rows = Files(Settings()).read("train", DataSection(train=str(pair / "train.tsv")), ReadOptions(tmp_path / "cache"))
    assert rows is not None
    assert rows.table.column_names == ["", "prefix", "input_text", "target_text"]
    assert rows.table["input_text"].to_pylist()[1::2] == ['He said "go" to me', '"quoted"\ttabbed', "NA"]
    assert rows.table["target_text"].to_pylist()[1::2] == ["සිංහල, භාෂාව", "uno", ""]


def test_real_verses_are_read_again_by_files(burnish, pair: Path, tmp_path: Path) -> None:
    assert burnish("data", "import", "tatoeba", pair).returncode == 0
    rows = Files(Settings()).read("train", DataSection(train=str(pair / "train.tsv")), ReadOptions(tmp_path / "cache"))
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
