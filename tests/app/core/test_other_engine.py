"""A run is repeated with the other engine: which one, why not, and what of its spec that one does not know."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.draft import other_engine
from app.core.draft.other_engine import Offer
from backend.catalog import catalog
from backend.contract import spec_file
from backend.contract.catalog import Catalog, EngineEntry
from backend.contract.run.folder import RunFolder


@pytest.fixture(scope="module")
def found() -> Catalog:
    return catalog()


def run(folder: Path, model_type: str = "bert", training: dict[str, Any] | None = None, **hardware: Any) -> RunFolder:
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
    assert other_engine.offer(found, run(tmp_path / "a")) == Offer("jax", "JAX", continues=True)
    assert other_engine.offer(found, run(tmp_path / "b", engine="jax")) == Offer("torch", "PyTorch")


def test_an_engine_that_is_not_installed_says_what_to_install(found: Catalog, tmp_path: Path):
    offer = other_engine.offer(lacking(found, "jax"), run(tmp_path))
    assert offer is not None
    assert offer.reason == "JAX cannot be used here: jax missing; install with: pip install 'burnish[jax]'."


def test_an_architecture_that_the_other_does_not_know_is_the_reason(found: Catalog, tmp_path: Path):
    offer = other_engine.offer(found, run(tmp_path, model_type="deberta-v2"))
    assert offer is not None
    assert offer.reason == "The JAX engine does not know the architecture 'deberta-v2'."


def test_an_optimizer_that_the_other_does_not_have_is_the_reason(found: Catalog, tmp_path: Path):
    engines = [msgspec.structs.replace(one, optimizers=["adamw", "sgd"]) for one in found.engines]
    fewer = msgspec.structs.replace(found, engines=engines)
    offer = other_engine.offer(fewer, run(tmp_path, training={"optimizer": "adafactor"}))
    assert offer is not None
    assert "no 'adafactor'" in offer.reason


def test_a_model_that_is_not_here_is_no_reason(found: Catalog, tmp_path: Path):
    made = run(tmp_path)
    (made.model / "config.json").unlink()
    assert other_engine.offer(found, made) == Offer("jax", "JAX", continues=True)


def test_a_run_without_a_readable_spec_has_no_offer(found: Catalog, tmp_path: Path):
    assert other_engine.offer(found, RunFolder(tmp_path)) is None


def test_the_same_spec_but_for_the_engine_and_the_name(found: Catalog, tmp_path: Path):
    made = other_engine.duplicate(found, run(tmp_path, device="cpu", precision="float32"), "jax")
    assert made.values["hardware"] == {"engine": "jax", "device": "cpu", "precision": "float32"}
    assert made.values["name"] == "reviews-jax"
    assert made.values["training"]["seed"] == 7
    assert made.left_out == ()


def test_settings_of_the_one_engine_alone_are_left_out_and_named(found: Catalog, tmp_path: Path):
    made = other_engine.duplicate(found, run(tmp_path, threads=2), "jax")
    assert "threads" not in made.values["hardware"]
    assert made.left_out == ("hardware.threads",)


def test_a_default_is_left_out_without_words(found: Catalog, tmp_path: Path):
    assert other_engine.duplicate(found, run(tmp_path, threads=None), "jax").left_out == ()


def test_a_device_of_the_one_engine_alone_becomes_automatic(found: Catalog, tmp_path: Path):
    made = other_engine.duplicate(found, run(tmp_path, engine="jax", device="tpu"), "torch")
    assert made.values["hardware"]["device"] == "auto"
    assert made.left_out == ("hardware.device",)


def test_back_again_the_name_does_not_grow(found: Catalog, tmp_path: Path):
    first = run(tmp_path / "a")
    there = other_engine.duplicate(found, first, "jax").values
    second = run(tmp_path / "b")
    second.spec.write_text(spec_file.dump(there), encoding="utf-8")
    assert other_engine.duplicate(found, second, "torch").values["name"] == "reviews-torch"


def test_engines_are_at_least_two(found: Catalog):
    assert {one.name for one in found.engines if isinstance(one, EngineEntry)} >= {"torch", "jax"}
