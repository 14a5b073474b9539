"""GLUE folders: nine layouts, their awkward characters, and what is said of the folder of another task."""

import shutil
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.rows import Rows
from backend.data.sources.glue import Glue, Settings
from backend.data.sources.source import ReadOptions
from backend.preflight.datasets import choose_columns
from backend.tasks.text_classification import Settings as ClassificationSettings
from backend.tasks.text_classification import TextClassification
from backend.tasks.text_regression import Settings as RegressionSettings
from backend.tasks.text_regression import TextRegression

FOLDER = Path(__file__).parents[2] / "data" / "glue"
NAMES = {
    "cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "qqp": "QQP", "mnli": "MNLI", "qnli": "QNLI",
    "rte": "RTE", "wnli": "WNLI",
}  # fmt: skip
COLUMNS = {
    "cola": ("sentence", None, "label"),
    "sst2": ("sentence", None, "label"),
    "mrpc": ("#1 String", "#2 String", "Quality"),
    "stsb": ("sentence1", "sentence2", "score"),
    "qqp": ("question1", "question2", "is_duplicate"),
    "mnli": ("sentence1", "sentence2", "gold_label"),
    "qnli": ("question", "sentence", "label"),
    "rte": ("sentence1", "sentence2", "label"),
    "wnli": ("sentence1", "sentence2", "label"),
}


class Desk:
    """Reads splits of the miniature, or of a folder of the test's own."""

    def __init__(self, cache: Path) -> None:
        self.reading = ReadOptions(cache)

    def split(self, task: str, split: str = "train", folder: Path = FOLDER, **data: object) -> Rows | None:
        section = DataSection.model_validate({"source": "glue", **data})
        return self.source(task, folder).read(split, section, self.reading)

    def rows(self, task: str, split: str = "train", folder: Path = FOLDER, **data: object) -> Rows:
        rows = self.split(task, split, folder, **data)
        assert rows is not None
        return rows

    def file(self, task: str, path: Path) -> Rows:
        return self.source(task, FOLDER).read_file(path, DataSection(source="glue"), self.reading)

    def source(self, task: str, folder: Path) -> Glue:
        return Glue(Settings.model_validate({"folder": str(folder), "task": task}))

    def refusal(self, task: str, split: str = "train", folder: Path = FOLDER, **data: object) -> str:
        with pytest.raises(InputError) as caught:
            self.split(task, split, folder, **data)
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "cache")


def task_of(name: str) -> TextClassification | TextRegression:
    return TextRegression(RegressionSettings()) if name == "stsb" else TextClassification(ClassificationSettings())


def lines_of(path: Path) -> int:
    return len(path.read_bytes().rstrip(b"\r\n").split(b"\n"))


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_a_row_whatever_quotes_it_holds(desk: Desk, name: str):
    rows = desk.rows(name)
    header = 0 if name == "cola" else 1
    assert len(rows) + len(rows.skipped) + header == lines_of(FOLDER / NAMES[name] / "train.tsv")


def test_quotes_that_open_in_one_row_and_close_in_a_later_one_stay_text(desk: Desk):
    first = desk.rows("mrpc").table["#1 String"].to_pylist()
    assert first[1] == '"Tickets rose by 5 percent , the theatre said .'


