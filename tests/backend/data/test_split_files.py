"""What a path given for a split stands for, whoever gives it, and that no split holds another split's rows."""

from pathlib import Path
from typing import Any

import pytest

from backend import registry
from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.sources.source import ReadOptions
from backend.inspect.recognition import recognise
from backend.preflight.datasets import load_splits
from backend.preflight.resolve import resolve

TABLE = "text,label\n" + "".join(f"{{0}} {number},{number % 2}\n" for number in range(4))
SQUAD = """{{"data": [{{"title": "t", "paragraphs": [{{"context": "Ann saw {0}.", "qas": [
  {{"id": "{0}", "question": "Who?", "answers": [{{"text": "Ann", "answer_start": 0}}]}}]}}]}}]}}"""
CONLL = "{} B-PER\nran O\n\nBonn B-LOC\n. O\n"
PAIR = "{}\nagain\n"
KINDS = {
    "files": ({".csv": TABLE}, "text"),
    "squad": ({".json": SQUAD}, "context"),
    "conll": ({".conll": CONLL}, "tokens"),
    "parallel": ({".src": PAIR, ".trg": PAIR}, "source"),
}
NAMES = {"train": "train", "validation": "dev", "test": "test"}


def written(folder: Path, kind: str, *names: str) -> Path:
    """Files of that source, each of which holds its own name."""
    for name in names:
        for ending, content in KINDS[kind][0].items():
            path = folder / f"{name}{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.format(path.stem), encoding="utf-8")
    return folder


def read(kind: str, split: str, cache: Path, **data: Any) -> str:
    """All that the split holds, as text."""
    source = registry.find("source", kind, "data.source")
    section = DataSection.model_validate({"source": kind, **data})
    rows = source(source.Settings()).read(split, section, ReadOptions(cache))
    return str(rows.table[KINDS[kind][1]].to_pylist())


