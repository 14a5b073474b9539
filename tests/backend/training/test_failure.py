"""What a run says of its failure: each recogniser meets the exception that the real library raises."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import table_of
from backend.contract.resources import resource
from backend.contract.run import events
from backend.contract.run.fixes import RunFix
from backend.contract.run.folder import RunFolder
from backend.engines.engine import StepNumbers, StepResult
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.memory import translate_out_of_memory
from backend.models import hub
from backend.training import loop
from backend.training.checkpoints import Checkpoints
from backend.training.event_log import EventLog, read_events
from backend.training.failures import disk_full
from backend.training.failures.failure import FailureContext, failure_event
from backend.training.pending_metrics import PendingSteps

HUGE = 1 << 46
BERT = resource("demo", "bert-tiny")


@pytest.fixture
def context(tmp_path: Path):
    """A run that has a plan, with changes to its spec."""

    def make(model: Path = BERT, planned: bool = True, **sections: Any) -> FailureContext:
        folder = RunFolder(tmp_path / "run")
        folder.path.mkdir()
        spec: dict[str, Any] = {
            "task": {"type": "text_classification"},
            "model": {"name_or_path": str(model)},
            "data": {"source": "demo"},
        }
        for name, values in sections.items():
            spec[name] = {**spec.get(name, {}), **values}
        folder.spec.write_text(spec_file.dump(spec), encoding="utf-8")
        said: list[events.Event] = [events.RunStarted(time=1, name="a", task="text_classification", model="m")]
        if planned:
            said.append(
                events.PlanMade(
                    time=2,
                    total_steps=9,
                    steps_per_epoch=9,
                    batch_size=16,
                    micro_batch_size=8,
                    accumulation=2,
                    epochs=1,
                )
            )
        folder.events.write_bytes(b"".join(map(events.encode, said)))
        return FailureContext(folder)

    return make


def ended(cause: Callable[[], Any], context: FailureContext) -> events.RunFinished:
    """The final event of what `cause` raises."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 (each library raises its own)
        cause()
    event = failure_event(raised.value, 3, context)
    assert events.decode(events.encode(event)) == msgspec.structs.replace(event, messages=table_of(event))
    return event


# Memory


def engine_without_room() -> None:
    with translate_out_of_memory():
        torch.empty(HUGE)


def jax_without_room() -> None:
    import jax  # takes seconds

    jax.block_until_ready(jax.jit(lambda value: jax.numpy.broadcast_to(value, (HUGE,)) * 2)(np.float32(1)))


@pytest.mark.parametrize(
    "cause",
    [lambda: torch.empty(HUGE), lambda: np.empty(1 << 55), engine_without_room, jax_without_room],
    ids=["torch", "numpy", "engine", "jax"],
)
def test_memory_that_runs_out_is_mended_by_half_as_many_rows(cause, context):
    event = ended(cause, context())
    assert event.code == "out_of_memory"
    assert event.mend == RunFix({"hardware.micro_batch_size": 4})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator of CUDA")
def test_memory_that_runs_out_on_cuda_is_mended_by_half_as_many_rows(context):
    event = ended(lambda: torch.empty(HUGE, device="cuda"), context())
    assert (event.code, event.mend) == ("out_of_memory", RunFix({"hardware.micro_batch_size": 4}))
    assert "accelerator" in event.message


@pytest.mark.parametrize("within_engine", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        "MPS backend out of memory (MPS allocated: 5.50 GB, max allowed: 20.40 GB). Tried to allocate 147.24 MB",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
)
def test_an_accelerator_without_room_is_known_by_what_it_says(words: str, within_engine: bool, context):
    def fail() -> None:
        with translate_out_of_memory() if within_engine else nullcontext():
            raise RuntimeError(words)

    event = ended(fail, context())
    assert (event.code, event.mend) == ("out_of_memory", RunFix({"hardware.micro_batch_size": 4}))
    assert "accelerator" in event.message


