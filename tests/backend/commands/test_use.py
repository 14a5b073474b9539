"""Tests that a trained run is measured, predicts and tokenises from the command line."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from scipy.special import softmax

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from backend.helper.worker import QUERIES
from backend.inference import predict, predictions_file
from backend.models import calibration

VALIDATION = resource("demo", "sentiment", "validation.csv")


@pytest.fixture
def run(short_run) -> Path:
    """One short run of the demo's spec."""
    return short_run[0]


def test_evaluation_states_metrics_rows_and_timing(burnish, run: Path) -> None:
    done = burnish("evaluate", run, "--data", VALIDATION, "--json")

    found = json.loads(done.stdout)
    with VALIDATION.open(newline="", encoding="utf-8") as file:
        assert found["rows"] == sum(1 for _ in csv.DictReader(file))
    assert found["timing"].keys() == {
        "seconds", "rows_per_second", "tokens_per_second", "startup_seconds", "compile_seconds",
    }  # fmt: skip
    assert found["intervals"].keys() == found["metrics"].keys() > {"accuracy", "loss"}
    assert all(low <= found["metrics"][name] <= high for name, (low, high) in found["intervals"].items())
    assert found["trivial"].items() >= {"accuracy": pytest.approx(302 / 600), "matthews": 0.0}.items()
    assert found["trivial"]["loss"] == pytest.approx(0.6931, abs=1e-4)


def test_a_metric_is_printed_with_its_interval_and_what_needs_no_model(burnish, run: Path) -> None:
    done = burnish("evaluate", run, "--data", VALIDATION)

    assert re.search(r"^accuracy +[\d.]+ \([\d.]+ to [\d.]+\) +0\.5033 without a model, which", done.stdout, re.M)


def test_a_group_column_that_is_missing_is_refused(burnish, run: Path) -> None:
    done = burnish("evaluate", run, "--data", VALIDATION, "--set", "evaluation.group_column=doc")

    assert done.returncode == 2
    assert "evaluation.group_column: there is no column 'doc'; choose one of text, label" in done.stderr


