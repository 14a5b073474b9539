"""Pairs of files whose lines belong together: how they are found, which way they are read, what is refused."""

import gzip
import shutil
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.rows import Rows
from backend.data.sources.parallel import Parallel, Settings
from backend.data.sources.source import ReadOptions

VERSES = Path(__file__).parents[2] / "data" / "parallel"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.source").write_text("one\ntwo\nthree\n")
    (tmp_path / "train.target").write_text("uno\ndos\ntres\n")
    return tmp_path


def read(value: object, split: str = "train", max_rows: int | None = None, **settings: object) -> Rows:
    """The rows of one split; the cache lies beside the files."""
    first = Path(str(value[0] if isinstance(value, list) else value))
    data = DataSection(**{split: value if isinstance(value, list) else str(value)}, max_rows=max_rows)  # type: ignore[arg-type]
    rows = Parallel(Settings.model_validate(settings)).read(split, data, ReadOptions(first.parent / ".cache"))
    assert rows is not None
    return rows


def read_file(path: Path, **settings: object) -> Rows:
    return Parallel(Settings.model_validate(settings)).read_file(
        path, DataSection(), ReadOptions(path.parent / ".cache")
    )


def refusal(value: object, split: str = "train", **settings: object) -> str:
    with pytest.raises(InputError) as caught:
        read(value, split, **settings)
    assert caught.value.field == f"data.{split}"
    return str(caught.value)


def test_a_folder_a_beginning_and_either_file_name_the_same_pair(folder: Path):
    for value in (folder, folder / "train", folder / "train.source", folder / "train.target"):
        assert read(value).table.to_pydict() == {"source": ["one", "two", "three"], "target": ["uno", "dos", "tres"]}


def test_validation_is_found_under_its_usual_names(folder: Path):
    for ending in ("source", "target"):
        shutil.copy(folder / f"train.{ending}", folder / f"val.{ending}")
    assert read(folder, "validation").files == ("val.source",)


def test_moses_pairs_are_read_by_their_endings(tmp_path: Path):
    (tmp_path / "corpus.en").write_text("one\n")
    (tmp_path / "corpus.es").write_text("uno\n")
    rows = read(tmp_path / "corpus", source_ending="es", target_ending="en")
    assert rows.table.to_pylist() == [{"source": "uno", "target": "one"}]


def test_gzipped_files_give_the_same_rows(folder: Path):
    plain = read(folder).table
    for path in (folder / "train.source", folder / "train.target"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read(folder).table == plain


def test_both_directions_alternate_and_begin_with_the_backward_one(folder: Path):
    rows = read(folder, direction="both", prefix_forward="to spanish", prefix_backward="to english")
    assert rows.table.to_pylist()[:3] == [
        {"prefix": "to english", "source": "uno", "target": "one"},
        {"prefix": "to spanish", "source": "one", "target": "uno"},
        {"prefix": "to english", "source": "dos", "target": "two"},
    ]
    assert rows.lines.tolist() == [1, 1, 2, 2, 3, 3]


def test_languages_turn_round_with_the_direction(folder: Path):
    rows = read(folder, direction="both", source_language="eng_Latn", target_language="spa_Latn")
    assert rows.table["source_language"].to_pylist()[:2] == ["spa_Latn", "eng_Latn"]
    assert rows.table["target_language"].to_pylist()[:2] == ["eng_Latn", "spa_Latn"]


def test_mismatched_line_counts_are_refused_with_both_counts(folder: Path):
    with (folder / "train.target").open("a") as file:
        file.write("cuatro\ncinco\n")
    assert "train.source has 3 lines and train.target has 5" in refusal(folder)
    assert [path for path in (folder / ".cache").glob("*") if path.suffix != ".lock"] == []


def test_only_line_feeds_end_a_line(tmp_path: Path):
    (tmp_path / "train.src").write_bytes("\ufeffone\u2028still one\r\nt\rwo\n".encode())
    (tmp_path / "train.trg").write_bytes("uno\ndos\u0085".encode())
    assert read(tmp_path).table["source"].to_pylist() == ["one\u2028still one", "t\rwo"]


def test_empty_lines_keep_their_place(tmp_path: Path):
    (tmp_path / "train.src").write_text("one\n\nthree\n")
    (tmp_path / "train.trg").write_text("uno\ndos\ntres")
    assert read(tmp_path).table["source"].to_pylist() == ["one", "", "three"]


def test_other_encodings_are_refused_with_the_line(folder: Path):
    (folder / "train.target").write_bytes(b"uno\nma\xf1ana\ntres\n")
    assert "train.target line 2 is not UTF-8 (byte 0xF1)" in refusal(folder)


def test_a_gzip_file_that_was_cut_is_refused(folder: Path):
    whole = gzip.compress(b"line\n" * 50_000)
    (folder / "train.target").unlink()
    (folder / "train.target.gz").write_bytes(whole[: len(whole) // 2])
    assert "train.target.gz is damaged or incomplete" in refusal(folder)


def test_a_pair_without_its_other_half_is_refused(folder: Path):
    (folder / "train.target").unlink()
    assert "its matching file does not" in refusal(folder / "train.source")


def test_a_folder_without_a_pair_says_what_was_looked_for(tmp_path: Path):
    assert "train.source and train.target" in refusal(tmp_path)


def test_a_changed_target_file_is_read_again(folder: Path):
    before = read(folder).fingerprint
    (folder / "train.target").write_text("uno\ndos\ncuatro\n")
    again = read(folder)
    assert again.fingerprint != before
    assert again.table["target"].to_pylist()[2] == "cuatro"


def test_several_pairs_are_joined_and_keep_their_names(folder: Path):
    for ending in ("source", "target"):
        shutil.copy(folder / f"train.{ending}", folder / f"more.{ending}")
    rows = read([str(folder / "train"), str(folder / "more")])
    assert len(rows) == 6
    assert rows.place(4) == "more.source:2"


def test_most_rows_are_obeyed_in_both_directions(folder: Path):
    assert len(read(folder, max_rows=3, direction="both")) == 3


def test_a_lone_file_holds_sources_for_prediction(folder: Path):
    alone = folder / "questions.src"
    alone.write_text("four\nfive\n")
    assert read_file(alone, direction="both").table.to_pydict() == {"source": ["four", "five"]}


def test_a_table_can_be_predicted_too(folder: Path):
    table = folder / "new.csv"
    table.write_text("source\nfour\n")
    assert read_file(table).table.to_pydict() == {"source": ["four"]}


def test_real_verses_stay_in_step(tmp_path: Path):
    shutil.copytree(VERSES, tmp_path / "verses")
    rows = read(tmp_path / "verses", "test")
    assert len(rows) == 20
    assert rows.table["target"][2].as_py() == "Y murió Elimelech, marido de Noemi, y quedó ella con sus dos hijos;"
