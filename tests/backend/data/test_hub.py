"""The hub source on repositories and caches made on the spot; no test reaches the network."""

import datasets
import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.sources.hub import Hub, Settings
from backend.data.sources.source import ReadOptions


@pytest.fixture
def repository(tmp_path):
    """A folder laid out like a data set of the hub."""
    folder = tmp_path / "reviews"
    folder.mkdir()
    (folder / "train.csv").write_text("text,label\ngood,1\nNone,0\nNA,0\nlast,1\n", encoding="utf-8")
    (folder / "test.csv").write_text("text,label\nbad,0\n", encoding="utf-8")
    return folder


@pytest.fixture
def read(tmp_path):
    def reads(split: str = "train", max_rows: int | None = None, **settings):
        source = Hub(Settings.model_validate(settings))
        reading = ReadOptions(tmp_path / "cache", offline=True)
        return source.read("train", DataSection(train=split, max_rows=max_rows), reading)

    return reads


@pytest.fixture
def refusal(read):
    def refused(**arguments) -> InputError:
        with pytest.raises(InputError) as caught:
            read(**arguments)
        assert "\n" not in str(caught.value)
        return caught.value

    return refused


def test_a_folder_is_read_by_split_and_none_stays_text(read, repository):
    rows = read(name=str(repository))
    assert rows.table.to_pydict() == {"text": ["good", "None", "NA", "last"], "label": [1, 0, 0, 1]}
    assert rows.place(1) == "reviews[train]:2"


@pytest.mark.parametrize(("split", "texts"), [("train[:50%]", ["good", "None"]), ("test+train[3:]", ["bad", "last"])])
def test_slices_and_sums_of_splits_are_understood(read, repository, split, texts):
    assert read(split, name=str(repository)).table["text"].to_pylist() == texts


def test_max_rows_takes_the_first(read, repository):
    assert len(read(max_rows=3, name=str(repository))) == 3


def test_the_second_reading_comes_from_the_cache(read, repository, tmp_path):
    first = read(name=str(repository))
    entry = tmp_path / "cache" / first.fingerprint
    before = (entry / "table.arrow").stat().st_mtime_ns
    assert read(name=str(repository)).fingerprint == first.fingerprint
    assert (entry / "table.arrow").stat().st_mtime_ns == before


def test_named_labels_come_as_words(read, tmp_path):
    features = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=["no", "yes"]))
    (tmp_path / "named").mkdir()
    data = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, -1]}, features=features)
    data.to_parquet(tmp_path / "named" / "train.parquet")
    assert read(name=str(tmp_path / "named")).table["label"].to_pylist() == ["yes", None]


def test_an_unknown_split_is_refused_with_those_there_are(refusal, repository):
    error = refusal(split="dev", name=str(repository))
    assert "no split 'dev'; choose one of ['train', 'test']" in str(error)
    assert error.field == "data.train"


def test_an_unknown_configuration_is_refused(refusal, repository):
    error = refusal(name=str(repository), configuration="rte")
    assert "Available: ['default']" in str(error)
    assert error.field == "data.configuration"


def test_a_name_that_is_not_cached_is_refused_in_one_sentence(refusal):
    error = refusal(name="someone/something")
    assert "not in the cache and the Hub cannot be reached" in str(error)
    assert "go online once" in str(error)
    assert error.field == "data.name"


def test_code_of_a_data_set_is_never_run(refusal, repository, tmp_path):
    (repository / "reviews.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    assert "which Burnish never runs" in str(refusal(name=str(repository)))
    assert not (tmp_path / "ran").exists()


def test_images_are_refused_by_name(refusal, tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(b"x")
    assert "contains imagefolder data and no tables" in str(refusal(name=str(tmp_path / "pictures")))


def test_an_address_is_no_name():
    with pytest.raises(ValueError, match="not a URL"):
        Settings(name="https://huggingface.co/datasets/x")


@pytest.fixture
def cached(repository, tmp_path, monkeypatch):
    """The repository as the hub library keeps a downloaded one; returns its commit."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub")
    builder = datasets.load_dataset_builder(
        str(repository), cache_dir=str(tmp_path / "hub"), keep_default_na=False, na_values=[""]
    )
    builder.download_and_prepare()
    (tmp_path / "hub" / "reviews").rename(tmp_path / "hub" / "someone___reviews")
    return builder.hash


def test_without_a_network_the_cache_answers(read, cached):
    rows = read(name="someone/reviews")
    assert rows.table["text"].to_pylist() == ["good", "None", "NA", "last"]
    assert rows.files == ("someone/reviews[train]",)


def test_a_pinned_revision_is_never_answered_by_another(read, refusal, cached):
    assert len(read(name="someone/reviews", revision=cached)) == 4
    error = refusal(name="someone/reviews", revision="0" * 40)
    assert cached in str(error)
    assert error.field == "data.revision"
