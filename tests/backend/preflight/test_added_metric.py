"""A metric says itself whether a greater value is better: an added error keeps the checkpoint at which it was smallest."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend import catalog_building, registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.metrics import base_metric
from backend.contract.resources import resource
from backend.contract.run.events import EvaluationFinished, PlanMade, RunFinished
from backend.contract.run.folder import RunFolder
from backend.preflight.metrics import MetricDirections
from backend.preflight.resolve import read_spec, resolve
from backend.training import loop
from backend.training.event_log import read_events

ADDED = '''\
"""A task with an error and an undeclared measure of its own, and a metric for another task."""
from typing import Literal

from backend.contract.metrics import Metric
from backend.tasks.text_regression import Settings, TextRegression


class Distances(TextRegression):
    class Settings(Settings):
        type: Literal["distances"] = "distances"

    title = "Distances"
    description = "Scores, measured by how far they are off."
    metrics = ("loss", Metric("mean_absolute_error", "Mean absolute error", greater_is_better=False), "distance")
    default_metric = "mean_absolute_error"

    def score(self, predictions, facts):
        table = predictions.table
        pairs = zip(table["prediction"].to_pylist(), table["actual"].to_pylist())
        far = [abs(one - other) for one, other in pairs if other is not None]
        found = super().score(predictions, facts)
        return {"loss": found["loss"], "mean_absolute_error": sum(far) / len(far), "distance": sum(far)}


class Wrong:
    title = "Share of wrong labels"
    tasks = "*"
    greater_is_better = False

    @staticmethod
    def score(table):
        pairs = list(zip(table["prediction"].to_pylist(), table["actual"].to_pylist()))
        return {"wrong": sum(one != other for one, other in pairs) / len(pairs)}


class Vague(Wrong):
    greater_is_better = "perhaps"
'''
ENTRIES = """\
[burnish.tasks]
distances = added_metrics:Distances

[burnish.metrics]
wrong = added_metrics:Wrong
vague = added_metrics:Vague
"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package of somebody else is there, as pip would have installed it."""
    site = tmp_path_factory.mktemp("site")
    (site / "added_metrics.py").write_text(ADDED, encoding="utf-8")
    about = site / "added_metrics-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: added-metrics\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(ENTRIES, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        _forget()
        yield
    sys.modules.pop("added_metrics", None)
    _forget()


def _forget() -> None:
    """What the registry has found so far; a process that starts anew finds it again."""
    for found in (registry.names, registry._own_names, registry._find_entry_points, registry._plugins, registry._load):
        found.cache_clear()


def run_folder(path: Path, spec: dict[str, Any]) -> RunFolder:
    folder = RunFolder(path)
    folder.spec.write_text(spec_file.dump(spec), encoding="utf-8")
    return folder


def values(**sections: dict[str, Any]) -> dict[str, Any]:
    found = read_spec(resource("demo", "sentiment.yaml")).model_dump(mode="json")
    found["data"]["max_rows"] = 64
    for name, changes in sections.items():
        found[name] = {**found[name], **changes}
    return found


def scored(path: Path, **sections: dict[str, Any]) -> dict[str, Any]:
    """The spec of a task of scores, of which a tiny model learns something within some steps."""
    lines = [f"{'good ' * (number % 5)}{'bad ' * (4 - number % 5)},{number % 5}" for number in range(40)]
    data = path / "scores.csv"
    data.write_text("text,score\n" + "\n".join(lines) + "\n", encoding="utf-8")
    known = values()
    return {
        "task": {"type": "distances", "max_length": 16},
        "model": known["model"],
        "data": {"source": "files", "train": str(data), "validation": 0.25, "columns": {"text": "text", "label": "score"}},
        "training": {"max_steps": 6, "batch_size": 8, "learning_rate": 1e-2, "warmup": 0, "checkpoint_every": "never"},
        "evaluation": {"every": 1, "best_metric": "mean_absolute_error"},
        **sections,
    }  # fmt: skip


def test_the_checkpoint_with_the_smallest_added_error_is_the_best(tmp_path: Path):
    folder = run_folder(tmp_path, scored(tmp_path))

    assert loop.run(folder) == 0

    events = read_events(folder.events)
    errors = {
        event.step: event.metrics["mean_absolute_error"] or 0.0
        for event in events
        if isinstance(event, EvaluationFinished) and event.split == "validation"
    }
    assert len(set(errors.values())) == len(errors), "every step must have an error of its own"
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.best_step == min(errors, key=lambda step: errors[step])
    [plan] = [event for event in events if isinstance(event, PlanMade)]
    assert (plan.greater_is_better, plan.metrics) == (False, {"loss": False, "mean_absolute_error": False})


def test_variants_of_an_added_metric_inherit_its_direction():
    spec = resolve(values(evaluation={"metrics": ["wrong"]}), Path())
    found = MetricDirections.of(spec)
    assert [found.greater_is_better(name) for name in ("wrong", "dev.tsv/wrong", "wrong_PER", "f1_macro", "f1_PER")] == [
        False, False, False, True, True,
    ]  # fmt: skip


def test_a_metric_that_is_not_chosen_decides_nothing():
    assert "wrong" not in MetricDirections.of(resolve(values(), Path())).known


@pytest.mark.parametrize(
    ("task", "evaluation"),
    [("distances", {"best_metric": "distance"}), ("distances", {"best_metric": "distance_mean"})],
)
def test_an_undeclared_metric_of_a_task_is_refused_as_the_best(tmp_path: Path, task: str, evaluation: dict[str, Any]):
    spec = scored(tmp_path, task={"type": task, "max_length": 16}, evaluation={"every": 1, **evaluation})
    with pytest.raises(
        InputError,
        match=r"evaluation.best_metric: Burnish does not know whether .* choose another .*mean_absolute_error",
    ) as told:
        resolve(spec, tmp_path)
    assert told.value.field == "evaluation.best_metric"


def test_an_undeclared_metric_of_a_package_is_refused_for_early_stopping_and_may_be_measured(tmp_path: Path):
    resolve(values(evaluation={"metrics": ["vague"]}), tmp_path)
    with pytest.raises(InputError, match="Burnish does not know whether higher 'vague' is better"):
        resolve(
            values(evaluation={"metrics": ["vague"], "best_metric": "vague"}, training={"early_stopping": 2}), tmp_path
        )


def test_the_catalog_carries_the_direction_of_every_metric():
    found = {(one.name, *one.tasks): one.greater_is_better for one in catalog_building.build_catalog({}).metrics}
    assert found["mean_absolute_error", "distances"] is False
    assert found["distance", "distances"] is None
    assert (found["wrong",], found["vague",]) == (False, None)
    assert found["perplexity", "causal_lm", "masked_lm", "seq2seq_lm"] is False


def test_the_longest_name_decides():
    assert base_metric("dev/f1_error_PER", ["f1", "f1_error"]) == "f1_error"
