"""A spec is YAML 1.2, strict about its keys, and each mistake in it is one sentence with the way out."""

from pathlib import Path
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.spec import run_spec
from backend.contract.versions import SPEC_VERSION

MINIMAL: dict[str, Any] = {
    "task": {"type": "text_classification"},
    "model": {"name_or_path": "bert-tiny"},
    "data": {"train": "train.csv"},
}


def changed(*changes: str):
    return run_spec(spec_file.apply_changes(MINIMAL, list(changes)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-5", 3e-5),
        ("5e-05", 5e-5),
        ("2.0E-5", 2e-5),
        ("1e3", 1000.0),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("2026-11-21", "2026-11-21"),
        ("12:30", "12:30"),
        ("0o17", 15),
        ('{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
    ],
)
def test_values_are_read_as_yaml_1_2(text: str, value: object):
    parsed = spec_file.parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    "value", [3e-5, 1e-7, 1e22, "yes", "3e-5", "null", "", " x ", "a: b", "# c", "2026-11-21", "a\nb", "සිංහල", None]
)
def test_written_values_come_back_unchanged(value: object):
    assert spec_file.parse(spec_file.dump({"key": [value]})) == {"key": [value]}


def test_spec_file_with_byte_order_mark_is_read(tmp_path: Path):
    (tmp_path / "spec.yaml").write_bytes(b"\xef\xbb\xbfname: x\n")
    assert spec_file.read(tmp_path / "spec.yaml") == {"name": "x"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"model: [1", "spec.yaml line 1 is not valid YAML"),
        (b"a: 1\na: 2\n", "spec.yaml line 2 is not valid YAML"),
        (b"a: !!python/object:os.system x", "is not valid YAML"),
        (b"- a\n- b\n", "a spec is a mapping of sections"),
        (b"\xff\xfe\x00", "is not UTF-8; save it as UTF-8"),
    ],
)
def test_damaged_spec_file_is_one_sentence(tmp_path: Path, content: bytes, sentence: str):
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        spec_file.read(path)
    assert "\n" not in str(caught.value)


def test_missing_spec_file_is_one_sentence(tmp_path: Path):
    with pytest.raises(InputError, match="there is no such spec file"):
        spec_file.read(tmp_path / "gone.yaml")


def test_smallest_spec_is_complete():
    spec = run_spec(MINIMAL)
    assert spec.version == SPEC_VERSION
    assert spec.training.learning_rate == "auto"
    assert spec.hardware.engine == "torch"


def test_spec_survives_its_file():
    spec = changed("training.learning_rate=3e-5", "data.columns={text: review, label: stars}", "data.validation=0.1")
    assert run_spec(spec_file.parse(spec_file.dump(spec.model_dump()))) == spec


def test_spec_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        run_spec(MINIMAL).training.seed = 1  # type: ignore[misc]


def test_set_reaches_any_depth_and_leaves_the_rest():
    spec = changed("training.batch_size=8", "model.config.num_hidden_layers=4", "data.columns.text=review")
    assert (spec.training.batch_size, spec.training.epochs) == (8, "auto")
    assert spec.model.config == {"num_hidden_layers": 4}
    assert spec.data.columns == {"text": "review"}


def test_set_does_not_touch_what_it_was_given():
    values = {"training": {"epochs": 1}}
    spec_file.apply_changes(values, ["training.epochs=2"])
    assert values == {"training": {"epochs": 1}}


def test_later_set_wins():
    assert changed("training.seed=1", "training.seed=2").training.seed == 2


@pytest.mark.parametrize(
    ("change", "sentence", "field"),
    [
        ("training.learning_rat=1", "no such setting; did you mean learning_rate?", "learning_rat"),
        ("training.qqq=1", "the settings in training are epochs, max_steps, batch_size, learning_rate", "qqq"),
        ("trainin.epochs=1", "no such setting; did you mean training?", "trainin"),
        ("training.=1", "training.'': no such setting; the settings in training are epochs", "''"),
        (".=1", "'': no such setting; the settings in a spec are ", "''"),
        ("[=1", "[: no such setting; the settings in a spec are ", "["),
        ("int=1", "int: no such setting; ", "int"),
        ("\x1b=1", "'\\x1b': no such setting; ", "'\\x1b'"),
        ("training.max_steps=9999999999999", "input should be less than or equal to 1000000000000", "max_steps"),
        ("training.schedule=step", "'step' cannot be used: input should be 'linear', 'cosine', ", "schedule"),
        ("training.epochs=-1", "-1 cannot be used: input should be greater than 0", "training.epochs"),
        ("training.epochs=yes", "'yes' cannot be used: input should be a valid number", "training.epochs"),
        ("training.epochs=.nan", "nan cannot be used", "training.epochs"),
        ("training.batch_size=1.5", "1.5 cannot be used: input should be a valid integer", "training.batch_size"),
        ("training.checkpoint_every=0", "'epoch' or 'never', or input should be greater than 0", "checkpoint_every"),
        ("hardware.devices=[0, a]", "hardware.devices.1: 'a' cannot be used", "hardware.devices.1"),
        ("name.x=1", "name", "name"),
        ("task={}", "it needs a type, for example {type: text_classification}", "task"),
        ("model=null", "model", "model"),
    ],
)
def test_wrong_setting_names_key_value_and_choices(change: str, sentence: str, field: str):
    with pytest.raises(InputError) as caught:
        changed(change)
    assert sentence in str(caught.value)
    assert caught.value.field is not None
    assert caught.value.field.endswith(field)


@pytest.mark.parametrize("change", ["training.epochs", "=3"])
def test_set_without_key_or_value_shows_how_to_write_it(change: str):
    with pytest.raises(InputError, match=r"write it as KEY=VALUE, for example training\.learning_rate=3e-5"):
        changed(change)


def test_set_below_a_single_value_is_refused():
    with pytest.raises(InputError, match="seed is a single value"):
        spec_file.apply_changes({"training": {"seed": 1}}, ["training.seed.x=1"])


@pytest.mark.parametrize("section", ["task", "model", "data"])
def test_missing_section_is_named(section: str):
    with pytest.raises(InputError, match=f"{section}: this setting is required"):
        run_spec({key: value for key, value in MINIMAL.items() if key != section})


def test_spec_of_a_newer_version_is_refused():
    with pytest.raises(
        InputError,
        match=f"version {SPEC_VERSION + 1}, but this version of Burnish only reads specs up to version {SPEC_VERSION}; upd",
    ):
        changed(f"version={SPEC_VERSION + 1}")


def test_rows_are_in_random_order_unless_a_spec_groups_them_by_length():
    assert changed().training.length_buckets is False
    assert changed("training.length_buckets=true").training.length_buckets is True


def test_a_spec_that_burnish_wrote_names_how_its_rows_are_grouped():
    written = spec_file.parse(spec_file.dump(changed().model_dump(mode="json")))
    assert written["training"]["length_buckets"] is False
