"""TorchEngine: one model, trained and evaluated with PyTorch."""

import gc
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from backend.contract.errors import InputError, RunFailed
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.rpc.generation import GenerationSettings
from backend.data.batches import targets
from backend.engines import allocator
from backend.engines.engine import Batch, Finish, LoadedModel, LoadRequest, StepNumbers, StepResult
from backend.engines.torch import COMPILATION_FAILED, Settings, checkpoint, memory
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.frozen_weights import float32_weights, has_adapter, is_float32, save_float32
from backend.engines.torch.generation import continue_prompt, write
from backend.engines.torch.heads import HEADS
from backend.engines.torch.inputs import split_by_length
from backend.engines.torch.layers.dropout import speed_up_dropout
from backend.engines.torch.layers.fast_linear import speed_up_linear
from backend.engines.torch.layers.unpadded import Unpadding
from backend.engines.torch.lean_imports import import_bitsandbytes
from backend.engines.torch.loading import load_model
from backend.engines.torch.optimizer import Optimizer
from backend.engines.torch.precision import Precision
from backend.engines.torch.random_bits import derive_seed
from backend.engines.torch.sparse_embedding import SparseEmbedding, sparse_embedding

if TYPE_CHECKING:
    from backend.engines.torch.adapters import Adapter
    from backend.engines.torch.compilation import CompiledLayers
    from backend.engines.torch.distributed.sharded_model import ShardedModel


