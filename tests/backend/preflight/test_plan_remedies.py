"""A plan that does not fit says which settings would make it fit, and what each would need."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.commands.plan import _format_plan
from backend.contract.catalog import Device
from backend.contract.resources import resource
from backend.contract.rpc.plan import RunPlan
from backend.contract.spec_file import set_values
from backend.preflight import cost, resolve

CPU = Device("cpu", 0, "Processor", 8000, 6000, ["float32", "bfloat16"])


def planned(tmp_path: Path, device: Device = CPU, **changes: Any) -> tuple[RunPlan, dict[str, Any]]:
    """The plan of forty long rows with these changes, and its spec."""
    rows = "".join(f"{'word ' * 200}{n},{'ab'[n % 2]}\n" for n in range(40))
    (tmp_path / "train.csv").write_text(f"text,label\n{rows}")
    values = set_values(
        {
            "task": {"type": "text_classification", "max_length": 256},
            "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
            "data": {"train": "train.csv", "validation": 0.25},
            "training": {"batch_size": 8, "gradient_checkpointing": False},
        },
        changes,
    )
    return cost.plan(resolve.resolve(values, tmp_path), [device]), values


TIGHT = {"hardware.memory_limit": 0.544, "evaluation.batch_size": 1}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No run of another test was measured there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURNISH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def tight(tmp_path_factory):
    """A plan for which little more than the libraries is not enough."""
    return planned(tmp_path_factory.mktemp("tight"), **TIGHT)


def test_what_fits_needs_no_remedy(tmp_path: Path):
    found, _ = planned(tmp_path)
    assert found.fits
    assert found.remedies == []


def test_each_remedy_needs_less_than_the_plan(tight):
    found, _ = tight
    assert not found.fits
    assert {"Gradient checkpointing", "LoRA adapter", "At most 64 tokens"} <= {one.title for one in found.remedies}
    assert all(one.memory_mb < found.memory_mb for one in found.remedies)
    assert any(one.fits for one in found.remedies)


def test_a_remedy_needs_what_the_plan_with_it_says(tight, tmp_path: Path):
    found, _ = tight
    for remedy in found.remedies:
        changed, _ = planned(tmp_path, **{**TIGHT, **remedy.changes})
        assert changed.fits == remedy.fits, remedy.title
        assert changed.memory_mb == pytest.approx(remedy.memory_mb, rel=0.02), remedy.title


def test_where_none_alone_is_enough_all_are_offered_together(tmp_path: Path):
    found, _ = planned(tmp_path, **{"hardware.memory_limit": 0.3})
    assert found.remedies[-1].title == "All options together"
    assert found.remedies[-1].memory_mb < found.memory_mb


CARD = Device("cuda", 0, "Card", 1000, 300, ["float32", "bfloat16"])


def test_weights_in_bfloat16_are_offered_and_give_way_to_an_adapter(tmp_path: Path):
    found, _ = planned(tmp_path, CARD, **{"hardware.micro_batch_size": 8})
    together = next(one.changes for one in found.remedies if one.title == "All options together")
    assert {"training.master_weights": "bfloat16_stochastic"} in [one.changes for one in found.remedies]
    assert "adapter" in together
    assert "training.master_weights" not in together


def test_an_adapter_takes_the_place_of_weights_in_bfloat16(tmp_path: Path):
    found, _ = planned(tmp_path, CARD, **{"training.master_weights": "bfloat16_stochastic"})
    lora = next(one.changes for one in found.remedies if one.title == "LoRA adapter")
    assert lora == {"adapter": {"type": "lora"}, "training.master_weights": "float32"}


def test_time_is_told_by_parts_and_unknown_without_a_run_to_compare_with(tight):
    found, _ = tight
    assert [part.name for part in found.time] == ["Tokenizing", "Training", "Evaluations", "Predictions"]
    assert found.time[0].seconds is not None
    assert found.time[1].seconds is None
    assert found.time[2].words == "12 × 10 rows"
    assert found.seconds is None


def test_the_command_line_says_the_same(tight):
    found, _ = tight
    words = _format_plan(found)
    for remedy in found.remedies:
        assert f"{remedy.title}: about {remedy.memory_mb / 1000:.2f} GB" in words
    assert "--set training.gradient_checkpointing=true" in words
    assert "Tokenizing" in words
