"""Tests that a run's device is what its spec wishes, or that the wish is refused by its name."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.run.folder import DeviceRequest, ProcessRecord, RunFolder
from backend.contract.run.lock import hold_lock
from backend.contract.spec import RunSpec, run_spec
from backend.engines.cpu_device import emulates_bfloat16
from backend.engines.torch import devices as torch_devices
from backend.hardware import devices, run_sizes
from backend.hardware.devices import choose, make_request
from backend.training.setup import choose_device

PROCESSOR = Device("cpu", 0, "Processor", 8000, 4000, ["float32", "bfloat16"])
CARDS = [Device("cuda", index, f"Card {index}", 16000, 12000, ["float32", "float16"]) for index in range(2)]


def spec(**hardware: Any) -> RunSpec:
    return run_spec(
        {
            "task": {"type": "text_classification"},
            "model": {"name_or_path": "bert-base-uncased"},
            "data": {},
            "hardware": hardware,
        }
    )


def test_an_accelerator_goes_before_the_processor():
    chosen = choose(spec(), [*CARDS, PROCESSOR])
    assert (chosen.words, chosen.precision) == ("cuda:0", "float16")


def test_of_several_accelerators_the_freest_is_taken_and_the_first_of_equals():
    busy = Device("cuda", 0, "Card 0", 16000, 500, ["float32"])
    assert choose(spec(), [busy, CARDS[1], PROCESSOR]).words == "cuda:1"
    assert choose(spec(devices=[0]), [busy, CARDS[1], PROCESSOR]).words == "cuda:0"
    assert choose(spec(engine="jax"), [*CARDS, PROCESSOR]).words == "cuda:0"


def test_a_device_that_another_run_uses_is_the_last_choice():
    busy = Device("cuda", 1, "Card 1", 16000, 500, ["float32"])
    assert choose(spec(), [CARDS[0], busy, PROCESSOR], taken=frozenset({"cuda:0"})).words == "cuda:1"
    shared = choose(spec(), [CARDS[0], PROCESSOR], taken=frozenset({"cuda:0"}))
    assert shared.words == "cuda:0"
    assert "another run uses cuda:0 too" in shared.warning


def test_runs_that_start_at_the_same_moment_choose_different_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    meeting = Barrier(2)

    def choose_together(*given: Any, **options: Any) -> devices.DeviceChoice:
        with suppress(BrokenBarrierError):  # only one of them chooses at a time
            meeting.wait(0.2)
        return choose(*given, **options)

    monkeypatch.setattr(devices, "choose", choose_together)
    folders = [RunFolder(tmp_path / name) for name in ("one", "two")]
    with ExitStack() as stack:
        for folder in folders:
            folder.path.mkdir()
            folder.spec.touch()
            folder.write_process_record(ProcessRecord(1, "host", "boot", 1, 1, 0.0))
            stack.enter_context(hold_lock(folder.lock))
        with ThreadPoolExecutor(2) as pool:
            chosen = pool.map(lambda folder: choose_device(folder, spec(), lambda: [*CARDS, PROCESSOR]).words, folders)
        assert sorted(chosen) == ["cuda:0", "cuda:1"]


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        ({}, DeviceRequest(1, ("cuda:0", "cuda:1"))),
        ({"processes": 2}, DeviceRequest(2, ("cuda:0", "cuda:1"))),
        ({"devices": [1]}, DeviceRequest(1, ("cuda:1",))),
        ({"device": "cpu"}, DeviceRequest(1, ("cpu",))),
        ({"device": "cpu", "processes": 2}, DeviceRequest(1, ("cpu",))),
    ],
)
def test_a_queued_run_waits_for_as_many_devices_as_it_needs(hardware: dict[str, Any], expected: DeviceRequest):
    assert make_request(spec(**hardware), [*CARDS, PROCESSOR]) == expected


def test_bfloat16_on_a_processor_without_units_for_it_is_called_slow():
    emulating = msgspec.structs.replace(PROCESSOR, emulates_bfloat16=True)
    assert "emulates" in choose(spec(precision="bfloat16"), [emulating]).warning
    assert not choose(spec(precision="bfloat16"), [PROCESSOR]).warning
    assert not choose(spec(), [emulating]).warning


@pytest.mark.parametrize(
    ("description", "emulates"),
    [
        ("processor: 0\nflags\t\t: fpu avx2 avx512f avx512_vnni\n", True),
        ("flags\t\t: fpu avx512f avx512_bf16 amx_tile\n", False),
        ("Features\t: fp asimd bf16 i8mm\n", False),
        ("Features\t: fp asimd\n", True),
        ("hardware: unknown\n", False),
        (None, False),
    ],
)
def test_the_flags_of_the_processor_tell_whether_it_has_bfloat16(
    tmp_path: Path, description: str | None, emulates: bool
):
    if description is not None:
        (tmp_path / "cpuinfo").write_text(description)
    assert emulates_bfloat16(tmp_path / "cpuinfo") is emulates


def test_the_numbered_device_is_taken():
    assert choose(spec(devices=[1]), [*CARDS, PROCESSOR]).words == "cuda:1"


def test_an_engine_that_can_takes_several_in_the_order_of_the_spec():
    chosen = choose(spec(engine="jax", devices=[1, 0]), [*CARDS, PROCESSOR])
    assert (chosen.names, chosen.words) == (("cuda:1", "cuda:0"), "cuda:1, cuda:0")


def test_torch_takes_a_process_for_each_device():
    assert choose(spec(devices=[1, 0]), [*CARDS, PROCESSOR]).names == ("cuda:1", "cuda:0")
    assert choose(spec(processes=2), [*CARDS, PROCESSOR]).names == ("cuda:0", "cuda:1")


def test_processes_share_the_processor_and_its_memory():
    two = spec(processes=2, device="cpu")
    chosen = choose(two, [*CARDS, PROCESSOR])
    assert (chosen.names, chosen.words) == (("cpu", "cpu"), "cpu × 2")
    assert run_sizes.available_mb(two, chosen.device) == PROCESSOR.free_mb / 2


@pytest.mark.parametrize("hardware", [{"processes": 2, "device": "cpu"}, {"devices": [0, 1]}])
def test_several_processes_are_refused_on_windows(hardware: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InputError, match="WSL"):
        choose(spec(**hardware), [*CARDS, PROCESSOR])


def test_of_several_the_fullest_decides_what_fits():
    full = Device("cuda", 1, "Card 1", 16000, 500, ["float32", "float16"])
    assert choose(spec(engine="jax", devices=[0, 1]), [CARDS[0], full]).device.free_mb == 500


def test_the_processor_is_taken_where_there_is_nothing_else():
    chosen = choose(spec(), [PROCESSOR])
    assert (chosen.words, chosen.precision) == ("cpu", "float32")


@pytest.mark.parametrize(
    ("hardware", "field"),
    [
        ({"device": "mps"}, "hardware.device"),
        ({"devices": [7]}, "hardware.devices"),
        ({"devices": [0, 1], "processes": 1}, "hardware.processes"),
        ({"devices": [0, 1], "processes": 3}, "hardware.processes"),
        ({"processes": 3}, "hardware.processes"),
        ({"engine": "jax", "devices": [0, 0]}, "hardware.devices"),
        ({"engine": "jax", "devices": [0, 7]}, "hardware.devices"),
        ({"precision": "bfloat16"}, "hardware.precision"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(hardware: dict[str, Any], field: str):
    with pytest.raises(InputError) as refusal:
        choose(spec(**hardware), [*CARDS, PROCESSOR])
    assert refusal.value.field == field


T5_NAMES = (
    "google/mt5-small",
    "google/flan-t5-base",
    "google/byt5-small",
    "csebuetnlp/mT5_multilingual_XLSum",
    "google/pegasus-xsum",
)


def with_model(name: str, **hardware: Any) -> RunSpec:
    base = spec(**hardware)
    return base.model_copy(update={"model": base.model.model_copy(update={"name_or_path": name})})


@pytest.mark.parametrize("name", T5_NAMES)
def test_auto_never_takes_float16_for_a_model_of_the_t5_kind(name: str):
    chosen = choose(with_model(name), [*CARDS, PROCESSOR])
    assert (chosen.precision, chosen.reason) == ("float32", "this model overflows in float16")


@pytest.mark.parametrize("name", ["bert-base-uncased", "facebook/bart-base", "Helsinki-NLP/opus-mt-en-es", "gpt2"])
def test_other_models_take_float16_where_there_is_nothing_better(name: str):
    assert choose(with_model(name), [*CARDS, PROCESSOR]).precision == "float16"


def test_a_folders_own_configuration_goes_before_its_name(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "mt5"}')
    assert choose(with_model(str(tmp_path)), [*CARDS, PROCESSOR]).precision == "float32"


def test_a_cached_hub_models_configuration_goes_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cached = tmp_path / "models--org--translator"
    (cached / "snapshots" / "abc").mkdir(parents=True)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    (cached / "snapshots" / "abc" / "config.json").write_text('{"model_type": "t5"}')
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert choose(with_model("org/translator"), [*CARDS, PROCESSOR]).precision == "float32"


def test_bfloat16_is_taken_for_t5_where_there_is_one():
    card = Device("cuda", 0, "Card", 16000, 12000, ["float32", "float16", "bfloat16"])
    assert choose(with_model("google/mt5-small"), [card]).precision == "bfloat16"


def test_float16_by_hand_is_obeyed_and_explained_beforehand():
    chosen = choose(with_model("google/mt5-small", precision="float16"), [*CARDS, PROCESSOR])
    assert chosen.precision == "float16"
    assert "overflow in it" in chosen.warning


def test_a_real_card_has_less_free_memory_once_something_is_in_it():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    before = torch_devices.devices()
    assert [one.kind for one in before] == ["cuda"] * torch.cuda.device_count() + ["cpu"]
    held = torch.empty(1 << 29, dtype=torch.uint8, device="cuda:0")
    after = torch_devices.devices()[0]
    assert before[0].free_mb - after.free_mb > 0.8 * held.nbytes / 1e6
    assert 0 < after.free_mb < after.memory_mb


def test_float16_by_hand_needs_no_words_for_other_models():
    assert choose(spec(precision="float16"), [*CARDS, PROCESSOR]).warning == ""


OLD = Device("cuda", 0, "T4", 16000, 15000, ["float32", "float16"])
NEW = Device("cuda", 1, "A100", 40000, 10000, ["float32", "float16", "bfloat16"])


def test_of_devices_that_differ_precision_is_what_all_can_compute_in():
    chosen = choose(spec(devices=[0, 1]), [OLD, NEW, PROCESSOR])
    assert (chosen.device, chosen.precision) == (NEW, "float16")
    assert "T4, A100 differ; every step waits for the slowest" in chosen.warning
    with pytest.raises(InputError, match="T4 does not support bfloat16"):
        choose(spec(devices=[0, 1], precision="bfloat16"), [OLD, NEW, PROCESSOR])


def test_a_run_that_takes_the_processor_for_lack_of_a_known_gpu_says_so():
    alone = msgspec.structs.replace(PROCESSOR, note="PyTorch sees no GPU")
    assert (
        choose(spec(), [alone]).warning == "hardware.device: the run uses the processor, because PyTorch sees no GPU."
    )
    assert choose(spec(device="cpu"), [alone]).warning == ""


class Cards:
    """What torch.cuda and torch.xpu say of two cards, of which the second answers no question about its memory."""

    def __init__(self, **properties: Any) -> None:
        self._properties = SimpleNamespace(name="Card", total_memory=16e9, **properties)

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 2

    def get_device_properties(self, index: int) -> SimpleNamespace:
        return self._properties

    def mem_get_info(self, index: int) -> tuple[int, int]:
        if index == 1:
            raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable")
        return 12_000_000_000, 16_000_000_000


def stand_in_torch(monkeypatch: pytest.MonkeyPatch, hip: str | None = None, **kinds: Any) -> list[Device]:
    nothing = SimpleNamespace(is_available=lambda: False)
    torch = SimpleNamespace(
        cuda=kinds.get("cuda", nothing), xpu=kinds.get("xpu", nothing),
        backends=SimpleNamespace(mps=nothing), version=SimpleNamespace(hip=hip),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(torch_devices, "may_have_accelerator", lambda: True)
    return torch_devices.devices()


def test_a_card_that_cannot_be_used_now_hides_no_other(monkeypatch: pytest.MonkeyPatch):
    first, second, processor = stand_in_torch(monkeypatch, cuda=Cards(major=8))
    assert (first.free_mb, second.free_mb, processor.kind) == (12_000, 0, "cpu")
    assert choose(spec(), [second, first, processor]).words == "cuda:0"


@pytest.mark.parametrize(
    ("hip", "properties", "has_bfloat16"),
    [
        (None, {"major": 8}, True),
        (None, {"major": 7}, False),
        ("6.4", {"major": 9, "gcnArchName": "gfx906:sramecc+:xnack-"}, False),
        ("6.4", {"major": 9, "gcnArchName": "gfx942:sramecc+:xnack-"}, True),
        ("6.4", {"major": 10, "gcnArchName": "gfx1030"}, False),
        ("6.4", {"major": 11, "gcnArchName": "gfx1100"}, True),
    ],
)
def test_bfloat16_is_offered_on_cards_that_have_units_for_it(
    monkeypatch: pytest.MonkeyPatch, hip: str | None, properties: dict[str, Any], has_bfloat16: bool
):
    first, *_ = stand_in_torch(monkeypatch, hip, cuda=Cards(**properties))
    assert ("bfloat16" in first.precisions) is has_bfloat16


def test_gpus_of_intel_are_listed(monkeypatch: pytest.MonkeyPatch):
    found = stand_in_torch(monkeypatch, xpu=Cards())
    assert [(one.kind, one.index, one.free_mb) for one in found[:2]] == [("xpu", 0, 12_000), ("xpu", 1, 0)]
    assert choose(spec(device="xpu"), found).words == "xpu:0"


def test_a_driver_whose_gpu_pytorch_does_not_see_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch_devices, "_device_files", lambda names: ["nvidiactl"] if "nvidiactl" in names else [])
    [processor] = stand_in_torch(monkeypatch)
    assert "has the driver of one" in choose(spec(), [processor]).warning