def test_a_byte_order_mark_is_no_part_of_the_first_column(desk: Desk):
    assert (FOLDER / "MRPC" / "train.tsv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert desk.rows("mrpc").table.column_names[0] == "Quality"


@pytest.mark.parametrize(
    ("name", "column", "text"),
    [
        ("cola", "sentence", "None"),
        ("cola", "sentence", "NA"),
        ("rte", "sentence1", "null"),
        ("stsb", "sentence1", "NA"),
    ],
)
def test_none_and_na_and_null_stay_text(desk: Desk, name: str, column: str, text: str):
    assert text in desk.rows(name).table[column].to_pylist()


def test_line_ends_of_windows_are_no_part_of_a_label(desk: Desk):
    assert set(desk.rows("wnli").table["label"].to_pylist()) == {"0", "1"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_columns_are_found_without_being_named(desk: Desk, name: str, split: str):
    chosen = choose_columns(task_of(name), {}, desk.rows(name, split))
    assert (chosen["text"], chosen.get("text_pair"), chosen["label"]) == COLUMNS[name]


@pytest.mark.parametrize("name", NAMES)
def test_test_files_bear_the_same_texts_and_no_label(desk: Desk, name: str):
    text, pair, label = COLUMNS[name]
    there = desk.rows(name, "test", test="test").table.column_names
    assert text in there
    assert pair is None or pair in there
    assert label not in there


def test_the_first_row_of_a_file_without_header_is_a_row(desk: Desk):
    rows = desk.rows("cola")
    assert rows.table["sentence"][0].as_py() == "The baker closed the shop."
    assert rows.lines[0] == 1


def test_the_header_of_colas_test_file_is_no_row(desk: Desk):
    assert desk.rows("cola", "test", test="test").table["index"].to_pylist() == ["0", "1", "2"]


def test_a_cut_line_is_listed_with_its_place(desk: Desk):
    [skipped] = desk.rows("qqp").skipped
    assert (skipped.place, skipped.reason) == ("train.tsv:6", "4 cells, but the header has 6")


def test_both_validation_files_of_mnli_are_read_and_named(desk: Desk):
    rows = desk.rows("mnli", "validation")
    assert rows.files == ("dev_matched.tsv", "dev_mismatched.tsv")
    assert rows.metric_names == ("{metric}", "{metric}_mm")


def test_metrics_of_mnlis_files_are_named_in_whatever_order_they_come(desk: Desk):
    rows = desk.rows("mnli", "validation", validation=["dev_mismatched", "dev_matched"])
    assert rows.metric_names == ("{metric}_mm", "{metric}")


def test_one_validation_file_of_mnli_is_measured_under_plain_names(desk: Desk):
    assert desk.rows("mnli", "validation", validation="dev_matched.tsv").metric_names == ()


def test_other_tasks_have_plain_metric_names(desk: Desk):
    assert desk.rows("rte", "validation").metric_names == ()


def test_test_rows_are_read_only_if_they_are_asked_for(desk: Desk):
    assert desk.split("rte", "test") is None


@pytest.mark.parametrize("name", ["test", "test.tsv", str(FOLDER / "RTE" / "test.tsv")])
def test_a_file_is_named_by_its_word_its_name_or_its_path(desk: Desk, name: str):
    assert desk.rows("rte", "test", test=name).files == ("test.tsv",)


def test_a_fraction_leaves_validation_to_be_split_off(desk: Desk):
    assert desk.split("rte", "validation", validation=0.2) is None


def test_the_tasks_own_folder_serves_as_well_as_the_one_of_all_tasks(desk: Desk):
    assert desk.rows("rte", folder=FOLDER / "RTE").fingerprint == desk.rows("rte").fingerprint


def test_a_folder_to_predict_means_its_test_files(desk: Desk):
    assert desk.file("mnli", FOLDER / "MNLI").files == ("test_matched.tsv", "test_mismatched.tsv")


@pytest.mark.parametrize("name", ["train.tsv", "test.tsv"])
def test_one_more_file_may_have_labels_or_none(desk: Desk, name: str):
    assert len(desk.file("rte", FOLDER / "RTE" / name)) == lines_of(FOLDER / "RTE" / name) - 1


def test_the_diagnostic_set_is_read_for_mnli(desk: Desk):
    assert desk.file("mnli", FOLDER / "MNLI" / "diagnostic.tsv").table.column_names == [
        "index",
        "sentence1",
        "sentence2",
    ]


def test_a_table_that_is_no_tsv_is_read_as_any_other(desk: Desk, tmp_path: Path):
    (tmp_path / "own.csv").write_text('sentence1,sentence2\n"one, two",three\n', encoding="utf-8")
    assert desk.file("rte", tmp_path / "own.csv").table["sentence1"].to_pylist() == ["one, two"]


def test_a_tsv_of_ones_own_needs_the_tasks_texts_only(desk: Desk, tmp_path: Path):
    (tmp_path / "own.tsv").write_text("sentence1\tsentence2\nHere.\tThere.\n", encoding="utf-8")
    assert len(desk.file("rte", tmp_path / "own.tsv")) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_of_another_task_is_refused(desk: Desk, name: str):
    for other in NAMES.keys() - {name}:
        assert "data.task" in desk.refusal(name, folder=FOLDER / NAMES[other])


def test_a_file_of_another_task_is_told_by_its_columns(desk: Desk):
    assert desk.refusal("rte", folder=FOLDER / "MRPC") == (
        "data.task: train.tsv is not a file of the GLUE task rte: it is a file of mrpc; set "
        "data.task to that, or set data.folder to the folder of rte"
    )


def test_tasks_with_the_same_columns_are_told_apart_by_their_labels(desk: Desk):
    said = desk.refusal("rte", folder=FOLDER / "WNLI")
    assert "train.tsv:2 has the label '1', but the labels of the GLUE task rte are entailment, not_entailment" in said


def test_a_folder_that_is_not_there_is_named(desk: Desk, tmp_path: Path):
    assert (
        desk.refusal("rte", folder=tmp_path / "no")
        == f"data.folder: there is no folder {tmp_path / 'no'}; check the path"
    )


def test_a_file_that_is_not_there_is_named_with_a_similar_one(desk: Desk):
    assert "there is no such file or folder (found: dev.tsv)" in desk.refusal("rte", "validation", validation="dew.tsv")


def test_a_test_file_cannot_be_trained_on(desk: Desk):
    assert desk.refusal("rte", train="test.tsv").startswith("data.train: test.tsv has no labels (column 'label')")


def test_an_empty_file_is_refused(desk: Desk, tmp_path: Path):
    shutil.copytree(FOLDER / "RTE", tmp_path / "RTE")
    (tmp_path / "RTE" / "train.tsv").write_bytes(b"")
    assert "train.tsv is empty" in desk.refusal("rte", folder=tmp_path)


def test_a_task_that_glue_does_not_have_is_answered_with_those_it_has():
    with pytest.raises(ValueError, match="'cola', 'sst2'"):
        Settings.model_validate({"folder": "glue", "task": "ax"})