def test_memory_that_runs_out_before_training_asks_for_fewer_rows_of_data(context):
    event = ended(lambda: torch.empty(HUGE), context(planned=False))
    assert (event.code, event.mend) == ("out_of_memory", None)
    assert "data.max_rows" in event.hint


@pytest.mark.parametrize(("settings", "rows"), [({}, 32), ({"batch_size": 9}, 4)])
def test_memory_that_runs_out_in_an_evaluation_is_mended_by_half_of_its_rows(context, settings: dict, rows: int):
    here = context(evaluation=settings)
    stages = [events.StageStarted(time=3, stage=stage) for stage in ("training", "evaluating", "compiling")]
    with here.folder.events.open("ab") as file:
        file.write(b"".join(map(events.encode, stages)))
    event = ended(lambda: torch.empty(HUGE), here)
    assert (event.code, event.mend) == ("out_of_memory", RunFix({"evaluation.batch_size": rows}))


# Numbers


class Engine:
    """Computes a real division of nothing by nothing."""

    def read(self, results: list[StepResult]) -> list[StepNumbers]:
        nothing = float(torch.zeros(()) / torch.zeros(()))
        return [StepNumbers(nothing, 1.0) for _ in results]


def loss_without_value(folder: RunFolder, step: int = 2) -> None:
    log = EventLog(folder.path / "other.jsonl")
    waiting = PendingSteps(Engine(), log, lambda: 0.0)  # type: ignore[arg-type]
    event = events.StepFinished(
        time=0, step=step, epoch=0, loss=None, learning_rate=1, gradient_norm=None, rows=1, tokens=1, seconds=0
    )
    try:
        waiting.add(event, StepResult(0.0, 0.0))
    finally:
        log.close()


def gradient_without_value() -> None:
    with torch.autograd.detect_anomaly(check_nan=True):
        value = torch.zeros(1, requires_grad=True)
        (value.sqrt() * 0).sum().backward()


def jax_without_value() -> None:
    import jax  # takes seconds

    with jax.debug_nans(True):
        jax.numpy.log(jax.numpy.float32(-1)).block_until_ready()


@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning", "ignore:Error detected in:UserWarning")
@pytest.mark.parametrize("cause", [gradient_without_value, jax_without_value], ids=["torch", "jax"])
def test_what_is_no_number_is_mended_by_a_tenth_of_the_learning_rate(cause, context):
    event = ended(cause, context(training={"learning_rate": 0.002}))
    assert (event.code, event.mend) == ("nan_loss", RunFix({"training.learning_rate": 0.0002}))


def test_a_loss_that_is_no_number_in_half_precision_is_mended_by_whole_precision(context):
    here = context(hardware={"precision": "float16"})
    event = ended(lambda: loss_without_value(here.folder), here)
    assert (event.code, event.mend) == ("nan_loss", RunFix({"hardware.precision": "float32"}))
    assert "step 2" in event.message


def test_half_precision_that_was_chosen_by_itself_is_mended_by_whole_precision_too(context):
    here = context()
    with here.folder.events.open("ab") as file:
        file.write(events.encode(events.RunResumed(time=3, attempt=2, from_step=0, precision="float16")))
    event = ended(lambda: loss_without_value(here.folder), here)
    assert (event.code, event.mend) == ("nan_loss", RunFix({"hardware.precision": "float32"}))


def computing_in(here: FailureContext, precision: str) -> FailureContext:
    with here.folder.events.open("ab") as file:
        file.write(events.encode(events.RunResumed(time=3, attempt=2, from_step=0, precision=precision)))
    return here


@pytest.mark.parametrize(("precision", "is_offered"), [("float32", False), ("bfloat16", True)])
def test_whole_precision_is_proposed_only_where_it_is_not_computed_in(context, precision: str, is_offered: bool):
    here = computing_in(context(training={"warmup": 0.1}), precision)
    event = ended(lambda: loss_without_value(here.folder), here)
    assert ("float32" in event.hint) is is_offered
    assert "lengthen training.warmup" in event.hint
    assert "checkpoints" not in event.message


