"""An engine that is not here, or that does not take the spec, is refused before anything is written."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from backend import registry
from backend.contract import spec_file
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.resources import resource
from backend.contract.rpc.plan import DeviceList
from backend.contract.spec import RunSpec, TrainingSection, run_spec
from backend.engines.jax import JaxEntry
from backend.engines.jax.optimizer import Optimizer
from backend.hardware import devices
from backend.inference.spec import spec_of
from backend.preflight import checks
from backend.preflight.engine_choice import check_engine, to_ask
from backend.preflight.resolve import resolve

BERT = resource("demo", "bert-tiny")
TRAIN = resource("demo", "sentiment", "validation.csv")


def spec(engine: str = "jax", training: dict[str, Any] | None = None, **hardware: Any) -> RunSpec:
    return run_spec(
        {
            "task": {"type": "text_classification"},
            "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
            "data": {"source": "files", "train": str(TRAIN), "columns": {"text": "text", "label": "label"}},
            "training": training or {},
            "hardware": {"engine": engine, **hardware},
        }
    )


def resolved(**hardware: Any) -> dict[str, Any]:
    """The `hardware` section as a run keeps it, complete."""
    values = spec(**hardware).model_dump(mode="json")
    return resolve(values, TRAIN.parent).model_dump(mode="json")["hardware"]


def refused(given: RunSpec) -> InputError:
    with pytest.raises(InputError) as refusal:
        checks.check(given)
    return refusal.value


def test_an_engine_whose_packages_are_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    from backend import catalog_building

    monkeypatch.setattr(catalog_building, "_is_installed", lambda name: name not in ("jax", "flax", "optax"))
    said = str(refused(spec()))
    assert said == (
        "hardware.engine: JAX cannot be used here: jax, flax, optax missing; install with: pip install 'burnish[jax]'"
    )


def test_an_architecture_that_it_does_not_know_is_refused_before_the_run(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "bloom"}')
    check_engine(spec("torch"), tmp_path)
    with pytest.raises(
        InputError, match=r"^hardware\.engine: the JAX engine does not support .*'bloom'; .*choose PyTorch"
    ):
        check_engine(spec(), tmp_path)


def test_a_family_with_a_dash_in_its_name_is_known(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    check_engine(spec(), tmp_path)


def test_an_optimizer_that_it_does_not_have_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(JaxEntry, "optimizers", ("adamw", "sgd"))
    found = refused(spec(training={"optimizer": "adafactor"}))
    assert found.field == "training.optimizer"
    assert "adafactor" in str(found)


def test_the_catalog_lists_the_optimizers_that_the_engine_makes():
    made = []
    for name in registry.names("optimizer"):
        with suppress(InputError):
            Optimizer(TrainingSection(learning_rate=2e-5, optimizer=name), frozenset(), {"weight": 1.0})
            made.append(name)
    assert tuple(made) == JaxEntry.optimizers


@pytest.mark.parametrize(
    ("engine", "way_out"), [("jax", r"jax\[tpu\].*burnish doctor"), ("torch", "hardware.engine: jax")]
)
def test_a_tpu_that_nobody_sees_is_refused_with_the_way_out(engine: str, way_out: str):
    with pytest.raises(InputError, match=rf"^hardware\.device: there is no tpu here; available: cpu; .*{way_out}"):
        checks.check(spec(engine, device="tpu"))


def test_why_jax_could_not_list_its_devices_is_part_of_the_refusal(monkeypatch: pytest.MonkeyPatch):
    note = "jax could not list its devices: the TPU is already in use by process 4711"
    monkeypatch.setattr(
        devices,
        "query_devices",
        lambda engine, environment=None: DeviceList([Device("cpu", 0, "Processor", 1, 1, note=note)], note),
    )
    assert "in use by process 4711" in str(refused(spec(device="tpu")))


def test_a_run_from_a_machine_with_jax_is_asked_with_what_is_here(monkeypatch: pytest.MonkeyPatch):
    from backend import catalog_building

    trained = {"engine": "jax", "device": "tpu", "precision": "bfloat16"}
    assert to_ask(trained) == trained
    monkeypatch.setattr(catalog_building, "_is_installed", lambda name: name not in ("jax", "flax", "optax"))
    assert to_ask(trained) == {"engine": "torch"}
    assert to_ask({"threads": 1}) == {"threads": 1}


def test_a_run_that_jax_trained_predicts_where_there_is_no_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from backend import catalog_building

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    values = spec(device="tpu").model_dump(mode="json")
    (tmp_path / "spec.yaml").write_text(spec_file.dump(values), encoding="utf-8")
    (tmp_path / "events.jsonl").touch()
    monkeypatch.setattr(catalog_building, "_is_installed", lambda name: name not in ("jax", "flax", "optax"))
    found = spec_of(str(tmp_path), None, []).hardware
    assert (found.engine, found.device) == ("torch", "auto")
    assert spec_of(str(tmp_path), None, ["hardware.engine=jax"]).hardware.engine == "jax"


def test_what_is_stored_for_one_engine_does_not_keep_another_from_being_asked():
    stored = resolved(engine="jax")
    assert {"parallelism", "tensor_parallel"} <= stored.keys()
    asked = to_ask(stored, "torch")
    assert not {"parallelism", "tensor_parallel"} & asked.keys()
    assert "threads" not in to_ask(resolved(engine="torch"), "jax")
    assert to_ask(stored) == {key: value for key, value in stored.items() if key != "processes"}


def test_one_host_is_enough_to_ask_a_run_of_several():
    asked = to_ask(resolved(engine="jax", hosts=2, coordinator="10.0.0.1:8476", tensor_parallel=2))
    assert not {"hosts", "coordinator", "tensor_parallel"} & asked.keys()


def test_one_device_is_enough_to_ask_a_run_of_several():
    asked = to_ask(resolved(engine="jax", devices=[0, 1, 2, 3], parallelism="fsdp"))
    assert not {"devices", "parallelism", "tensor_parallel"} & asked.keys()
    assert asked["engine"] == "jax"
    assert to_ask(resolved(engine="jax", devices=[1]))["devices"] == [1]


def test_an_optimizer_that_the_engine_does_not_have_keeps_nobody_from_asking():
    check_engine(spec(training={"optimizer": "of_a_plugin"}), BERT, trains=False)


def test_a_head_that_a_family_does_not_have_is_refused_before_the_run():
    with pytest.raises(InputError, match="has no question answering beam for bert; choose PyTorch"):
        check_engine(spec(), BERT, Head.QUESTION_ANSWERING_BEAM)


@pytest.mark.parametrize("model_type", ["electra", "bert"])
def test_a_spec_of_the_removed_bridge_opens_and_cannot_be_started(tmp_path: Path, model_type: str):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    opened = resolve(spec().model_dump(mode="json") | {"hardware": {"engine": "jax", "bridge": True}}, tmp_path)
    with pytest.raises(
        InputError, match=r"^hardware\.bridge: .*; start a new run with PyTorch \(hardware.engine: torch\)$"
    ):
        check_engine(opened, tmp_path)


def test_a_spec_of_the_removed_bridge_trains_with_pytorch(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "electra"}')
    check_engine(spec("torch", bridge=True), tmp_path)


def test_a_spec_that_says_no_bridge_is_fine_and_says_it_no_more():
    given = spec(bridge=False)
    check_engine(given, BERT)
    assert "bridge" not in given.model_dump()["hardware"]


def test_a_run_of_the_removed_bridge_is_asked_with_pytorch():
    assert to_ask({"engine": "jax", "bridge": True, "device": "tpu"}) == {"engine": "torch"}
    assert to_ask({"engine": "jax", "bridge": False}) == {"engine": "jax"}
    assert to_ask({"engine": "jax", "bridge": True}, "jax") == {"engine": "jax"}


def test_jax_refuses_several_processes_in_favor_of_devices():
    assert resolved(engine="jax", processes=1)["processes"] == 1
    assert resolved(engine="torch", processes=2)["processes"] == 2
    with pytest.raises(InputError, match=r"^hardware\.processes: JAX uses all devices of a computer from one process"):
        resolved(engine="jax", processes=2)


def test_more_processes_than_rows_of_a_batch_are_refused():
    with pytest.raises(InputError, match=r"^hardware\.processes: 33 processes cannot share the 32 rows of a batch"):
        resolved(engine="torch", processes=33, training={"batch_size": 32})
    auto = spec("torch", processes=33)
    with pytest.raises(InputError, match=r"^hardware\.processes: 33 processes cannot share"):
        checks.check(auto)
    with pytest.raises(InputError, match=r"^hardware\.devices: the processes of 4 devices cannot share the 2 rows"):
        resolved(engine="torch", devices=[0, 1, 2, 3], training={"batch_size": 2})


def test_one_process_is_enough_to_ask_a_run_of_several():
    assert "processes" not in to_ask(resolved(engine="torch", processes=2))