class TorchEngine:
    """One model in PyTorch; numpy batches in, numbers out (`backend.engines.engine.Engine`).

    In a group every process makes the same calls with the same batches and computes its own rows of them. The first
    has the results: the outputs of all rows, and with a step all others too its loss and norm.
    """

    constant_rows: ClassVar[bool] = False

    def __init__(self, group: ProcessGroup | None = None) -> None:
        self._group = group or ProcessGroup()
        self._model: Any = None
        self._optimizer: Optimizer | None = None
        self._words: SparseEmbedding | None = None
        self._adapter: Adapter | None = None
        self._shards: ShardedModel | None = None
        self._compiled: CompiledLayers | None = None
        self._warning = ""

    def load(self, loading: LoadRequest) -> LoadedModel:
        """Load the model. Raises InputError or RunFailed in one sentence."""
        if isinstance(loading.hardware, Settings) and loading.hardware.threads is not None:
            torch.set_num_threads(loading.hardware.threads)  # else its own choice, which heeds OMP_NUM_THREADS
        loading = replace(loading, devices=(loading.devices[self._group.rank],))
        self._device = torch.device(loading.devices[0])
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        self._precision = Precision(self._device, loading.precision)
        self._facts, self._training, self._loading = loading.head, loading.training, loading
        shards = self._group.size > 1 and loading.training is not None and _settings(loading).strategy == "fsdp"
        with memory.translate_out_of_memory():
            # A sharded model reaches the device block by block: all of it may not fit.
            self._model, loaded = load_model(replace(loading, devices=("cpu",)) if shards else loading, to_shard=shards)
            if loading.training is not None and loading.adapter is not None:
                import_bitsandbytes()  # before PEFT does
                from backend.engines.torch.adapters import Adapter  # PEFT takes a second to import

                self._adapter = Adapter(self._model, loading, loaded)
                loaded = self._adapter.count_trainable(loaded)
        self._model.eval()
        speed_up_dropout(self._model)
        speed_up_linear(self._model, self._device)
        self._unpadding = Unpadding(self._model, loading.head.head, self._device)
        if loading.training is not None and _settings(loading).compile in ("always", "if_possible"):
            with self._falling_back():
                from backend.engines.torch.compilation import CompiledLayers  # imports torch's compiler (seconds)

                self._compiled = CompiledLayers(self._model, loading.compiling)
        self._frozen = checkpoint.frozen_weights(self._model) if loading.training is not None else frozenset[str]()
        if loading.training is not None:
            self._group.prepare(self._device, _settings(loading).collective_timeout)
            if shards:
                self._shards = self._shard(loading)
            else:
                self._group.share_weights([each for each in self._model.parameters() if each.requires_grad])
                self._words = sparse_embedding(self._model, self._device, loading.training, loading.head.head)
            self._optimizer = Optimizer(
                self._model, self._words, loading.training, self._precision, loading.adapter, self._shards
            )
        if self._device.type == "cpu" and not shards:
            if is_float32(self._model):
                allocator.keep_freed()
            elif loading.precision == "float32":
                allocator.return_blocks()  # weights become float32 layer by layer, and such buffers would add up
        smoothing = loading.training.label_smoothing if loading.training else 0.0
        self._head = HEADS[loading.head.head](loading.head, smoothing, self._device)
        return loaded

    def _shard(self, loading: LoadRequest) -> "ShardedModel":
        from backend.engines.torch.distributed.sharded_model import (
            ShardedModel,
        )  # imports torch's distributed tensors (a second)

        allocator.return_blocks()
        offloads = _settings(loading).cpu_offload
        with memory.translate_out_of_memory(), self._group.computing_together():
            return ShardedModel(self._model, self._group, self._device, loading.precision, offloads=offloads)

    def train_step(self, micro_batches: Sequence[Batch], step: int, learning_rate: float) -> StepResult:
        """One optimizer step over all micro-batches: summed loss ÷ the targets of the whole step."""
        assert self._optimizer is not None, "the model was loaded without training"
        denominator = sum(self._targets(batch) for batch in micro_batches) or 1.0
        self._set_training(True)
        with memory.translate_out_of_memory(), self._group.computing_together():
            if self._words is not None:
                self._words.begin(micro_batches)
            loss = self._sum_losses(micro_batches, denominator, step)
            if self._shards is None:
                loss = self._group.sum_step(loss, self._optimizer.trained())
            else:
                loss = self._group.add_up(loss)
                self._shards.take_gradients()
            norm = self._optimizer.step(learning_rate, step)
        warning, self._warning = self._warning, ""
        return StepResult(loss=loss, gradient_norm=norm.to(loss.device), warning=warning)

    def _sum_losses(self, micro_batches: Sequence[Batch], denominator: float, step: int) -> torch.Tensor:
        """The loss of this process's rows, whose gradients are there then."""
        if self._compiled is not None:
            with self._falling_back():
                self._compile(self._compiled, micro_batches, step)
                return self._add_gradients(micro_batches, denominator, step)
            self._drop_gradients()  # of the micro-batches before the one that failed
        return self._add_gradients(micro_batches, denominator, step)

    def _add_gradients(self, micro_batches: Sequence[Batch], denominator: float, step: int) -> torch.Tensor:
        # A sharded model's gradients are added up after each micro-batch: unlike all of them, a part fits.
        losses = [
            self._gradients(own, denominator if counts else math.inf, step, number)
            for number, (own, counts) in enumerate(map(self._own_rows, micro_batches))
            if len(own["row_valid"])
        ]
        return sum(losses[1:], losses[0]) if losses else torch.zeros((), device=self._device)

    @contextmanager
    def _falling_back(self) -> Iterator[None]:
        """Train without compiling from here on if that fails, and may."""
        try:
            yield
        except (InputError, RunFailed) as error:
            is_of_compiler = isinstance(error, InputError) or error.code == COMPILATION_FAILED
            if _settings(self._loading).compile == "always" or not is_of_compiler:
                raise
            self._compiled = None
            self._warning = message("{problem}; the run goes on without compiling", problem=str(error))

    def _compile(self, compiled: "CompiledLayers", micro_batches: Sequence[Batch], step: int) -> None:
        """Compile what this step needs and earlier ones did not, by trying its batches and dropping the gradients."""
        for batch in micro_batches:
            own = self._own_rows(batch)[0]
            if len(own["row_valid"]) and compiled.prepare(own, partial(self._try, own, step)):
                self._drop_gradients()

    def _drop_gradients(self) -> None:
        for weight in self._optimizer.trained() if self._optimizer is not None else ():
            weight.grad = None

    def _try(self, batch: Batch, step: int) -> None:
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)  # on whichever thread this is
        self._gradients(batch, 1.0, step, 0)

    def _own_rows(self, batch: Batch) -> tuple[Batch, bool]:
        """This process's rows, maybe none, and whether they count; a sharded model needs some in every process."""
        if self._shards is None:
            return self._group.own_rows(batch), True
        return self._group.own_or_first_row(batch)

    def _gradients(self, batch: Batch, denominator: float, step: int, number: int) -> torch.Tensor:
        assert self._training is not None
        torch.manual_seed(derive_seed(self._training.seed, step, number, self._group.rank))
        losses = [self._add_part(part, denominator) for part in self._parts(batch)]
        return sum(losses[1:], losses[0])

    def _parts(self, batch: Batch) -> list[Batch]:
        """What is computed together of a batch: all of it, or on a CPU parts of it, where a pass costs little beside its tokens."""
        is_split = self._facts.head is Head.SEQ2SEQ_LM and self._device.type == "cpu"
        return split_by_length(batch) if is_split and not (self._compiled or self._shards) else [batch]

    def _add_part(self, batch: Batch, denominator: float) -> torch.Tensor:
        compiles = self._compiled is not None
        layers = self._compiled.running() if self._compiled is not None else nullcontext()
        with layers, self._unpadding.for_batch(batch, lays_out_all=compiles):
            with self._precision.autocast():
                answer = self._answer(batch)
            loss = self._head.loss(answer, batch) / denominator
            self._precision.backward(loss)
        return loss.detach()

    def _answer(self, batch: Batch) -> Any:
        if self._shards is None or self._facts.head is not Head.QUESTION_ANSWERING_BEAM:
            return self._head.answer(self._model, batch)
        return self._shards.run(lambda: self._head.answer(self._model, batch))  # calls the model's parts by themselves

    def read(self, results: Sequence[StepResult]) -> list[StepNumbers]:
        """Fetch a group of results from the device at once."""
        if not results:
            return []
        numbers = torch.stack([torch.stack([each.loss, each.gradient_norm]) for each in results]).tolist()
        return [StepNumbers(loss, norm) for loss, norm in numbers]

    def evaluate(self, batch: Batch) -> dict[str, np.ndarray]:
        """The head's outputs for every row of the batch; filler rows get zeros."""
        valid = batch["row_valid"]
        if not valid.any():
            return self._outputs(batch)
        own, counts = self._own_rows(batch)
        outputs = self._outputs(own) if len(own["row_valid"]) else {}
        found = self._group.collect_rows(outputs if counts else {}, batch)
        return found if valid.all() or self._group.rank else insert_filler(found, valid)

    def _outputs(self, batch: Batch) -> dict[str, np.ndarray]:
        self._set_training(False)
        with memory.translate_out_of_memory(), self._without_gradients(), self._unpadding.for_batch(batch):
            with self._precision.autocast():
                answer = self._answer(batch)
            return self._head.outputs(answer, batch)

    def generate(self, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
        """The generated text of every row: only new ids, without the end token."""
        self._set_training(False)
        written = [np.zeros(0, dtype=np.int64) for _ in batch["row_valid"]]
        if not batch["row_valid"].any():
            return written
        own, counts = self._own_rows(batch)
        found: list[np.ndarray] = []
        if len(own["row_valid"]):
            with memory.translate_out_of_memory(), self._without_gradients(), self._precision.autocast():
                found = self._write(own, settings)
        found = self._group.collect_lists(found if counts else [], batch)
        if self._group.rank:
            return found
        for row, ids in zip(np.flatnonzero(batch["row_valid"]), found, strict=True):
            written[row] = ids
        return written

    def _write(self, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
        if self._shards is None:
            return write(self._model, batch, settings)
        return self._shards.run(lambda: write(self._model, batch, settings, together=True))

    @contextmanager
    def _without_gradients(self) -> Iterator[None]:
        # FSDP keeps the tensors that it gathers into, and those made in inference mode cannot be trained with.
        with torch.inference_mode() if self._shards is None else torch.no_grad(), self._group.computing_together():
            yield

    def continue_prompt(self, input_ids: Sequence[int], settings: GenerationSettings) -> Iterator[int]:
        """Continue one prompt, yielding each token as it is generated."""
        self._set_training(False)
        with memory.translate_out_of_memory():
            yield from continue_prompt(self._model, input_ids, settings, self._precision)

    def save(self, folder: Path) -> Finish:
        """Save weights and optimizer state, exact, as safetensors; copied now, written by the returned function.

        What each process has of a sharded model is written before this returns, into the same files.
        """
        if self._shards is not None:
            self._shards.save(folder, self._frozen, self._optimizer)
            return lambda: None
        return checkpoint.save(folder, self._model, self._frozen, self._optimizer, self._precision)

    def restore(self, folder: Path) -> str:
        """Restore what `save` wrote, bit-exact, in any number of processes."""
        if self._shards is not None:
            assert self._optimizer is not None
            self._shards.restore(folder, self._frozen, self._optimizer)
            return ""
        # A model that only answers has its frozen weights from its own file, and the checkpoint's tell which these are.
        frozen = self._frozen if self._training is not None else checkpoint.omitted_weights(folder, self._model)
        checkpoint.restore(folder, self._model, frozen, self._optimizer, self._precision)
        return ""

    def export(self, folder: Path) -> None:
        """Write config, generation settings and float32 weights in Hugging Face layout; or only an adapter."""
        if self._shards is not None:
            self._export_whole(folder)
            return
        decayed = {self._words.name: self._words.dense_weight()} if self._words is not None else {}
        if self._adapter is not None:
            self._adapter.export(folder, decayed)
            return
        weights_of = float32_weights
        if has_adapter(self._model):
            from backend.engines.torch.adapters import merged_weights as weights_of
        with weights_of(self._model, folder) as weights:
            save_float32(self._model, folder, {**weights, **decayed})

    def _export_whole(self, folder: Path) -> None:
        """Load the whole model once more, in the first process and its memory, with the weights that were trained."""
        assert self._shards is not None
        place = folder / "parts"
        with self._group.share_error():
            if self._group.rank == 0:
                place.mkdir(parents=True)
        try:
            self._shards.save(place, self._frozen, None)
            if self._group.rank == 0:
                whole = TorchEngine()
                whole.load(replace(self._loading, devices=("cpu",)))
                checkpoint.restore(place, whole._model, whole._frozen, None, whole._precision)
                whole.export(folder)
                del whole
                gc.collect()  # its hooks refer to each other
                self._precision = Precision(self._device, self._loading.precision)  # Accelerate has one for a process
        finally:
            if self._group.rank == 0:
                shutil.rmtree(place, ignore_errors=True)

    def device_memory_mb(self) -> float | None:
        """Peak memory used on the accelerator, or None on a CPU."""
        return memory.peak_mb(self._device)

    def _targets(self, batch: Batch) -> float:
        return targets(self._facts.head, batch, self._facts.class_weights)

    def _set_training(self, training: bool) -> None:
        if self._model is None:
            raise RunFailed("No model is loaded", "no_model")
        if self._model.training is not training:  # the walk over all modules costs as much as a layer
            self._model.train(training)
            allocator.return_freed()


def _settings(loading: LoadRequest) -> Settings:
    return loading.hardware if isinstance(loading.hardware, Settings) else Settings()


def insert_filler(found: dict[str, np.ndarray], valid: np.ndarray) -> dict[str, np.ndarray]:
    """The outputs of the valid rows at their places, and zeros for the others."""
    placed = {name: np.zeros((len(valid), *array.shape[1:]), array.dtype) for name, array in found.items()}
    for name, array in found.items():
        placed[name][valid] = array
    return placed
