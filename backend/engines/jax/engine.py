"""The JAX engine: one jitted step that donates its parameters, and the rest of what the loop calls."""

import hashlib
import os
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from backend.contract.errors import InputError, RunFailed
from backend.contract.heads import IGNORE, Head
from backend.contract.messages import message
from backend.contract.places import cache_folder
from backend.contract.rpc.generation import GenerationSettings
from backend.data.batches import targets
from backend.engines.allocator import keep_freed, return_freed
from backend.engines.engine import Batch, Finish, LoadedModel, LoadRequest, StepNumbers, StepResult
from backend.engines.jax import checkpoints, word_rows
from backend.engines.jax.adapters import Adapter
from backend.engines.jax.compilation import CompiledPrograms, shapes, translate_out_of_memory
from backend.engines.jax.generation import Generator
from backend.engines.jax.heads import HEADS
from backend.engines.jax.layers import DropoutKeys, trace
from backend.engines.jax.loading import open_model
from backend.engines.jax.lora import dropping
from backend.engines.jax.mesh import layout_of
from backend.engines.jax.model import Model, Parameters
from backend.engines.jax.models.family import Arrays
from backend.engines.jax.optimizer import Optimizer
from backend.engines.jax.packed_rows import pack_alike
from backend.engines.jax.word_rows import WordRows

_NUMBERS = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}

_FILLERS = {"labels": IGNORE, "start_positions": IGNORE, "end_positions": IGNORE, "targets": IGNORE}
"""Padding of integer arrays of targets; those of floats are padded with NaN."""