@pytest.mark.parametrize("split", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_gives_a_split_the_files_that_are_named_for_it(tmp_path: Path, kind: str, split: str):
    folder = written(tmp_path / "data", kind, *NAMES.values())
    found = read(kind, split, tmp_path / "cache", **{"train": str(folder), split: str(folder)})
    assert [name for name in NAMES.values() if name in found] == [NAMES[split]]


@pytest.mark.parametrize("kind", ["files", "squad", "conll"])
def test_a_pattern_gives_a_split_the_files_that_are_named_for_it(tmp_path: Path, kind: str):
    folder = written(tmp_path / "data", kind, *NAMES.values())
    found = read(kind, "train", tmp_path / "cache", train=str(folder / "*.*"))
    assert [name for name in NAMES.values() if name in found] == ["train"]


@pytest.mark.parametrize("kind", ["files", "squad", "conll"])
def test_a_folder_typed_for_training_is_split_as_one_that_is_dropped(tmp_path: Path, kind: str):
    folder = written(tmp_path / "data", kind, "train/a", "train/b", "validation/c")
    dropped = recognise([str(folder)]).data
    assert dropped["source"] == kind
    for split in ("train", "validation"):
        typed = read(kind, split, tmp_path / "cache", **{split: str(folder)})
        assert typed == read(kind, split, tmp_path / "cache", **{split: dropped[split]})


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_folder_dropped_on_a_split_gives_it_only_its_own_files(tmp_path: Path, split: str):
    folder = written(tmp_path, "squad", "train", "dev")
    found = recognise([str(folder)], split)
    assert found.data == {"source": "squad", split: str(folder / f"{NAMES[split]}.json")}
    assert len(found.left_out) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_that_holds_another_splits_file_is_refused(tmp_path: Path, kind: str):
    folder = written(tmp_path / "data", kind, "one", "two")
    one, two = (str(folder / f"{name}{next(iter(KINDS[kind][0]))}") for name in ("one", "two"))
    link = tmp_path / f"link{Path(one).suffix}"
    link.symlink_to(one)
    both = [one, two]
    splits = [{"train": both, "validation": two}, {"train": two, "test": both}]
    splits += [{"train": str(folder), "validation": two}, {"train": one, "validation": str(link)}]
    for data in splits if kind != "parallel" else splits[:2]:
        last = [*data][-1]
        with pytest.raises(InputError, match=rf"^data\.{last}: .* is also used as training data; choose") as caught:
            read(kind, last, tmp_path / "cache", **data)
        assert caught.value.field == f"data.{last}"


def test_files_that_are_named_one_by_one_are_taken_whatever_they_are_called(tmp_path: Path):
    folder = written(tmp_path / "data", "files", "train", "dev")
    found = read("files", "train", tmp_path / "cache", train=[str(folder / "train.csv"), str(folder / "dev.csv")])
    assert "train 0" in found
    assert "dev 0" in found


def test_a_folder_without_a_file_for_the_split_is_refused_with_one_to_name(tmp_path: Path):
    folder = written(tmp_path / "data", "files", "train", "dev")
    with pytest.raises(
        InputError,
        match=r"^data\.test: .*no file .* split test, only dev\.csv, train\.csv; specify a file, .*dev\.csv$",
    ):
        read("files", "test", tmp_path / "cache", test=str(folder))


def test_a_folder_to_be_predicted_must_not_mix_splits(tmp_path: Path):
    folder = written(tmp_path / "data", "squad", "train", "dev")
    source = registry.find("source", "squad", "data.source")
    with pytest.raises(InputError, match=r"files of several splits \(dev\.json, train\.json\).*specify one"):
        source(source.Settings()).read_file(folder, DataSection(), ReadOptions(tmp_path / "cache"))


@pytest.mark.parametrize("value", ["train", "train+test"])
def test_a_split_of_the_hub_that_is_trained_on_is_not_measured_on(tmp_path: Path, value: str):
    source = registry.find("source", "hub", "data.source")
    section = DataSection(source="hub", train=value, validation="train")
    with pytest.raises(InputError, match=r"^data\.validation: train is also used as training data"):
        source(source.Settings(name=str(tmp_path))).read(
            "validation", section, ReadOptions(tmp_path / "cache", offline=True)
        )


def test_the_validation_rows_of_a_training_folder_are_said_to_be_unread(tmp_path: Path):
    folder = written(tmp_path / "data", "files", "train", "dev")
    spec = resolve(
        {"task": {"type": "text_classification"}, "model": {"name_or_path": "x"}, "data": {"train": str(folder)}},
        tmp_path,
    )
    notes = load_splits(spec, None).notes
    assert (
        "data.train: dev.csv in this folder looks like validation data because of its name, so it is not used"
        in notes[-1]
    )


def test_text_that_is_read_with_the_wrong_encoding_is_said_at_the_start(tmp_path: Path):
    path = tmp_path / "train.csv"
    path.write_text("text,label\na poem,poesía\na tale,prosa\n", encoding="utf-8")
    data = {"train": str(path), "encoding": "windows-1252"}
    spec = resolve({"task": {"type": "text_classification"}, "model": {"name_or_path": "x"}, "data": data}, tmp_path)
    note = load_splits(spec, None).notes[-1]
    assert (
        "“label” seems to have been read with the wrong encoding: “poesÃ­a” in train.csv:2 is probably “poesía”" in note
    )
    assert "set data.encoding: auto" in note


@pytest.mark.parametrize("encoding", ["auto", "windows-1252"])
@pytest.mark.parametrize("kind", ["files", "conll"])
def test_files_of_two_encodings_are_each_named_with_theirs(tmp_path: Path, kind: str, encoding: str):
    "Reading all of them in the encoding of one would break the other."
    content, ending = ("text,label\n{},1\n", ".csv") if kind == "files" else ("{} B-PER\nran O\n", ".conll")
    for name, word in {"a": "Índigo", "b": "poesía", "c": "plain", "d": "Íris"}.items():
        code = "windows-1252" if name == "b" else "utf-8"  # in which the second byte of Í is nothing
        (tmp_path / f"{name}{ending}").write_bytes(content.format(word).encode(code))
    train = [str(tmp_path / f"{name}{ending}") for name in "abc"]
    source = registry.find("source", kind, "data.source")
    data = {"source": kind, "train": train, "validation": str(tmp_path / f"d{ending}"), "encoding": encoding}
    with pytest.raises(InputError) as told:
        source(source.Settings(encoding=encoding)).read(
            "train", DataSection.model_validate(data), ReadOptions(tmp_path)
        )
    assert str(told.value).removesuffix(", and set data.encoding to auto") == (
        f"data.train: the files have different encodings (UTF-8: a{ending}, d{ending}; not UTF-8: b{ending}), but a run reads "
        f"all of them with the same encoding; save b{ending} again as UTF-8"
    )
    assert told.value.fix is None
    assert str(told.value).endswith("to auto") is (encoding != "auto")


def test_encoding_of_one_split_is_offered_only_if_it_goes_with_the_others(tmp_path: Path):
    (tmp_path / "train.csv").write_bytes("text,label\npoesía,1\n".encode("windows-1252"))
    (tmp_path / "dev.csv").write_text("text,label\nplain,1\n", encoding="utf-8")
    names = {"train": str(tmp_path / "train.csv"), "validation": str(tmp_path / "dev.csv")}
    with pytest.raises(InputError) as told:
        read("files", "train", tmp_path / "cache", **names)
    assert told.value.fix is not None
    (tmp_path / "dev.csv").write_text("text,label\nÍris,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"not UTF-8: train\.csv; UTF-8: dev\.csv"):
        read("files", "train", tmp_path / "cache", **names)
