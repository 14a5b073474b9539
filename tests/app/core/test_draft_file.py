"""Spec files that a person opens and saves."""

import shlex
from pathlib import Path

import pytest

from app.core.draft.draft import Draft
from app.core.draft.draft_file import is_spec, open_draft, save_draft
from app.core.draft.draft_settings import settings_of
from app.core.draft.presets import delete_preset, file_name, fragment, name_problem, read_presets, save_preset
from backend import catalog as catalogue
from backend.contract import spec_file as file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.preflight import resolve

HEAD = "task: {type: text_classification}\nmodel: {name_or_path: some/model}\n"


@pytest.fixture(scope="module")
def catalog():
    return catalogue.catalog()


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return path


def test_a_spec_that_is_saved_is_what_burnish_train_reads(catalog, tmp_path: Path):
    draft = open_draft(resource("demo", "sentiment.yaml"), catalog).draft
    draft.set("training.learning_rate", 3e-5)
    draft.set("name", "naïve: yes # really")
    save_draft(draft, tmp_path / "own.yaml")
    again = open_draft(tmp_path / "own.yaml", catalog)
    assert (again.draft.values(), again.notes) == (draft.values(), ())
    spec = resolve.read_spec(tmp_path / "own.yaml")
    assert (spec.name, spec.training.learning_rate) == ("naïve: yes # really", 3e-5)


def test_the_command_names_the_file_that_was_saved(catalog, tmp_path: Path):
    draft = open_draft(resource("demo", "sentiment.yaml"), catalog).draft
    save_draft(draft, tmp_path / "own.yaml")
    assert shlex.split(draft.command()) == ["burnish", "train", str(tmp_path / "own.yaml")]
    draft.set("training.epochs", 9)
    assert shlex.split(draft.command())[3:] == ["--set", "training.epochs=9"]


def test_a_command_brings_the_spec_along_where_something_of_the_file_is_gone(catalog):
    draft = open_draft(resource("demo", "sentiment.yaml"), catalog).draft
    draft.unset("training.learning_rate")
    command = draft.command()
    assert file.parse(command.split("\n", 1)[1].split("\nSPEC\n")[0]) == draft.values()


def test_relative_paths_are_taken_from_the_files_folder(catalog, tmp_path: Path):
    path = written(tmp_path, f"{HEAD}data: {{train: rows/*.csv, validation: 0.2}}\n")
    draft = open_draft(path, catalog).draft
    assert draft.get("data.train") == str(tmp_path / "rows/*.csv")
    assert draft.get("data.validation") == 0.2


def test_the_split_of_a_hub_is_no_path_whatever_lies_beside_the_file(catalog, tmp_path: Path):
    (tmp_path / "train").mkdir()
    path = written(tmp_path, f"{HEAD}data: {{source: hub, name: some/data, train: train}}\n")
    assert open_draft(path, catalog).draft.get("data.train") == "train"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task: {type: [}", "line 1 is not valid YAML"),
        ("- a\n- b\n", "a spec is a mapping"),
        ("model: {}\n", "needs task.type"),
        ("\n\ntask:\n  type: poetry\n", "line 4: unknown task 'poetry'"),
    ],
)
def test_what_is_no_spec_is_refused_with_its_line(catalog, tmp_path: Path, text: str, words: str):
    with pytest.raises(InputError, match=r"spec\.yaml") as refused:
        open_draft(written(tmp_path, text), catalog)
    assert words in str(refused.value)


def test_what_nothing_knows_is_left_out_and_said_with_its_line(catalog, tmp_path: Path):
    opened = open_draft(
        written(tmp_path, f"{HEAD}training:\n  epochs: 2\n  batchsize: 4\ntrainig: {{}}\nevaluation: 3\n"), catalog
    )
    assert opened.notes == (
        "spec.yaml, line 7: ignored evaluation, which must be a section of settings, not a single value.",
        "spec.yaml, line 6: ignored the unknown section trainig; did you mean training?",
        "spec.yaml, line 5: ignored the unknown setting training.batchsize; did you mean batch_size?",
    )
    assert opened.draft.values()["training"] == {"epochs": 2}
    assert opened.draft.file is None


def test_a_value_that_cannot_be_is_kept_to_be_mended_and_said_with_its_line(catalog, tmp_path: Path):
    opened = open_draft(written(tmp_path, f"{HEAD}training:\n  batch_size: many\n"), catalog)
    assert opened.notes == ("spec.yaml, line 4: Batch size can't be many.",)
    assert opened.draft.get("training.batch_size") == "many"


def test_a_dropped_yaml_file_is_a_spec_and_no_data():
    assert [is_spec(name) for name in ("a.yaml", "b.YML", "c.csv", "d.json")] == [True, True, False, False]


def test_an_own_preset_is_listed_used_by_include_and_deleted(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    draft = Draft({
        "task": {"type": "text_classification", "labels": ["a", "b"]}, "training": {"epochs": 9}, "adapter": None,
        "data": {"train": "a.csv"}, "model": {"name_or_path": "m"},
    })  # fmt: skip
    saved = save_preset("My café run!", "Long.", fragment(draft, ["task", "training", "adapter"], {}))
    assert saved.spec == {"task": {"type": "text_classification"}, "training": {"epochs": 9}}
    assert read_presets() == ([saved], [])
    assert file.read(written(tmp_path, "include: preset:my-café-run\nname: x\n"))["training"] == {"epochs": 9}
    delete_preset(saved)
    assert read_presets() == ([], [])


def test_a_preset_keeps_what_is_not_its_default_and_what_always_matters(catalog):
    draft = Draft({"training": {"epochs": 3, "warmup": "auto", "weight_decay": 0.3}})
    assert fragment(draft, ["training"], settings_of(catalog, draft)) == {
        "training": {"epochs": 3, "weight_decay": 0.3}
    }


def test_a_preset_file_that_is_none_is_said_and_the_others_are_listed(tmp_path: Path):
    save_preset("Good", "", {"training": {"epochs": 1}}, tmp_path)
    (tmp_path / "bad.yaml").write_text("title: [\n")
    found, problems = read_presets(tmp_path)
    assert [preset.title for preset in found] == ["Good"]
    assert "bad.yaml line" in problems[0]


def test_a_preset_must_have_a_name_that_no_shipped_one_has():
    shipped = catalogue.catalog().presets
    assert name_problem(" ", shipped) == "Enter a name for the preset."
    assert "choose another" in name_problem(shipped[0].name, shipped)
    assert name_problem("mine", shipped) == ""
    assert file_name("///") == "preset"