class JaxEngine:
    """One model in JAX; numpy batches in, numbers out (`backend.engines.engine.Engine`)."""

    constant_rows: ClassVar[bool] = True

    def __init__(self) -> None:
        self._model: Model | None = None
        self._optimizer: Optimizer | None = None
        self._adapter: Adapter | None = None
        self._words: WordRows | None = None
        self._trains_now = False

    def load(self, loading: LoadRequest) -> LoadedModel:
        """Load the model. Raises InputError or RunFailed in one sentence."""
        if loading.precision not in _NUMBERS:
            raise InputError(
                "hardware.precision: the JAX engine computes in float32 or bfloat16; choose one of them",
                "hardware.precision",
            )
        _keep_compilations()
        opened = open_model(loading)
        if loading.training is not None and loading.adapter is not None:
            self._adapter = Adapter(loading, opened)
            opened = self._adapter.add_to(opened)
        self._model, self._config, self._facts = opened.model, opened.config, loading.head
        self._generation, self._training = opened.generation, loading.training
        self._numbers = _NUMBERS[loading.precision]
        if loading.precision == "float32":
            jax.config.update("jax_default_matmul_precision", "highest")  # a TPU would multiply in bfloat16
        self._layout = layout_of(loading, self._config.model_type, opened.model.divided)
        self._on_one_cpu = self._layout.is_on_cpu and self._layout.is_alone
        if self._layout.is_on_cpu:
            keep_freed()
        with translate_out_of_memory():
            self._parameters: Parameters = self._layout.place(opened.parameters)
        smoothing = loading.training.label_smoothing if loading.training else 0.0
        self._head = HEADS[loading.head.head](loading.head, smoothing)
        self._programs = CompiledPrograms(loading.compiling)
        self._outputs = self._layout.jit(self._compute_outputs)
        trainable = self._prepare_training(loading)
        return replace(opened.loaded, trainable=trainable)

    def _prepare_training(self, loading: LoadRequest) -> int:
        training, model = loading.training, self._model
        assert model is not None
        if training is None:
            return 0
        kept = model.layer_depths.frozen_names(loading.model.frozen) | model.fixed
        self._trained = sorted(model.shapes.keys() - kept if self._adapter is None else self._adapter.trained)
        rates = model.layer_depths.rates(training.layer_decay)
        if self._adapter is not None:
            rates |= self._adapter.rates(rates)
        self._optimizer = Optimizer(training, model.undecayed, rates)
        self._packs_rows = model.reads_packed_rows and self._on_one_cpu
        # Placed like the parameters, or the second step, whose state comes from the first, would be compiled again.
        trained = {name: self._parameters[name] for name in self._trained}
        state = self._state = self._layout.init_sharded(self._optimizer.init, trained)
        is_large = self._on_one_cpu and model.words in trained and trained[model.words].size >= word_rows.LARGE
        if is_large and training.optimizer == "adamw":  # whose arithmetic that of rows without a gradient is
            self._words = WordRows(model.words, self._optimizer, self._programs)
            del trained[model.words]
            state = word_rows.without_words(state, model.words)
        self._step = self._layout.step(self._compute_step, trained, state)
        return sum(int(np.prod(model.shapes[name])) for name in self._trained)

    # Training

    def train_step(self, micro_batches: Sequence[Batch], step: int, learning_rate: float) -> StepResult:
        """One optimizer step over all micro-batches: summed loss ÷ the targets of the whole step."""
        assert self._training is not None, "the model was loaded without training"
        self._set_training(True)
        denominator = sum(targets(self._facts.head, batch, self._facts.class_weights) for batch in micro_batches) or 1.0
        arrays = self._step_arrays(micro_batches)
        trained = {name: self._parameters[name] for name in self._trained}
        fixed = {name: value for name, value in self._parameters.items() if name not in trained}
        state, words, rows, own_words = self._state, self._words, None, {}
        if words is not None:
            rows = words.begin(self._whole_words(words.name), arrays["input_ids"])
            arrays["word_places"], own_words = rows.places, {words.name: rows.values}
            state = word_rows.without_words(state, words.name)
            del trained[words.name]
        trained, state, loss, norm, gradient = self._programs.call(
            self._step, ("step", shapes(arrays)), trained, state, fixed, self._layout.shard_batch(arrays, 1), own_words,
            np.float32(denominator), np.float32(learning_rate), _key(self._training.seed, step),
        )  # fmt: skip
        self._parameters.update(trained)
        if words is not None and rows is not None:
            whole = self._whole_words(words.name)
            weight, *moments = words.finish(whole, rows, gradient[words.name], state.count, learning_rate)
            self._parameters[words.name], state = weight, word_rows.with_words(state, words.name, *moments)
        self._state = state
        return StepResult(loss=loss, gradient_norm=norm)

    def step_shapes(self, micro_batches: Sequence[Batch]) -> Hashable:
        """The shapes of a step's arrays."""
        return shapes(self._step_arrays(micro_batches))

    def _step_arrays(self, micro_batches: Sequence[Batch]) -> Batch:
        """What the device receives for a step, (micro-batches, …)."""
        groups = self._layout.groups
        batches: Sequence[Batch] = pad_alike(micro_batches, groups)
        if self._packs_rows:
            batches = pack_alike(batches)
        return stack([self._head.arrays(batch) for batch in batches], groups)

    def _compute_step(
        self, trained: Parameters, state: Any, fixed: Parameters, arrays: Arrays, own_words: Parameters,
        denominator: jax.Array, learning_rate: jax.Array, key: jax.Array,
    ) -> tuple[Parameters, Any, jax.Array, jax.Array, Parameters]:  # fmt: skip
        assert self._optimizer is not None
        learned = trained | own_words

        def loss_of(parameters: Parameters, batch: Arrays, number: jax.Array) -> jax.Array:
            return (
                self._loss({**fixed, **parameters}, batch, DropoutKeys(jax.random.fold_in(key, number))) / denominator
            )

        def add(sums: tuple[jax.Array, Parameters], numbered: tuple[jax.Array, Arrays]) -> tuple[Any, None]:
            loss, gradients = jax.value_and_grad(loss_of)(learned, numbered[1], numbered[0])
            return (sums[0] + loss, jax.tree.map(jnp.add, sums[1], gradients)), None

        count = next(iter(arrays.values())).shape[0]
        if count == 1:  # nothing to add up
            batch = {name: values[0] for name, values in arrays.items()}
            loss, gradients = jax.value_and_grad(loss_of)(learned, batch, jnp.int32(0))
        else:
            zeros = (jnp.float32(0), jax.tree.map(jnp.zeros_like, learned))
            (loss, gradients), _ = jax.lax.scan(add, zeros, (jnp.arange(count), arrays))
        gradients, norm = self._optimizer.clip(gradients)
        of_words = {name: gradients.pop(name) for name in own_words}
        new, state = self._optimizer.step(trained, state, gradients, learning_rate)
        return new, state, loss, norm, of_words

    def _whole_words(self, name: str) -> word_rows.Table:
        return self._parameters[name], self._state.mu[name], self._state.nu[name]

    def _write_words_back(self) -> None:
        """Before anything but a training step reads parameters or state."""
        if (words := self._words) is not None:
            weight, *moments = words.write_back(self._whole_words(words.name))
            self._parameters[words.name] = weight
            self._state = word_rows.with_words(self._state, words.name, *moments)

    def _loss(self, parameters: Parameters, arrays: Arrays, noise: DropoutKeys) -> jax.Array:
        assert self._model is not None
        assert self._training is not None
        recomputes = self._training.gradient_checkpointing is True
        tracing = trace(self._numbers, on_one_cpu=self._on_one_cpu, recomputes=recomputes)
        with tracing, dropping(noise):
            return self._head.loss(self._model.bind(parameters), arrays, noise)

    def read(self, results: Sequence[StepResult]) -> list[StepNumbers]:
        """Fetch a group of results from the device at once."""
        with translate_out_of_memory():  # steps are computed asynchronously, so it may first show up here
            found = jax.device_get([(each.loss, each.gradient_norm) for each in results])
        return [StepNumbers(float(loss), float(norm)) for loss, norm in found]

    # Evaluation

    def evaluate(self, batch: Batch) -> dict[str, np.ndarray]:
        """The head's outputs for every row of the batch; filler rows get zeros."""
        if self._model is None:
            raise RunFailed("No model is loaded", "no_model")
        self._set_training(False)
        self._write_words_back()
        [filled] = pad_alike([batch], self._layout.groups)
        arrays = self._layout.shard_batch(self._head.arrays(filled), 0)
        found = self._programs.call(self._outputs, ("outputs", shapes(arrays)), self._parameters, arrays)
        read = self._head.read({name: np.asarray(values) for name, values in found.items()}, filled)
        return {name: values[: len(batch["row_valid"])] for name, values in read.items()}

    def _compute_outputs(self, parameters: Parameters, arrays: Arrays) -> Arrays:
        assert self._model is not None
        with trace(self._numbers, on_one_cpu=self._on_one_cpu):
            return self._head.outputs(self._model.bind(parameters), arrays)

    def generate(self, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
        """The generated text of every row: only new ids, without the end token."""
        self._set_training(False)
        found = self._writer.write(self._parameters, batch, settings)
        return [ids if valid else ids[:0] for ids, valid in zip(found, batch["row_valid"], strict=True)]

    def continue_prompt(self, input_ids: Sequence[int], settings: GenerationSettings) -> Iterator[int]:
        """Continue one prompt, yielding new ids as they are generated, or all at once with beams."""
        return self._writer.stream(self._parameters, input_ids, settings)

    @cached_property
    def _writer(self) -> Generator:
        assert self._model is not None, "no model is loaded"
        return Generator(self._model, self._config, self._generation, self._numbers, self._programs, self._layout.jit)

    # Files

    def save(self, folder: Path) -> Finish:
        """Save weights and optimizer state, exact, through Orbax; complete once the returned function was called."""
        return checkpoints.save(folder, self._to_saved_state())

    def restore(self, folder: Path) -> str:
        """Restore what `save` wrote, bit-exact, on any devices; from a torch checkpoint, only the weights."""
        if not (folder / checkpoints.STATE).is_dir():
            found = checkpoints.restore_weights(folder, self._to_saved_state().parameters)
            self._parameters |= self._layout.place(found)
            if self._words is not None:
                self._words.forget()
            return message("the checkpoint was written by PyTorch: the model continues from it, with a fresh optimizer")
        found = checkpoints.restore(folder, self._to_saved_state())
        self._parameters |= found.parameters
        if self._words is not None:
            self._words.forget()
        if self._optimizer is not None:
            self._state = jax.tree.unflatten(jax.tree.structure(self._state), found.optimizer)
        return ""

    def _to_saved_state(self) -> checkpoints.SavedState:
        self._write_words_back()
        if self._optimizer is None:
            return checkpoints.SavedState(self._parameters, [])
        trained = {name: self._parameters[name] for name in self._trained}
        return checkpoints.SavedState(trained, jax.tree.leaves(self._state))

    def export(self, folder: Path) -> None:
        """Write config and float32 weights in Hugging Face layout, safetensors; or only an adapter."""
        self._write_words_back()
        tensors = self._layout.fetch(self._parameters)
        if jax.process_index() > 0:
            return
        self._config.save_pretrained(folder)
        if self._adapter is not None and self._adapter.is_alone:
            self._adapter.export(folder, tensors)
            return
        tensors = tensors if self._adapter is None else self._adapter.merge(tensors)
        if self._facts.head in (Head.CAUSAL_LM, Head.SEQ2SEQ_LM):
            self._generation.save_pretrained(folder)
        assert self._model is not None
        self._model.write(folder, tensors)

    def _set_training(self, training: bool) -> None:
        if self._trains_now is not training:
            self._trains_now = training
            return_freed()

    def device_memory_mb(self) -> float | None:
        """Peak memory used on the fullest accelerator, or None on a CPU."""
        return self._layout.peak_memory_mb()


def pad_alike(batches: Sequence[Batch], groups: int = 1) -> list[Batch]:
    """Pad micro-batches with filler rows and padding to the largest one: one scan needs one shape.

    The number of rows becomes a multiple of `groups`.
    """
    return [
        {name: _pad_to(array, _largest_shape(batches, name, groups), name) for name, array in batch.items()}
        for batch in batches
    ]


def stack(batches: Sequence[Batch], groups: int = 1) -> Batch:
    """Stack the batches, (number, …); in language models they may differ in number of targets."""
    return {
        name: np.stack([_pad_to(each[name], _largest_shape(batches, name, groups), name) for each in batches])
        for name in batches[0]
    }


def _keep_compilations() -> None:
    """Enable the compilation cache, so that a later process's first step takes a fraction of the time."""
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return  # JAX's own variables take precedence if they are set
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def _key(seed: int, step: int) -> jax.Array:
    digest = hashlib.blake2b(f"{seed}/{step}".encode(), digest_size=4).digest()
    return jax.random.key(int.from_bytes(digest, "little"))


def _largest_shape(batches: Sequence[Batch], name: str, groups: int) -> tuple[int, ...]:
    first, *others = (max(sizes) for sizes in zip(*(batch[name].shape for batch in batches), strict=True))
    return (-(-first // groups) * groups, *others)


def _pad_to(array: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    if array.shape == shape:
        return array
    filler = np.nan if array.dtype.kind == "f" else _FILLERS.get(name, 0)
    more = [(0, size - own) for own, size in zip(array.shape, shape, strict=True)]
    return np.pad(array, more, constant_values=filler)
