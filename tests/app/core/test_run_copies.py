"""Names and differences of runs that were made from each other."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.draft import run_copies
from app.core.draft.run_copies import LONGEST_NAME, EngineOffer, list_differences, next_name, previous_run
from app.core.runs.run_library import RunSummary
from backend.catalog import catalog
from backend.contract import spec_file
from backend.contract.catalog import Catalog, EngineEntry
from backend.contract.run.folder import RunFolder


@pytest.mark.parametrize(
    ("name", "taken", "made"),
    [
        ("reviews", ["reviews"], "reviews 2"),
        ("reviews", ["reviews", "reviews 2", "reviews 4"], "reviews 3"),
        ("reviews 2", ["reviews", "reviews 2"], "reviews 3"),
        ("squad-2", [], "squad-2 2"),
        ("2", [], "2 2"),
    ],
)
def test_a_copy_gets_the_next_free_number(name: str, taken: list[str], made: str):
    assert next_name(name, taken) == made


def test_a_long_name_is_cut_to_what_a_spec_allows():
    made = next_name("x" * LONGEST_NAME, [])
    assert len(made) == LONGEST_NAME
    assert made.endswith("x 2")


def run(folder: Path, title: str, started: float, rate: str = "2e-05", epochs: int = 3) -> RunSummary:
    path = folder / f"{title}-{started:.0f}"
    path.mkdir()
    spec = f"version: 1\nname: {title}\ntask: {{type: text_classification}}\ndata: {{source: demo}}\n"
    path.joinpath("spec.yaml").write_text(f"{spec}training: {{learning_rate: {rate}, epochs: {epochs}}}\n")
    return RunSummary(path.name, path, "finished", title=title, started=started)


def test_a_run_is_held_against_the_latest_of_its_name_before_it(tmp_path: Path):
    first, other = run(tmp_path, "reviews", 1), run(tmp_path, "titles", 2)
    second, third = run(tmp_path, "reviews 2", 3), run(tmp_path, "reviews", 4)
    every = [third, second, other, first]
    assert [previous_run(one, every) for one in (first, second, third)] == [None, first, second]


def test_what_differs_is_told_setting_by_setting_without_the_name(tmp_path: Path):
    first, second = run(tmp_path, "reviews", 1), run(tmp_path, "reviews 2", 2, "0.0002", 6)
    assert list_differences(second, first) == ["Learning rate: 2e-5 → 0.0002", "Epochs: 3 → 6"]


def test_a_run_whose_spec_is_gone_differs_in_nothing_that_is_known(tmp_path: Path):
    first, second = run(tmp_path, "reviews", 1), run(tmp_path, "reviews 2", 2)
    (first.path / "spec.yaml").unlink()
    assert list_differences(second, first) == []


@pytest.fixture(scope="module")
def found() -> Catalog:
    return catalog()


def run_with_engine(
    folder: Path, model_type: str = "bert", training: dict[str, Any] | None = None, **hardware: Any
) -> RunFolder:
    made = RunFolder(folder / "run")
    made.model.mkdir(parents=True)
    (made.model / "config.json").write_text(json.dumps({"model_type": model_type}))
    values = {
        "version": 1, "name": "reviews", "task": {"type": "text_classification"}, "model": {"name_or_path": "x"},
        "data": {}, "training": {"seed": 7, **(training or {})}, "hardware": {"engine": "torch", **hardware},
    }  # fmt: skip
    made.spec.write_text(spec_file.dump(values), encoding="utf-8")
    return made


def lacking(found: Catalog, name: str) -> Catalog:
    engines = [
        msgspec.structs.replace(one, missing="jax missing; install with: pip install 'burnish[jax]'")
        if one.name == name
        else one
        for one in found.engines
    ]
    return msgspec.structs.replace(found, engines=engines)


def test_each_engine_offers_the_other(found: Catalog, tmp_path: Path):
    assert run_copies.offer_engine(found, run_with_engine(tmp_path / "a")) == EngineOffer("jax", "JAX", continues=True)
    assert run_copies.offer_engine(found, run_with_engine(tmp_path / "b", engine="jax")) == EngineOffer(
        "torch", "PyTorch"
    )


def test_an_engine_that_is_not_installed_says_what_to_install(found: Catalog, tmp_path: Path):
    offer = run_copies.offer_engine(lacking(found, "jax"), run_with_engine(tmp_path))
    assert offer is not None
    assert offer.reason == "JAX cannot be used here: jax missing; install with: pip install 'burnish[jax]'."


def test_an_architecture_that_the_other_does_not_know_is_the_reason(found: Catalog, tmp_path: Path):
    offer = run_copies.offer_engine(found, run_with_engine(tmp_path, model_type="deberta-v2"))
    assert offer is not None
    assert offer.reason == "The JAX engine does not support the architecture 'deberta-v2'."


def test_an_optimizer_that_the_other_does_not_have_is_the_reason(found: Catalog, tmp_path: Path):
    engines = [msgspec.structs.replace(one, optimizers=["adamw", "sgd"]) for one in found.engines]
    fewer = msgspec.structs.replace(found, engines=engines)
    offer = run_copies.offer_engine(fewer, run_with_engine(tmp_path, training={"optimizer": "adafactor"}))
    assert offer is not None
    assert "not have 'adafactor'" in offer.reason


def test_a_model_that_is_not_here_is_no_reason(found: Catalog, tmp_path: Path):
    made = run_with_engine(tmp_path)
    (made.model / "config.json").unlink()
    assert run_copies.offer_engine(found, made) == EngineOffer("jax", "JAX", continues=True)


def test_a_run_without_a_readable_spec_has_no_offer(found: Catalog, tmp_path: Path):
    assert run_copies.offer_engine(found, RunFolder(tmp_path)) is None


def test_the_same_spec_but_for_the_engine_and_the_name(found: Catalog, tmp_path: Path):
    made = run_copies.duplicate_for_engine(found, run_with_engine(tmp_path, device="cpu", precision="float32"), "jax")
    assert made.values["hardware"] == {"engine": "jax", "device": "cpu", "precision": "float32"}
    assert made.values["name"] == "reviews-jax"
    assert made.values["training"]["seed"] == 7
    assert made.left_out == ()


def test_settings_of_the_one_engine_alone_are_left_out_and_named(found: Catalog, tmp_path: Path):
    made = run_copies.duplicate_for_engine(found, run_with_engine(tmp_path, threads=2), "jax")
    assert "threads" not in made.values["hardware"]
    assert made.left_out == ("hardware.threads",)


def test_a_default_is_left_out_without_words(found: Catalog, tmp_path: Path):
    assert run_copies.duplicate_for_engine(found, run_with_engine(tmp_path, threads=None), "jax").left_out == ()


def test_a_device_of_the_one_engine_alone_becomes_automatic(found: Catalog, tmp_path: Path):
    made = run_copies.duplicate_for_engine(found, run_with_engine(tmp_path, engine="jax", device="tpu"), "torch")
    assert made.values["hardware"]["device"] == "auto"
    assert made.left_out == ("hardware.device",)


def test_back_again_the_name_does_not_grow(found: Catalog, tmp_path: Path):
    first = run_with_engine(tmp_path / "a")
    there = run_copies.duplicate_for_engine(found, first, "jax").values
    second = run_with_engine(tmp_path / "b")
    second.spec.write_text(spec_file.dump(there), encoding="utf-8")
    assert run_copies.duplicate_for_engine(found, second, "torch").values["name"] == "reviews-torch"


def test_engines_are_at_least_two(found: Catalog):
    assert {one.name for one in found.engines if isinstance(one, EngineEntry)} >= {"torch", "jax"}
