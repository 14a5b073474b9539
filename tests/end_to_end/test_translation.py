"""Small translators through the real command line: mT5's way of shipping and Marian's, trained, measured and used."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, events_of
from end_to_end.translators import marian_folder, mt5_folder, sentences
from sacrebleu import corpus_bleu
from safetensors import safe_open
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.contract.run.events import EvaluationFinished, StepFinished
from backend.inference import predict

TRAINED, MEASURED = sentences(300, seed=1), sentences(40, seed=2)
TRAINING = {
    "max_steps": None, "epochs": 6, "batch_size": 16, "learning_rate": 5e-3, "warmup": 0.1, "checkpoint_every": "never",
}  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def prepared(home: Path) -> Burnish:
    """A home folder with the toy language's sentences as pairs of files."""
    for name, pairs in (("train", TRAINED), ("validation", MEASURED)):
        for ending, side in (("source", 0), ("target", 1)):
            (home / f"{name}.{ending}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return Burnish(home)


def spec(burnish: Burnish, model: Path, training: dict[str, object] = TRAINING, **sections: dict[str, object]) -> str:
    sections.setdefault("task", {"type": "seq2seq_lm", "max_length": 32, "max_target_length": 32, "max_new_tokens": 24})
    sections.setdefault("data", {"source": "parallel", "train": ".", "validation": ".", "columns": {}})
    path = burnish.spec(
        model={"name_or_path": str(model), "initialise": "from_config"},
        training=training,
        evaluation={"every": 200},  # rarely, for each writes a text for every row
        hardware={"device": "cpu", "threads": 1},
        **sections,
    )
    return str(path)


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Burnish:
    """A finished run of the mT5 kind, which has seen 300 sentences."""
    home = tmp_path_factory.mktemp("translated")
    one = prepared(home)
    done = one("train", spec(one, mt5_folder(home / "mt5", [text for pair in TRAINED for text in pair])))
    assert done.returncode == 0, done.stderr
    return one


def copying() -> float:
    """What somebody gets who hands in the source."""
    return corpus_bleu([source for source, _ in MEASURED], [[target for _, target in MEASURED]]).score


def last_metrics(burnish: Burnish) -> dict[str, float]:
    evaluations = [event for event in events_of(burnish.run_folder()) if isinstance(event, EvaluationFinished)]
    return {name: value or 0.0 for name, value in evaluations[-1].metrics.items()}


def test_a_small_mt5_translates_much_better_than_copying(translated: Burnish):
    assert last_metrics(translated)["bleu"] > copying() + 40


def test_its_predictions_are_the_sentences_in_their_order(translated: Burnish):
    rows = table(translated.run_folder().predictions())
    assert list(rows[0]) == ["source", "target", "prediction", "actual", "source_text"]
    assert [(row["source"], row["actual"]) for row in rows] == MEASURED
    score = corpus_bleu([row["prediction"] for row in rows], [[target for _, target in MEASURED]])
    assert score.score == pytest.approx(last_metrics(translated)["bleu"])


def test_the_scores_signatures_lie_beside_the_predictions(translated: Burnish):
    document = json.loads((translated.run_folder().path / "signatures.json").read_text(encoding="utf-8"))
    assert document["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


@pytest.mark.slow
def test_evaluating_the_run_again_gives_its_numbers(translated: Burnish):
    done = translated("evaluate", translated.run_folder().name, "--data", "validation", "--json")
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    for name in ("loss", "accuracy", "bleu", "chrf", "rougeL"):
        assert metrics[name] == pytest.approx(last_metrics(translated)[name], rel=1e-5)


def test_beams_are_chosen_afterwards_and_change_only_what_is_written(translated: Burnish):
    steps = len([event for event in events_of(translated.run_folder()) if isinstance(event, StepFinished)])
    done = translated(
        "evaluate", translated.run_folder().name, "--data", "validation", "--json",
        "--set", "task.num_beams=4", "--set", "task.max_new_tokens=2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["loss"] == pytest.approx(last_metrics(translated)["loss"], rel=1e-5)
    assert metrics["bleu"] < last_metrics(translated)["bleu"] / 2  # two tokens are no sentence
    assert steps == len([event for event in events_of(translated.run_folder()) if isinstance(event, StepFinished)])


def test_sources_alone_are_predicted_as_with_targets(translated: Burnish):
    (translated.home / "new.src").write_text("".join(f"{source}\n" for source, _ in MEASURED), encoding="utf-8")
    done = translated("predict", translated.run_folder().name, "--data", "new.src", "--output", "out.csv")
    assert done.returncode == 0, done.stderr
    rows = table(translated.home / "out.csv")
    assert list(rows[0]) == ["source", "prediction", "source_text"]
    known = table(translated.run_folder().predictions())
    assert [row["prediction"] for row in rows] == [row["prediction"] for row in known]


def test_generate_answers_a_prompt(translated: Burnish):
    known = table(translated.run_folder().predictions())[0]
    done = translated("generate", translated.run_folder().name, "--prompt", known["source"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{known['prediction']}\n"


def test_a_sample_is_repeated_by_its_seed(translated: Burnish):
    model, hot = str(translated.run_folder().model), ["task.sample=true", "task.temperature=5", "hardware.threads=1"]

    def sampled(seed: int) -> str:
        return "".join(predict.generate(model, MEASURED[0][0], hot, seed))

    first = sampled(1)
    assert sampled(1) == first
    assert sampled(2) != first


def test_a_model_folder_of_another_origin_answers_too(translated: Burnish, tmp_path: Path):
    folder = tmp_path / "foreign"
    shutil.copytree(translated.run_folder().model, folder)
    (folder / "burnish.json").unlink()
    known = table(translated.run_folder().predictions())[0]
    assert list(predict.generate(str(folder), known["source"], ["hardware.threads=1"])) == [known["prediction"]]


def test_a_prompt_without_text_is_refused(translated: Burnish):
    with pytest.raises(InputError, match="no rows can be used"):
        list(predict.generate(str(translated.run_folder().model), " "))


def test_trap_21_spare_rows_of_the_vocabulary_are_kept(translated: Burnish):
    """mT5 has more rows than its tokenizer has tokens; shrinking them would break the checkpoint."""
    model = translated.run_folder().model
    with safe_open(model / "model.safetensors", "numpy") as weights:
        rows = weights.get_slice("shared.weight").get_shape()[0]
    assert rows == 256 > len(AutoTokenizer.from_pretrained(model))


def test_unequal_files_are_refused_before_anything_is_written(translated: Burnish, tmp_path: Path):
    (translated.home / "bad.source").write_text("one\ntwo\n")
    (translated.home / "bad.target").write_text("uno\n")
    runs = list(translated.runs.iterdir())
    done = translated("train", str(translated.home / "spec.yaml"), "--set", "data.train=bad")
    assert done.returncode == 2
    assert "bad.source has 2 lines and bad.target has 1" in done.stderr
    assert list(translated.runs.iterdir()) == runs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_a_small_marian_translates_with_its_own_two_vocabularies(tmp_path: Path):
    burnish = prepared(tmp_path)
    model = marian_folder(tmp_path / "marian", TRAINED)
    done = burnish("train", spec(burnish, model, {**TRAINING, "learning_rate": 2e-3, "epochs": 12}))
    assert done.returncode == 0, done.stderr
    assert last_metrics(burnish)["bleu"] > copying() + 40


def test_text_of_any_kind_survives_to_the_predictions(tmp_path: Path):
    texts = [
        ("She said \"yes\", twice.", "සිංහල භාෂාව ලස්සනයි, \"ඔව්\""),
        ("first line\nsecond line", "¿Qué? ¡Ñandú, sí!"),
        ("=1+1", "- uno, dos; tres"),
    ]  # fmt: skip
    burnish = prepared(tmp_path)
    for name in ("train", "validation"):
        with (tmp_path / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("input_text", "target_text"), *texts])
    data: dict[str, object] = {"source": "files", "train": "train.csv", "validation": "validation.csv", "columns": {}}
    model = mt5_folder(tmp_path / "mt5", [text for pair in [*texts, *TRAINED] for text in pair])
    done = burnish("train", spec(burnish, model, {"max_steps": 1, "batch_size": 3}, data=data))
    assert done.returncode == 0, done.stderr
    rows = table(burnish.run_folder().predictions())
    assert [(row["input_text"], row["target_text"]) for row in rows] == texts
    assert [row["actual"] for row in rows] == [target for _, target in texts]
