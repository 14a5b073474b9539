"""Every preset of GLUE, and of XNLI, trains three steps on files of its shape with a small model of its architecture."""

from pathlib import Path
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.resources import resource
from backend.contract.run.events import DataLoaded, EvaluationFinished, PlanMade, RunFinished, StepFinished
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec, TrainingSection
from backend.engines.cpu_device import cpu_device
from backend.preflight import cost
from backend.preflight.checks import check
from backend.preflight.resolve import resolve
from backend.training import loop
from backend.training.event_log import read_events
from backend.training.schedule import learning_rate

FOLDER = Path(__file__).parents[2] / "data" / "glue"
PRESETS = sorted(path.stem for path in resource("presets").glob("glue-*.yaml"))
MEASURED = {
    "glue-stsb": {"loss", "pearson", "spearman", "combined"},
    "glue-mnli": {"loss", "accuracy", "f1_macro", "f1_weighted", "matthews"}
    | {"loss_mm", "accuracy_mm", "f1_macro_mm", "f1_weighted_mm", "matthews_mm"},
}
QUICK = {"glue-cola", "glue-mnli", "glue-stsb"}
"""One label of a text, of two texts with a second validation split, and a number; the slow tests train all."""
OF_TWO_LABELS = {
    "loss", "accuracy", "f1", "precision", "recall", "combined", "f1_macro", "f1_weighted", "matthews",
}  # fmt: skip


@pytest.fixture(scope="session")
def small_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A BERT and a RoBERTa with the demo's vocabulary that have learnt nothing."""
    import torch  # takes seconds
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    tokenizer = str(resource("demo", "bert-tiny", "tokenizer.json"))
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    sizes |= {"vocab_size": 30522, "pad_token_id": 0, "max_position_embeddings": 140}
    torch.manual_seed(0)
    models = {
        "bert": (BertModel(BertConfig(**sizes)), ["input_ids", "token_type_ids", "attention_mask"]),
        "roberta": (RobertaModel(RobertaConfig(type_vocab_size=1, **sizes)), ["input_ids", "attention_mask"]),
    }
    folders = {}
    for name, (model, inputs) in models.items():
        folders[name] = tmp_path_factory.mktemp(name)
        model.save_pretrained(folders[name])
        made = PreTrainedTokenizerFast(tokenizer_file=tokenizer, pad_token="[PAD]", model_input_names=inputs)
        made.save_pretrained(folders[name])
    return folders


def preset(name: str) -> dict[str, Any]:
    return spec_file.read(resource("presets", f"{name}.yaml"))["spec"]


def checked(name: str, model: Path, path: Path, data: Path = FOLDER) -> RunSpec:
    """The preset on small files, for three steps."""
    values = preset(name)
    values["model"] |= {"name_or_path": str(model)}
    values["data"] |= {"folder": str(data), "test": "test"}
    values["training"] |= {"max_steps": 3}
    values["hardware"] = {"threads": 1, "device": "cpu"}
    return check(resolve(values, path)).spec


def trained(name: str, model: Path, path: Path, data: Path = FOLDER) -> list[Any]:
    """The events of three steps under the preset."""
    folder = RunFolder(path)
    spec = checked(name, model, path, data)
    folder.spec.write_text(spec_file.dump(spec.model_dump(mode="json")), encoding="utf-8")
    assert loop.run(folder) == 0
    return read_events(folder.events)


def first(events: list[Any], kind: type) -> Any:
    return next(event for event in events if isinstance(event, kind))


@pytest.mark.parametrize("name", sorted(set(PRESETS) - QUICK))
def test_preset_is_planned(tmp_path: Path, small_models: dict[str, Path], name: str):
    spec = checked(name, small_models["bert"], tmp_path)
    assert cost.plan(spec, [cpu_device()]).total_steps == 3


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in PRESETS]
)
def test_preset_is_planned_trained_and_measured(tmp_path: Path, small_models: dict[str, Path], name: str):
    events = trained(name, small_models["bert"], tmp_path)
    assert first(events, PlanMade).total_steps == len([one for one in events if isinstance(one, StepFinished)]) == 3
    assert set(first(events, EvaluationFinished).metrics) == MEASURED.get(name, OF_TWO_LABELS)
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.state == "finished"
    assert preset(name)["evaluation"]["best_metric"] in finished.metrics
    assert (tmp_path / "predictions_test.csv").is_file()


def test_xnli_is_trained_in_one_language_and_measured_in_another(tmp_path: Path, small_models: dict[str, Path]):
    events = trained("xnli", small_models["bert"], tmp_path, FOLDER.parent / "xnli")
    assert [one.files for one in events if isinstance(one, DataLoaded)] == [
        ["multinli.train.en.tsv"],
        ["xnli.dev.tsv"],
        ["xnli.test.tsv"],
    ]
    assert events[-1].state == "finished"


def test_pymarlins_rte_is_measured_before_the_first_step(tmp_path: Path, small_models: dict[str, Path]):
    events = trained("pymarlin-rte", small_models["roberta"], tmp_path)
    assert first(events, EvaluationFinished).step == 0
    assert events[-1].state == "finished"


def test_pymarlins_rte_has_the_learning_rates_of_its_published_run():
    training = TrainingSection.model_validate(preset("pymarlin-rte")["training"])
    peak = 0.06 * 790 - 1
    for step in range(1, 781):
        done = step - 1
        published = 2e-5 * (done / peak if done <= peak else 1 - (done - peak) / (790 - 1 - peak))
        assert learning_rate(step, 780, training) == pytest.approx(published, abs=1e-11)


def test_every_task_of_glue_has_a_preset():
    tasks = {preset(name)["data"]["task"] for name in PRESETS}
    assert tasks == {"cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli"}