def test_checkpoints_are_named_where_there_are_any(context):
    here = context()
    Checkpoints(here.folder).save(1, lambda folder: (folder / "weights").touch())
    event = ended(lambda: loss_without_value(here.folder), here)
    assert event.message == "the loss at step 2 is not a number; checkpoints from before it are kept"


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_a_loss_that_never_was_a_number_names_the_tensor_that_holds_none(context, tmp_path: Path, kind: str):
    from safetensors.torch import save_file as save_tensors  # takes seconds

    shutil.copytree(BERT, tmp_path / "model")
    broken = torch.ones(70, 70, dtype=getattr(torch, kind))
    broken[69, 3] = torch.nan
    tensors = {"sound.weight": torch.ones(3), "broken.weight": broken}
    save_tensors(tensors, tmp_path / "model" / "model.safetensors")
    here = computing_in(context(tmp_path / "model"), "float32")
    event = ended(lambda: loss_without_value(here.folder, step=1), here)
    assert (event.code, event.mend) == ("nan_loss", None)
    assert "broken.weight in model.safetensors" in event.message
    assert "learning_rate" not in event.hint


def test_a_loss_that_never_was_a_number_of_sound_weights_sends_to_the_data(context):
    here = computing_in(context(), "float32")
    event = ended(lambda: loss_without_value(here.folder, step=1), here)
    assert event.message == "the loss at step 1 is not a number, before any weights were updated"
    assert event.hint.startswith("Check the rows")
    assert event.mend is None


# Tokens