def test_rows_without_the_group_column_are_predicted_without_intervals(burnish, run: Path, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    done = burnish(
        "predict", run, "--data", VALIDATION, "--output", output, "--json", "--set", "evaluation.group_column=doc"
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["intervals"] == {}
    assert found["metrics"]["accuracy"] > 0.5


def test_predictions_equal_those_of_the_run(burnish, run: Path, tmp_path: Path) -> None:
    output = tmp_path / "again.csv"

    done = burnish("predict", run, "--data", VALIDATION, "--output", output)

    assert done.returncode == 0, done.stderr
    assert "rows/s" in done.stdout

    def predicted(path: Path) -> list[str]:
        with path.open(newline="", encoding="utf-8") as file:
            return [row["prediction"] for row in csv.DictReader(file)]

    assert predicted(output) == predicted(run / "predictions.csv")


def test_missing_data_file_leaves_nothing(burnish, run: Path, tmp_path: Path) -> None:
    done = burnish("predict", run, "--data", "nothing.csv", "--output", tmp_path / "out.csv")

    assert done.returncode == 2
    assert "nothing.csv" in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_run_is_a_tokenizer_too(burnish, run: Path) -> None:
    found = json.loads(burnish("tokenize", run, "--text", "Hello, wörld", "--json").stdout)

    assert found["pieces"] == ["[CLS]", "hello", ",", "world", "[SEP]"]
    assert found["offsets"][3] == [7, 12]


def test_classifier_continues_no_text(burnish, run: Path) -> None:
    done = burnish("generate", run, "--prompt", "Once")

    assert done.returncode == 2
    assert "language model" in done.stderr


def test_same_seed_continues_a_text_alike(burnish, writer: Path) -> None:
    from backend.inference import predict  # loads the framework

    done = burnish("generate", writer, "--prompt", "the film", "--sample", "--seed", "3", "--max-new-tokens", "12")

    here, other = (
        "".join(predict.generate(str(writer), "the film", ["task.sample=true", "task.max_new_tokens=12"], seed))
        for seed in (3, 4)
    )
    assert done.stdout == f"{here}\n", done.stderr
    assert here != other


def test_decoding_setting_that_cannot_be_is_refused_by_its_name(burnish, writer: Path) -> None:
    done = burnish("generate", writer, "--prompt", "the film", "--top-k", "many")

    assert done.returncode == 2
    assert done.stderr.startswith("task.top_k: 'many'")


def test_plan_states_what_it_will_cost(burnish) -> None:
    found = json.loads(burnish("plan", resource("demo", "sentiment.yaml"), "--json").stdout)

    assert found["total_steps"] > 0
    assert found["fits"]
    assert found["device"] == "cpu"


def test_a_prompt_that_leaves_no_room_is_refused(writer: Path) -> None:
    with pytest.raises(InputError, match="shorten it"):
        list(predict.generate(str(writer), "film " * 100))


def test_more_rows_than_wanted_are_no_setting_of_an_evaluation(writer: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="every row of --data is used"):
        predict.evaluate(str(writer), tmp_path / "x.csv", "causal_lm", ["data.max_rows=3"])


@pytest.fixture
def of_windows_file(run: Path, tmp_path: Path) -> Path:
    """A run whose training file was read as Windows-1252."""
    folder = shutil.copytree(run, tmp_path / "run")
    spec = folder / "spec.yaml"
    spec.write_text(
        spec_file.dump(
            spec_file.apply_changes(spec_file.read(spec), ["data.encoding=windows-1252", "data.delimiter=';'"])
        ),
        encoding="utf-8",
    )
    return folder


def test_how_the_training_file_was_read_says_nothing_of_another_one(of_windows_file: Path, tmp_path: Path) -> None:
    new, output = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("text,label\nSchöne Grüße,positive\n", encoding="utf-8")

    told = predict.predict(str(of_windows_file), new, output)
    wrong = predict.predict(str(of_windows_file), new, tmp_path / "wrong.csv", None, ["data.encoding=windows-1252"])

    assert "Schöne Grüße" in output.read_text(encoding="utf-8")
    assert told.notes == ()
    assert "“Schöne”; data.encoding is windows-1252" in wrong.notes[0]


def test_file_that_is_not_utf8_is_refused_with_the_way_out(run: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("text,label\nSchöne Grüße,positive\n", encoding="windows-1252")

    with pytest.raises(InputError, match=r"if that is right, use --set data\.encoding=windows-1252"):
        predict.evaluate(str(run), new)


def test_a_further_file_that_is_not_utf8_is_read_with_its_fix(run: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("text,label\nSchöne Grüße,positive\n", encoding="windows-1252")
    question: dict[str, object] = {"run": str(run), "data": str(new)}

    with pytest.raises(InputError) as refused:
        QUERIES["file_parts"].answer(question, lambda progress: None)
    assert refused.value.fix is not None
    question["settings"] = refused.value.fix.changes
    fit = QUERIES["file_parts"].answer(question, lambda progress: None)

    assert fit.first["text"] == "Schöne Grüße"


def test_file_like_those_of_the_run_is_read_like_them(burnish, of_windows_file: Path, tmp_path: Path) -> None:
    new, output = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("text,label\nSchöne Grüße,positive\n", encoding="windows-1252")

    done = burnish("predict", of_windows_file, "--data", new, "--output", output)

    assert "Schöne Grüße" in output.read_text(encoding="utf-8")
    assert done.stderr.splitlines()[-1] == (
        "note: new.csv was read like the run's own files, with data.encoding: windows-1252"
    )


def test_columns_of_a_file_like_those_of_the_run_can_be_chosen(of_windows_file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text("Grüße\nSchöne Grüße\n", encoding="windows-1252")

    fit = QUERIES["file_parts"].answer({"run": str(of_windows_file), "data": str(new)}, lambda progress: None)

    assert fit.first == {"Grüße": "Schöne Grüße"}


@pytest.mark.slow
def test_a_further_file_is_predicted_into_the_run_and_never_over_another(run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(run, tmp_path / "run")
    mine = tmp_path / "my reviews.csv"
    mine.write_text("review,stars\nA joy,5\n,1\n", encoding="utf-8")
    parts, ask = QUERIES["file_parts"].answer, QUERIES["predict_file"].answer
    told: list[str] = []
    question: dict[str, object] = {"run": str(run), "data": str(mine)}

    fit = parts(question, lambda progress: None)
    with pytest.raises(InputError, match="there is no column 'text'; the columns are review, stars") as refused:
        ask(question, lambda progress: None)
    question["columns"] = {"text": "review"}
    answers = [ask(question, lambda progress: told.append(progress.text)), ask(question, lambda progress: None)]

    assert refused.value.field == "data.columns.text"
    assert {part.name: (part.column, part.needed) for part in fit.parts}["text"] == ("review", True)
    assert [answer.name for answer in answers] == ["my-reviews", "my-reviews-2"]
    assert (answers[0].rows, answers[0].skipped) == (1, ["my reviews.csv:3: no text"])
    assert [stage for stage in told if stage] == [
        "Starting", "Reading the file", "Loading the model", "Tokenizing", "Predicting",
    ]  # fmt: skip
    assert RunFolder(run).prediction_names() == ["validation", "my-reviews-2", "my-reviews"]


# Slices and calibration


def test_slices_are_listed_and_each_has_its_rows(burnish, run: Path, tmp_path: Path) -> None:
    done = burnish("slices", run, "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["metric"], found["rows"]) == ("accuracy", 600)
    assert {one["by"] for one in found["slices"]} >= {"length", "label", "cluster"}
    one = found["slices"][0]
    written = burnish("slices", run, "--rows", str(one["number"]), "--output", tmp_path / "rows.csv")
    assert written.stdout.startswith(f"{one['rows']} rows: ")
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    right = sum(row["prediction"] == row["actual"] for row in rows)
    assert one["score"] == pytest.approx(right / len(rows))
    listed = burnish("slices", run).stdout.splitlines()
    assert len(listed) == len(found["slices"]) + 3
    assert listed[-1] == found["sentence"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--metric", "bleu"), "slices cannot be measured by 'bleu'; choose one of"),
        (("--split", "test"), "has no such predictions; there are validation"),
        (("--rows", "3"), "name a slice's number and, with --output, the file"),
        (("--rows", "999", "--output", "rows.csv"), "there is no slice 999"),
        (("--rows", "0", "--output", "rows.txt"), "name a file that ends in .csv or .parquet"),
    ],
)
def test_wrong_words_for_slices_are_one_sentence(burnish, run: Path, options, words: str) -> None:
    done = burnish("slices", run, *options)

    assert done.returncode == 2
    assert words in done.stderr


@pytest.fixture
def own_run(run: Path, runs: Path) -> Path:
    """A copy of the short run that may be changed; it is right in most of its validation rows, as it has learned too little."""
    runs.mkdir()
    own = RunFolder(Path(shutil.copytree(run, runs / "own")))
    table = predictions_of(own.predictions())
    other = {"positive": "negative", "negative": "positive"}
    labels = [one if row % 4 else other[one] for row, one in enumerate(table["prediction"].to_pylist())]
    for name in ("label", "actual"):
        table = table.set_column(table.column_names.index(name), name, pa.array(labels))
    predictions_file.write(table, own.predictions(), own.predictions("validation", "parquet"))
    arrow_csv.write_csv(table.select(["text", "label"]), own.path / "labelled.csv")
    return own.path


def predictions_of(path: Path) -> pa.Table:
    return arrow_csv.read_csv(path)


def softmax_at(table: pa.Table, temperature: float) -> np.ndarray:
    names = [name for name in table.column_names if name.startswith("probability_")]
    return softmax(np.log(np.stack([table[name].to_numpy() for name in names], axis=1)) / temperature, axis=1)


def test_a_calibrated_model_predicts_other_probabilities_and_the_same_labels(
    burnish, own_run: Path, tmp_path: Path
) -> None:
    before = predictions_of(own_run / "predictions.csv")
    done = burnish("calibrate", "own", "--measure", "--json")
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["applied"] is None
    found = json.loads(burnish("calibrate", "own", "--json").stdout)
    temperature = found["temperature"]
    assert found["applied"] == pytest.approx(temperature)
    assert found["after"]["loss"] <= found["before"]["loss"]

    exported = tmp_path / "exported"
    assert burnish("export", "own", "--model", exported).returncode == 0
    assert not (exported / calibration.NAME).exists()
    for target in ("own", exported):  # the second has the temperature in its weights
        done = burnish("predict", target, "--data", VALIDATION, "--output", tmp_path / "out.csv", "--json")
        assert done.returncode == 0, done.stderr
        after = predictions_of(tmp_path / "out.csv")
        assert softmax_at(after, 1) == pytest.approx(softmax_at(before, temperature), abs=1e-5)
        assert after["prediction"].to_pylist() == before["prediction"].to_pylist()
    again = json.loads(burnish("calibrate", "own", "--json").stdout)
    assert again["temperature"] == pytest.approx(temperature)  # fitted on what the model says without it
    fitted = json.loads(burnish("calibrate", "own", "--data", own_run / "labelled.csv", "--json").stdout)
    assert fitted["temperature"] == pytest.approx(temperature, abs=1e-4)

    assert burnish("calibrate", "own", "--remove").stdout.strip().endswith("its calibration is removed")
    answer = json.loads(burnish("predict", "own", "--input", '{"text": "' + before["text"][0].as_py() + '"}').stdout)
    assert answer["probability_positive"] == pytest.approx(before["probability_positive"][0].as_py(), abs=1e-5)


@pytest.mark.slow
def test_jax_predicts_with_the_same_temperature(burnish, own_run: Path, tmp_path: Path) -> None:
    before = predictions_of(own_run / "predictions.csv")
    temperature = json.loads(burnish("calibrate", "own", "--json").stdout)["temperature"]
    done = burnish(
        "predict", "own", "--data", VALIDATION, "--output", tmp_path / "out.csv", "--set", "hardware.engine=jax"
    )
    assert done.returncode == 0, done.stderr
    after = predictions_of(tmp_path / "out.csv")
    assert softmax_at(after, 1) == pytest.approx(softmax_at(before, temperature), abs=1e-3)


def test_what_cannot_be_calibrated_says_why(burnish, own_run: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("text,label\n" + "good,positive\nbad,negative\n" * 5)
    for arguments, words in (
        (("own", "--data", few), "10 rows with known labels are too few"),
        ((own_run / "model",), "--data: name labeled rows"),
        (("nothing",), "there is no such run"),
        (("own", "--remove", "--measure"), "not allowed with argument"),
    ):
        done = burnish("calibrate", *arguments)
        assert done.returncode == 2
        assert words in done.stderr
    assert not (own_run / "model" / calibration.NAME).exists()
    (own_run / "model" / calibration.NAME).write_text("{}")
    done = burnish("predict", "own", "--data", VALIDATION, "--output", tmp_path / "out.csv")
    assert done.returncode == 2
    assert "this calibration cannot be used" in done.stderr
    assert not (tmp_path / "out.csv").exists()
