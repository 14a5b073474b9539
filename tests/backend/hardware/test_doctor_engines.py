"""The doctor's words on the engines: one is enough, what JAX does not see, what clashes, and what mends it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.contract.catalog import Device, EngineEntry
from backend.contract.processes import python_command
from backend.contract.rpc.plan import DeviceList
from backend.hardware import doctor_engines
from backend.hardware.doctor_engines import clashes, hidden_devices, missing_gpu, present, visible_devices

JAX = EngineEntry("jax", "JAX", "", {})
TORCH = EngineEntry("torch", "PyTorch", "", {})
NOTHING = dict.fromkeys(("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu", "torch"), "")
HERE = NOTHING | {"jax": "0.10.2", "jaxlib": "0.10.2"}


def lacking(name: str, engine: EngineEntry) -> EngineEntry:
    return EngineEntry(engine.name, engine.title, "", {}, missing=f"{name} missing" if name == engine.name else "")


@pytest.mark.parametrize("absent", ["jax", "torch"])
def test_one_engine_is_enough(absent: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor_engines, "engines", lambda: [lacking(absent, JAX), lacking(absent, TORCH)])
    found = list(doctor_engines.libraries())
    assert "missing" not in {one.state for one in found}
    assert any("engine is ready" in one.text for one in found)


def test_without_any_engine_the_command_is_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor_engines, "engines", lambda: [lacking("torch", TORCH)])
    [found, *_] = doctor_engines.libraries()
    assert (found.state, found.mend) == ("missing", f"{sys.executable} -m pip install 'burnish[torch]'")


def test_what_jax_sees_is_listed_as_jaxs():
    chips = [Device("tpu", number, "TPU v4", 32000, 31000, ["float32", "bfloat16"]) for number in range(2)]
    said = [
        one.text
        for one in visible_devices(JAX, DeviceList([*chips, Device("cpu", 0, "Processor", 8000, 4000, ["float32"])]))
    ]
    assert said[1] == "JAX detected tpu 1: TPU v4, 31.0 GB free, float32, bfloat16"
    assert said[2].startswith("JAX detected cpu 0: Processor")


@pytest.mark.parametrize(("kind", "build"), [("tpu", "jax[tpu]==0.10.2"), ("cuda", "jax[cuda13]==0.10.2")])
def test_an_accelerator_that_jax_does_not_see_is_mended_by_its_build(kind: str, build: str):
    [found] = hidden_devices(DeviceList([Device("cpu", 0, "Processor", 1, 1)]), {kind}, "0.10.2")
    assert build in found.mend
    assert list(hidden_devices(DeviceList([Device(kind, 0, "it", 1, 1)]), {kind}, "0.10.2")) == []


def test_chips_are_told_from_network_cards(tmp_path: Path):
    for name, device in (("0000:00:04.0", "0x0042"), ("0000:00:05.0", "0x0063")):
        card = tmp_path / "sys" / "bus" / "pci" / "devices" / name
        card.mkdir(parents=True)
        (card / "vendor").write_text("0x1ae0\n")
        (card / "device").write_text(f"{device}\n")
    assert present(tmp_path) == {"tpu"}
    (card / "device").write_text("0x0042\n")
    assert present(tmp_path) == set()


@pytest.mark.parametrize(
    ("versions", "environment", "words", "mend"),
    [
        ({"jaxlib": "0.9.0"}, {}, "are not compatible", "jaxlib==0.10.2"),
        ({"jax-cuda13-plugin": "0.9.0"}, {}, "GPUs", "jax[cuda13]==0.10.2"),
        ({"jax-cuda12-plugin": "0.10.2", "jax-cuda13-plugin": "0.10.2"}, {}, "conflict", "uninstall jax-cuda12-plugin"),
        ({"jax-cuda13-plugin": "0.10.2", "libtpu": "0.0.3"}, {}, "for both GPUs and TPUs", "uninstall libtpu"),
        ({"jax-cuda13-plugin": "0.10.2", "torch": "2.13.0"}, {}, "both include CUDA libraries", "in a separate environment"),
        ({}, {"JAX_PLATFORMS": "cpu"}, "JAX ignores all other devices", "unset JAX_PLATFORMS"),
    ],
)  # fmt: skip
def test_a_clash_is_named_with_what_mends_it(versions: dict, environment: dict, words: str, mend: str):
    [found] = clashes(HERE | versions, environment)
    assert words in found.text
    assert mend in found.mend


def test_what_belongs_together_clashes_with_nothing():
    assert list(clashes(HERE | {"torch": "2.13.0+cpu", "jax-cuda13-plugin": "0.10.2"}, {"JAX_PLATFORMS": ""})) == []


def test_the_processor_is_listed_by_a_child_that_has_ended():
    done = subprocess.run(
        python_command("backend.engines.jax.devices"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert '"kind":"cpu"' in done.stdout


@pytest.mark.parametrize(
    ("vendor", "node_mode", "builds", "environment", "words"),
    [
        ("", None, {"cuda"}, {}, "has none that PyTorch can use"),
        ("0x10de", None, {"cuda"}, {}, "its driver is not running"),
        ("0x10de", 0o666, set(), {}, "was built for CPUs only"),
        ("0x10de", 0o666, {"cuda"}, {"CUDA_VISIBLE_DEVICES": ""}, "hides every GPU"),
        ("0x10de", 0o666, {"cuda"}, {}, "cannot use the NVIDIA driver"),
        ("0x1002", None, {"cuda"}, {}, "not built for ROCm"),
    ],
)
def test_a_missing_gpu_has_a_reason_and_what_would_change_it(
    tmp_path: Path, vendor: str, node_mode: int | None, builds: set[str], environment: dict[str, str], words: str
) -> None:
    if vendor:
        card = tmp_path / "sys" / "bus" / "pci" / "devices" / "0000:01:00.0"
        card.mkdir(parents=True)
        (card / "vendor").write_text(f"{vendor}\n")
        (card / "class").write_text("0x030000\n")
    if node_mode is not None:
        (tmp_path / "dev").mkdir()
        (tmp_path / "dev" / "nvidiactl").touch(node_mode)
    found = missing_gpu(tmp_path, builds, environment)
    assert found.text.startswith("No GPU found: ")
    assert words in found.text
    assert found.mend
    assert found.about == "device"


def test_a_node_that_may_not_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may use everything
    assert "permission to use" in missing_gpu(tmp_path, {"cuda"}, {}).text