@pytest.fixture(scope="module")
def unpadded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model that names no padding, as GPT-2's first tokenizers did not."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast  # takes seconds

    folder = tmp_path_factory.mktemp("unpadded")
    words = Tokenizer(models.WordLevel({"<end>": 0, "one": 1, "two": 2, "words": 3}, unk_token="<end>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", unk_token="<end>").save_pretrained(folder)
    config = GPT2Config(vocab_size=4, n_embd=8, n_layer=1, n_head=1, n_positions=8, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def padding(folder: Path) -> None:
    from transformers import PreTrainedTokenizerFast  # takes seconds

    PreTrainedTokenizerFast.from_pretrained(folder)(["one", "two words"], padding=True)


def classifying(folder: Path) -> None:
    from transformers import GPT2ForSequenceClassification  # takes seconds

    GPT2ForSequenceClassification.from_pretrained(folder)(torch.ones(2, 3, dtype=torch.long))


@pytest.mark.parametrize("cause", [padding, classifying])
def test_a_missing_pad_token_is_mended_by_the_end_of_the_text(cause, context, unpadded: Path):
    event = ended(lambda: cause(unpadded), context(model=unpadded))
    assert event.code == "missing_pad_token"
    assert event.mend == RunFix({"model.tokenizer_options.pad_token": "<end>", "model.config.pad_token_id": 0})


def test_other_words_about_padding_are_not_taken_for_a_missing_pad_token(context):
    here = context()
    assert failure_event(ValueError("pad_token_id must be below the vocabulary's size"), 0, here).code == "unknown"
    own = InputError("model.tokenizer: one that does not have a padding token", "model.tokenizer")
    assert failure_event(own, 0, here).code == "input"


def test_a_pad_token_that_is_set_already_is_not_proposed_again(context, unpadded: Path):
    here = context(model={"name_or_path": str(unpadded), "tokenizer_options": {"pad_token": "<end>"}})
    event = ended(lambda: padding(unpadded), here)
    assert (event.code, event.mend) == ("missing_pad_token", None)


def embedding(positions: int, length: int) -> None:
    torch.nn.Embedding(positions, 2)(torch.arange(length))


def test_rows_beyond_the_positions_of_a_model_are_mended_by_its_limit(context):
    event = ended(lambda: embedding(512, 600), context(task={"max_length": 600}))
    assert (event.code, event.mend) == ("sequence_too_long", RunFix({"task.max_length": 512}))


def test_the_check_before_training_is_mended_by_the_limit_too(context):
    from backend.preflight.checks import check_model

    here = context(task={"max_length": 600})
    event = ended(lambda: check_model(here.spec, here.model), here)
    assert (event.code, event.mend) == ("sequence_too_long", RunFix({"task.max_length": 512}))


def test_the_same_exception_of_a_row_that_fits_is_not_taken_for_a_long_one(context):
    event = ended(lambda: embedding(30_522, 30_600), context(task={"max_length": 128}))
    assert (event.code, event.mend) == ("unknown", None)


# Files


@pytest.fixture
def pickled(tmp_path: Path) -> Path:
    folder = tmp_path / "pickled"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((resource("demo", "bert-tiny") / name).read_bytes())
    torch.save({"weight": torch.zeros(1)}, folder / "pytorch_model.bin")
    return folder


def locating(folder: Path) -> None:
    from backend.models.location import locate

    locate(str(folder), "main", cache=folder / "cache", offline=True)


def loading_safely(folder: Path) -> None:
    from transformers import BertModel  # takes seconds

    BertModel.from_pretrained(folder, use_safetensors=True)


@pytest.mark.parametrize("cause", [locating, loading_safely])
def test_pickled_weights_are_mended_by_a_consent(cause, context, pickled: Path):
    event = ended(lambda: cause(pickled), context(model=pickled))
    assert (event.code, event.mend) == ("pickled_weights", RunFix(convert_weights=True))
    assert event.mend is not None
    assert "--convert-weights" in event.mend.command(Path("run"))


def test_a_pickle_with_a_program_in_it_is_never_opened(context, pickled: Path):
    torch.save(os.system, pickled / "pytorch_model.bin")
    event = ended(lambda: torch.load(pickled / "pytorch_model.bin", weights_only=True), context(model=pickled))
    assert (event.code, event.mend) == ("pickled_weights", None)


@pytest.fixture
def small_files():
    """No file may grow beyond a kilobyte; the system answers as on a disk without room."""
    limits = pytest.importorskip("resource", reason="this system limits no file sizes")
    before = limits.getrlimit(limits.RLIMIT_FSIZE)
    limits.setrlimit(limits.RLIMIT_FSIZE, (1000, before[1]))
    yield
    limits.setrlimit(limits.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(bytes(9000)),
        lambda path: np.zeros(9000).tofile(path),
        lambda path: save_file({"weight": np.zeros(9000)}, path),
    ],
    ids=["file", "numpy", "safetensors"],
)
def test_a_full_disk_is_recognized_from_what_every_library_raises(write, context, tmp_path: Path, small_files):
    event = ended(lambda: write(tmp_path / "file"), context())
    assert (event.code, event.mend) == ("disk_full", RunFix(resume=True))


def end_on_full_disk(
    context: FailureContext, monkeypatch: pytest.MonkeyPatch, free_mb: int, *steps: int, number: int = errno.ENOSPC
) -> events.RunFinished:
    """The end of a run with a 20 MB checkpoint at each step, on a disk with this much room; its model takes 18 MB."""
    for step in steps:
        folder = context.folder.checkpoint(step)
        folder.mkdir(parents=True)
        with (folder / "state").open("wb") as file:
            file.truncate(20_000_000)
    usage = shutil.disk_usage(context.folder.path)._replace(free=free_mb * 1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return ended(fail, context)


def test_fewer_checkpoints_are_offered_on_a_full_disk_if_they_make_room(context, monkeypatch):
    event = end_on_full_disk(context(evaluation={"best_metric": None}), monkeypatch, 5, 1, 2)
    assert event.mend == RunFix({"training.keep_checkpoints": 1}, resume=True)
    assert "deletes 1 older checkpoint when the run is resumed, which frees 20 MB" in event.hint


def test_full_disk_with_room_for_the_model_alone_gets_no_more_checkpoints(context, monkeypatch):
    event = end_on_full_disk(context(evaluation={"best_metric": None}), monkeypatch, 23, 1)
    assert event.mend == RunFix({"training.keep_checkpoints": 1, "training.checkpoint_every": "never"}, resume=True)


def test_room_for_the_whole_model_is_not_asked_of_a_run_that_saves_an_adapter(context, monkeypatch):
    run = context(evaluation={"best_metric": None}, adapter={"type": "lora", "saved": "adapter"})
    event = end_on_full_disk(run, monkeypatch, 10, 1)
    assert event.mend == RunFix({"training.keep_checkpoints": 1, "training.checkpoint_every": "never"}, resume=True)


def test_full_disk_without_room_for_best_last_and_model_is_not_promised_the_rest_of_the_run(context, monkeypatch):
    event = end_on_full_disk(context(evaluation={"best_metric": "accuracy"}), monkeypatch, 5, 1, 2)
    assert event.hint.startswith("Free up at least 19 MB in ")


def test_full_disk_that_no_setting_helps_says_how_much_to_free(context, monkeypatch):
    event = end_on_full_disk(context(evaluation={"best_metric": "accuracy"}), monkeypatch, 1, 1, 2)
    assert event.hint.startswith("Free up at least 23 MB in ")


def test_full_disk_of_a_run_that_has_room_keeps_its_checkpoints(context, monkeypatch):
    event = end_on_full_disk(context(evaluation={"best_metric": None}), monkeypatch, 25, 1, 2)
    assert (event.hint, event.mend) == (disk_full.HINT, RunFix(resume=True))


def test_fewer_checkpoints_are_not_offered_for_a_file_that_may_not_be_so_large(context, monkeypatch):
    event = end_on_full_disk(context(), monkeypatch, 5, 1, 2, 3, number=errno.EFBIG)
    assert event.mend == RunFix(resume=True)


def test_a_hub_that_cannot_be_reached_is_asked_again(context, monkeypatch):
    monkeypatch.setattr(hub.HfApi, "__init__", _elsewhere(hub.HfApi.__init__))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    event = ended(lambda: hub.remote_model("some/model", "main"), context(planned=False))
    assert (event.code, event.mend) == ("hub_unreachable", RunFix(resume=True))
    assert "some/model" in event.message


def _elsewhere(make: Callable[..., None]) -> Callable[..., None]:
    """A hub where nobody listens."""

    def made(self: Any, **options: Any) -> None:
        make(self, **{**options, "endpoint": "http://127.0.0.1:9"})

    return made


def test_the_offline_switch_is_named_where_it_keeps_the_hub_from_being_asked(context):
    event = ended(lambda: hub.remote_model("some/model", "main"), context(planned=False))
    assert event.code == "hub_unreachable"
    assert "offline" in event.hint.lower()


# The rest


def test_what_nobody_knows_is_said_to_be_unknown(context):
    event = ended(lambda: {}["missing"], context())
    assert (event.code, event.mend) == ("unknown", None)
    assert event.message == "unexpected KeyError: 'missing'"
    assert "burnish report run" in event.hint


def test_mistakes_and_failures_of_our_own_keep_their_words(context):
    here = context()
    mistake = failure_event(InputError("task.x: wrong", "task.x"), 0, here)
    assert (mistake.code, mistake.hint) == ("input", "Change task.x and start again.")
    own = failure_event(RunFailed("gone", "folder_gone", hint="Start again."), 0, here)
    assert (own.code, own.hint) == ("folder_gone", "Start again.")


@pytest.mark.parametrize(("seconds", "mend"), [(600, 1200), (50_000, None)])
def test_processes_that_waited_in_vain_are_mended_by_twice_the_time(context, seconds: int, mend: int | None):
    here = context(hardware={"collective_timeout": seconds})
    event = failure_event(RunFailed("late", "collective_failed", hint="Wait longer."), 3, here)
    assert (event.code, event.hint) == ("collective_failed", "Wait longer.")
    assert event.mend == (None if mend is None else RunFix({"hardware.collective_timeout": mend}))


def test_a_model_that_cannot_be_compiled_is_mended_by_not_compiling_it(context):
    error = RunFailed("PyTorch could not compile the model", "compilation_failed", hint="Set it to never.")
    event = failure_event(error, 0, context(hardware={"compile": "always"}))
    assert (event.code, event.hint) == ("compilation_failed", "Set it to never.")
    assert event.mend == RunFix({"hardware.compile": "never"})


@pytest.mark.parametrize(
    ("environment", "changes"),
    [
        ({}, {"hardware.environment.NCCL_P2P_LEVEL": "NVL"}),
        ({"NCCL_P2P_LEVEL": "NVL"}, {"hardware.environment.NCCL_P2P_DISABLE": "1"}),
        ({"NCCL_P2P_LEVEL": "NVL", "NCCL_P2P_DISABLE": "1"}, {"hardware.collective_timeout": 1200}),
    ],
)
def test_gpus_that_nccl_cannot_connect_take_a_less_direct_way(context, environment: dict[str, str], changes: dict):
    error = RunFailed("NCCL error in: NCCLUtils.cpp:77, unhandled system error", "collective_failed")
    assert failure_event(error, 3, context(hardware={"environment": environment})).mend == RunFix(changes)


@pytest.mark.parametrize(
    ("words", "mend", "hint"),
    [
        ("CUDA error: unspecified launch failure\nCompile with TORCH_USE_CUDA_DSA", RunFix(), "another device"),
        ("CUDA error: device-side assert triggered", RunFix({"hardware.device": "cpu"}), "On the processor"),
    ],
)
def test_an_accelerator_that_stopped_working_is_the_cause_even_between_processes(
    context, words: str, mend: RunFix, hint: str
):
    def fail() -> None:
        with ProcessGroup(0, 2)._exchange():
            raise torch.AcceleratorError(words)

    event = ended(fail, context())
    assert (event.code, event.mend) == ("device_lost", mend)
    assert event.message == f"the accelerator stopped working ({words.splitlines()[0]})"
    assert hint in event.hint


def test_nccl_that_finds_no_memory_is_mended_by_half_as_many_rows(context):
    def fail() -> None:
        with ProcessGroup(0, 2)._exchange():
            raise RuntimeError("NCCL error in: NCCLUtils.cpp:77\nLast error:\nCuda failure 2 'out of memory'")

    event = ended(fail, context())
    assert (event.code, event.mend) == ("out_of_memory", RunFix({"hardware.micro_batch_size": 4}))


def test_a_spec_that_cannot_be_read_does_not_hide_the_failure(context):
    here = context()
    here.folder.spec.write_text("task: [")
    event = failure_event(MemoryError(), 0, here)
    assert event.code == "out_of_memory"


def test_a_run_ends_in_words_even_where_looking_for_the_cause_fails(context, monkeypatch):
    def fails(*given: Any) -> events.RunFinished:
        raise MemoryError

    folder = context(data={"source": "demo", "max_rows": "many"}).folder
    monkeypatch.setattr(loop, "failure_event", fails)
    with pytest.raises(MemoryError):
        loop.run(folder)
    ended = read_events(folder.events)[-1]
    assert isinstance(ended, events.RunFinished)
    assert (ended.state, ended.code) == ("failed", "unknown")


def test_the_plan_of_an_earlier_attempt_is_not_the_present_one(context):
    here = context()
    with here.folder.events.open("ab") as file:
        file.write(events.encode(events.RunResumed(time=3, attempt=2, from_step=0)))
    assert here.plan is None


def test_every_recogniser_is_met_by_a_test():
    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in registry.names("failure") if f'"{name}"' not in text] == []
