"""Estimates what a run will cost: memory by parts, micro-batch size, steps, tokens, time."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from backend import registry
from backend.adapters.lora import is_embedding
from backend.contract.heads import Head
from backend.contract.rpc.plan import PlanPart
from backend.contract.spec import RunSpec, validate
from backend.contract.spec.training import ADAMW, STOCHASTIC
from backend.data.batches import EVALUATED_TOKENS, evaluated_rows
from backend.engines.engine import Split
from backend.engines.weight_formats import QUANTIZED, Format, frozen_bytes, keeps_embedding
from backend.hardware.activations import ModelShape, Pass
from backend.hardware.run_sizes import (
    adapter_copies,
    engine_settings,
    optimizer_state,
    read_config,
    trains_a_part,
    weight_format,
)
from backend.models import inspection
from backend.models.frozen_parameters import frozen_names
from backend.models.weights import read_weights

MB = 1e6
_BLOCK = re.compile(r"(?:[^.]+\.)*?\d+\.")
"""The start of the names of a layer's weights."""
LIBRARIES_MB, METRICS_MB, _WORD_MB = 385.0, 110.0, 0.0006
"""Resident memory of Python with PyTorch, transformers and the data, what scikit-learn adds, and a tokenizer for each word
(measured on Linux)."""
_SCATTER, _KEPT, _KEPT_BY_ADAPTER = 1.05, 1.2, 1.3
"""What blocks of many sizes take as a multiple of their sum: freed ones returned, kept, and kept beside an adapter's small ones."""
_XLA, _XLA_MAPS, _XLA_LIBRARIES_MB = 1.75, 5.5, 140.0
"""On a CPU, what XLA holds as a multiple of the activations that are counted, attention maps of one layer in an evaluation,
and what JAX takes beside PyTorch, which transformers loads (measured)."""
_BESIDE_COPY = 0.55
"""The share of a step that is there before the copy of a checkpoint is written (measured)."""
_REPLACED = 1.6
"""What a model takes while weights from its file are replaced by trained ones, as a multiple of its size (measured)."""
TIMES = ("Evaluation", "Loading", "Saving")
"""Parts that say when a run needs more than in a training step."""
ROWS = 64
"""Of an evaluation's batch: without gradients there is room for more than in training."""
_WORTH_ROWS = 1 << 20
"""Numbers from which the engine trains a word embedding by its rows."""
SHARE = 0.9
"""Part of the free memory that a plan may fill; the rest is for what it cannot foresee."""


@dataclass(frozen=True)
class TrainingLoad:
    """What determines the memory of a training run: the model, the longest sequence, and how it is computed."""

    spec: RunSpec
    folder: Path
    head: Head
    length: int
    """Tokens of the longest sequence."""
    parameters: int
    precision: str
    split: Split = field(default_factory=Split)
    """How several devices divide rows and weights; all numbers here are one device's."""

    on_cpu: bool = True
    """Whether it computes where the process has its memory."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Features of the training data and rows of the other splits, as far as they are known."""

    def memory(self, rows: int) -> list[PlanPart]:
        """The memory at the peak of a run with `rows` sequences in one forward pass on one device, in megabytes.

        Gradients, what the optimizer keeps and the weights that train are float32, other weights in `model.weights`.
        Gradients appear while activations disappear: without accumulation only the larger of both counts. If a run
        needs more at another time than in a training step, a further part says when, and how much more.
        """
        if self._engine.title != "PyTorch":
            return self._general_memory(rows)
        gradients, step = self._gradient_bytes, self._training_bytes(rows)
        gathered, optimizer = self._gathered_bytes, self._held_share * self._optimizer_bytes
        parts = [
            PlanPart("Weights", self._weights_bytes * self._held_share / MB),
            *([PlanPart("Gathered weights", gathered / MB)] if gathered else []),
            PlanPart("Gradients", gradients / MB),
            PlanPart("Optimizer", optimizer / MB),
            PlanPart("Activations", (step - gradients) / MB),
            PlanPart("Libraries", self._libraries_mb),
        ]
        trains = gathered + step + optimizer
        evaluates = gathered + self._evaluation_bytes(self.evaluation_rows(rows)) + optimizer
        beyond = {
            name: needed - trains
            for name, needed in zip(
                TIMES, (evaluates, self._loading_bytes, self._saving_bytes + optimizer), strict=True
            )
        }
        name = max(beyond, key=lambda each: beyond[each])
        return [*parts, PlanPart(name, beyond[name] / MB)] if beyond[name] > 0 else parts

    def evaluation_rows(self, rows: int) -> int:
        """Rows of an evaluation's batch on one device: as said, else at most `ROWS`, and no more than need a step's memory."""
        if self.spec.evaluation.batch_size is not None:
            return -(-self.spec.evaluation.batch_size // self.split.replicas)
        wanted = max(ROWS, rows)
        if self._engine.title == "PyTorch":
            room = self._training_bytes(rows)
            while wanted > rows and self._evaluation_bytes(wanted) > room:
                wanted = max(rows, -(-wanted // 2))
        return wanted

    def _training_bytes(self, rows: int) -> float:
        """What a step holds beside weights and optimizer: activations, then gradients, with accumulation both."""
        gradients, step = self._gradient_bytes, self._step_bytes(rows) if rows else 0.0
        last = self._slack * self._pass(rows).recomputed_bytes
        most = gradients + step if self._accumulates(rows) else max(gradients + last, step)
        # A CPU's allocator keeps what the activations were in, in blocks that are too small for a whole weight.
        updates = (most if self.on_cpu else gradients) + self._rounding_bytes
        return max(most, updates)

    def with_copy(self, parts: list[PlanPart], rows: int, available_mb: float) -> list[PlanPart]:
        """The parts, and the copy that a checkpoint is written from while training goes on, if there is room for two.

        It is written file by file, and its memory given back, while the next step's activations appear: at their peak it
        is gone. At another time than in training there is none.
        """
        copies = self.spec.training.checkpoint_every != "never" and self._engine.title == "PyTorch"
        if not self.on_cpu or not copies or self._is_sharded:
            return parts
        trained = self._weights_bytes if self._is_rounded else 4 * self.trainable
        size = (trained + self._optimizer_bytes) / MB
        copy = PlanPart("Checkpoints", max(0.0, size - (1 - _BESIDE_COPY) * self._training_bytes(rows) / MB))
        trains = [part for part in parts if part.name not in TIMES]
        if total(trains) + 2 * size > available_mb or total([*trains, copy]) < total(parts):
            return parts
        return [*trains, copy]

    def _general_memory(self, rows: int) -> list[PlanPart]:
        """The memory of an engine whose layers were not counted.

        Activations follow Korthikanti et al. 2022 (about 34 values per token and hidden unit, 2 with checkpointing, plus
        attention maps), and on a CPU what XLA was measured to hold; logits of language models count thrice (logits, log-probabilities, gradient).
        """
        shape, (sequences, length) = self._shape, self._sequences(rows)
        tokens = sequences * length
        recomputed = self.spec.training.gradient_checkpointing is True
        per_layer = tokens * shape.hidden * (2 if recomputed else 17 + 2 * shape.inner / shape.hidden)
        attention = 0 if recomputed else 2.5 * sequences * shape.heads * length**2
        width = 4 if self.precision == "float32" else 2
        logits = tokens * shape.vocabulary * 3 * 4 if self.head.declared.over_vocabulary else 0
        held = shape.layers * (per_layer + attention) * width * (_XLA if self.on_cpu else 1.0)
        libraries = self._libraries_mb + (_XLA_LIBRARIES_MB if self.on_cpu else 0.0)
        gradients = 4 * self.trainable * self.split.share
        parts = [
            PlanPart("Weights", self._weights_bytes * self.split.share / MB),
            PlanPart("Gradients", gradients / MB),
            PlanPart("Optimizer", self._optimizer_bytes * self.split.share / MB),
            PlanPart("Activations", (held + logits) / MB),
            PlanPart("Libraries", libraries),
        ]
        beyond = self._general_evaluation_bytes(rows) - held - logits - gradients
        return [*parts, PlanPart("Evaluation", beyond / MB)] if self.on_cpu and beyond > 0 else parts

    def _general_evaluation_bytes(self, rows: int) -> float:
        """What one layer of an evaluation holds, of which XLA writes the attention maps out."""
        evaluated = max((count for split, count in self.counts.items() if split != "train"), default=0)
        sequences, length = self._sequences(min(self.evaluation_rows(rows), evaluated))
        maps = _XLA_MAPS * sequences * self._shape.heads * length**2
        return (sequences * length * (6 * self._shape.hidden + 3 * self._shape.inner) + maps) * 4

    @cached_property
    def _engine(self) -> Any:
        return registry.find("engine", self.spec.hardware.engine, "hardware.engine")

    @cached_property
    def _shape(self) -> ModelShape:
        return ModelShape(read_config(self.folder, self.spec))

    def _accumulates(self, rows: int) -> bool:
        batch = self.spec.training.batch_size
        return rows * self.split.replicas < min(batch, self.counts.get("train", batch))

    @cached_property
    def _rows_of_words(self) -> tuple[int, int]:
        """All rows of a word embedding that is trained by rows, and how many of them the data can reach; (0, 0) if none."""
        shape, training = self._shape, self.spec.training
        by_rows = (
            self._engine.title == "PyTorch"
            and self.on_cpu
            and not self._is_sharded
            and training.optimizer in ADAMW
            and not trains_a_part(self.spec)
            and not self._is_rounded
            and not shape.decoders
            and not (self.head.declared.over_vocabulary and (shape.is_tied or self.head is Head.MASKED_LM))
            and shape.vocabulary * shape.hidden >= _WORTH_ROWS
        )
        if not by_rows:
            return 0, 0
        reached = self.counts["train"] * self.length if "train" in self.counts else shape.vocabulary
        return shape.vocabulary, min(shape.vocabulary, reached)

    @cached_property
    def _gradient_bytes(self) -> float:
        whole, _ = self._rows_of_words
        tied = 4 * self._shape.vocabulary * self._shape.hidden if self._adds_two_gradients else 0
        if self._is_sharded:  # those outside of the blocks are whole, and once more in order, when all divide them
            outside = 0 if trains_a_part(self.spec) else 2 * 4 * self._gathered[0] + tied
            return 4 * self._held_share * self.trainable + outside
        if self._is_rounded:
            return self._weights_bytes + tied / 2
        return 4 * (self.trainable - whole * self._shape.hidden) + tied

    @property
    def _is_sharded(self) -> bool:
        """Whether each process holds a part of every weight (FSDP)."""
        return self.split.share < 1 and self._engine.title == "PyTorch"

    @cached_property
    def _held_share(self) -> float:
        """The part of weights, gradients and optimizer state in a device's memory."""
        offloads = self._is_sharded and not self.on_cpu and engine_settings(self.spec).model_dump().get("cpu_offload")
        return 0.0 if offloads else self.split.share

    @cached_property
    def _gathered(self) -> tuple[int, int]:
        """Parameters outside of the blocks that the model repeats, and those of the largest block."""
        blocks: Counter[str] = Counter()
        for name, shape in read_weights(self.folder).shapes.items():
            if found := _BLOCK.match(name):
                blocks[found[0]] += prod(shape)
        if not blocks or self.spec.model.initialise == "from_config":
            shape = self._shape
            inside = self.parameters - shape.vocabulary * shape.hidden
            return self.parameters - inside, -(-inside // max(1, shape.layers))
        return max(0, self.parameters - blocks.total()), max(blocks.values())

    @property
    def _gathered_bytes(self) -> float:
        """What all processes hold of a sharded model while they compute: what is outside of the blocks, and two blocks.

        Of one block also the gradients, twice, while they are added up.
        """
        if not self._is_sharded:
            return 0.0
        outside, block = self._gathered
        width = 4 if self.precision == "float32" else 2
        trained = self.trainable / self.parameters
        return 4 * outside + 2 * width * block + 2 * 4 * trained * block

    @property
    def _is_rounded(self) -> bool:
        """Whether the weights that train are held in bfloat16, and so are their gradients."""
        return self.spec.training.master_weights == STOCHASTIC

    @cached_property
    def _rounding_bytes(self) -> float:
        """Of the largest weight while it is updated: itself and its gradient in float32."""
        return 2 * 4 * max(map(prod, read_weights(self.folder).shapes.values()), default=0) if self._is_rounded else 0.0

    @property
    def _adds_two_gradients(self) -> bool:
        """Whether one table gets a gradient from the words that are read and one from those that are predicted."""
        return self.head.declared.over_vocabulary and self._shape.is_tied and not trains_a_part(self.spec)

    @cached_property
    def _optimizer_bytes(self) -> float:
        kind = registry.find("optimizer", self.spec.training.optimizer, "training.optimizer")
        if getattr(kind, "paged", False):
            return 0.0  # it leaves the device before anything else lacks memory
        whole, reached = self._rows_of_words
        unused = (whole - reached) * self._shape.hidden if whole else 0
        return 4 * (optimizer_state(self.spec, self.folder, self.trainable) - 2 * unused)  # AdamW's two moments

    def _step_bytes(self, rows: int) -> float:
        """What a step holds beside weights and optimizer when its backward pass starts."""
        return self._slack * self._pass(rows).training_bytes + self._converted_bytes + self._logits_bytes(rows)

    def _pass(self, rows: int) -> Pass:
        has_maps = self._shape.has_maps(self.spec.model.dropout, on_cpu=self.on_cpu)
        return Pass(
            self._shape, *self._sequences(rows), has_maps, self.precision == "float32",
            self.spec.training.gradient_checkpointing is True, self.spec.adapter is not None, self._format in QUANTIZED,
        )  # fmt: skip

    def _evaluation_bytes(self, rows: int) -> float:
        """What a batch of an evaluation needs: one layer at a time, then the logits."""
        evaluated = max((count for split, count in self.counts.items() if split != "train"), default=0)
        most_tokens = EVALUATED_TOKENS if self.on_cpu and self.spec.evaluation.batch_size is None else None
        rows = evaluated_rows(min(rows, evaluated), self.length, most_tokens)
        sequences, length = self._sequences(rows)
        shape = self._shape
        one = Pass(shape, sequences, length, shape.has_maps(0.0, on_cpu=self.on_cpu), True, True, False, False)
        maps = sequences * shape.heads * length**2 * 4 if one.has_maps else 0
        return self._slack * (one.evaluation_bytes + maps) + self._converted_bytes + self._evaluated_logits_bytes(rows)

    @property
    def _loading_bytes(self) -> float:
        """While weights are read into another format, the largest is there as it was and as it will be."""
        if self._format == "float32":
            return 0.0
        return 1.4 * 4 * max(map(prod, read_weights(self.folder).shapes.values()), default=0)

    @property
    def _saving_bytes(self) -> float:
        """Float32 copies of what an adapter is merged into: all of them, or if the model is in less than float32, one.

        The others are then in files of the run, whose pages the system can take back. Of a sharded model the first
        process loads all of it once more, in the computer's memory, and replaces what it has from the file.
        """
        return (_REPLACED * self._weights_bytes if self._is_sharded and self.on_cpu else 0.0) + self._merging_bytes

    @property
    def _merging_bytes(self) -> float:
        if self.spec.adapter is None or self.spec.adapter.get("saved") == "adapter":
            return 0.0
        layers = self._layer_sizes
        copies = 2 * max(layers, default=0)  # the product of the two small matrices, and the layer's own weight
        return 4 * (copies + (sum(layers) if self._format == "float32" else 0))

    @cached_property
    def _layer_sizes(self) -> list[int]:
        """The numbers of each matrix of the model that is no embedding."""
        shapes = read_weights(self.folder).shapes if self.spec.model.initialise == "pretrained" else {}
        return [prod(shape) for name, shape in shapes.items() if len(shape) == 2 and not is_embedding(name)]

    @property
    def _slack(self) -> float:
        """What the allocator takes, which on a CPU the engine sets by the formats of weights and computation."""
        if not self.on_cpu or self._is_sharded:
            return _SCATTER
        if self._format == "float32":
            return _KEPT if self.spec.adapter is None else _KEPT_BY_ADAPTER
        return _SCATTER if self.precision == "float32" else _KEPT

    @property
    def _libraries_mb(self) -> float:
        metrics = 0.0 if self.head.declared.over_vocabulary else METRICS_MB
        return LIBRARIES_MB + metrics + _WORD_MB * self._shape.vocabulary

    def _sequences(self, rows: int) -> tuple[int, int]:
        """The sequences of so many rows, and their length: the choices of a row are counted as one."""
        choices = sum(column.startswith("choice_") for column in self.spec.data.columns) or 4
        return (rows * choices, -(-self.length // choices)) if self.head.targets == "choice" else (rows, self.length)

    @cached_property
    def trainable(self) -> int:
        """Parameters that train: all, or what an adapter adds, or all that are not frozen."""
        if not trains_a_part(self.spec):
            return self.parameters
        shapes = read_weights(self.folder).shapes
        if self.spec.adapter is not None:
            kind = registry.find("adapter", self.spec.adapter["type"], "adapter.type")
            model_type = str(inspection.read_config(self.folder).get("model_type", ""))
            return kind.count_trainable(validate(kind.Settings, self.spec.adapter, "adapter"), shapes, model_type)
        return self.parameters - sum(prod(shapes[name]) for name in frozen_names(shapes, self.spec.model.frozen))

    @cached_property
    def _weights_bytes(self) -> float:
        kind = self._format
        if kind == "float32":
            return 4 * self.parameters
        if self._is_rounded:
            shapes = read_weights(self.folder).shapes
            new = self.parameters - sum(map(prod, shapes.values()))
            return frozen_bytes(shapes, [*shapes], kind, self._shape.model_type) + 4 * max(0, new)
        shapes, adapted = read_weights(self.folder).shapes, self.spec.adapter is not None
        frozen = [*shapes] if adapted else frozen_names(shapes, self.spec.model.frozen)
        others = (
            self.trainable * adapter_copies(self.spec)
            if adapted
            else self.parameters - sum(prod(shapes[name]) for name in frozen)
        )
        return frozen_bytes(shapes, frozen, kind, self._shape.model_type) + 4 * others

    @cached_property
    def _format(self) -> Format:
        return weight_format(self.spec, self.folder, self.precision)

    @cached_property
    def _converted_bytes(self) -> float:
        """Copies of weights in the format of the computation, where they are held in another."""
        layers = [*self._layer_sizes]
        if self._format == "float32":  # autocast's copies of all layers, until the step is over
            return 0.0 if self.precision == "float32" else 2 * sum(layers)
        if self._is_rounded:
            return 0.0
        converts = self.precision == "float32" and not keeps_embedding(self._shape.model_type)
        if converts and self.head.declared.over_vocabulary:
            layers.append(self._shape.vocabulary * self._shape.hidden)  # the output layer
        return 4 * max(layers, default=0)  # one after another

    def _logits_bytes(self, rows: int) -> float:
        """Logits as they are computed, their logarithms, and the gradients of both, as many at once as the engine computes."""
        logits, narrow = self._count_logits(rows), 0 if self.precision == "float32" else 2
        shape, at_once = self._shape, self._engine.logits_at_once
        if at_once is None or logits <= at_once:
            return self._slack * logits * (3 * 4 + (narrow or 4))
        if not shape.changes_logits:
            return at_once * (4 + narrow)  # one part becomes its gradient in place
        # Each part makes a gradient of the whole output layer if that trains.
        gradient = 0 if self.spec.adapter is not None else shape.vocabulary * shape.hidden
        return (at_once * 4 + gradient) * 4

    def _evaluated_logits_bytes(self, rows: int) -> float:
        """Logits and their logarithms, as many at once as the engine computes."""
        logits, narrow = self._count_logits(rows), 0 if self.precision == "float32" else 2
        return min(logits, self._engine.logits_at_once or logits) * (2 * 4 + narrow)

    def _count_logits(self, rows: int) -> float:
        """Over a vocabulary, of so many rows."""
        tokens = rows * self.length
        if self.head is Head.MASKED_LM:
            tokens = int(tokens * float(self.spec.task.get("mask_probability", 1.0)))
        return tokens * self._shape.vocabulary if self.head.declared.over_vocabulary else 0

    def fits(self, rows: int, available_mb: float) -> bool:
        """Whether this many rows per pass need at most the free memory, with no reserve."""
        return total(self.memory(rows)) <= available_mb

    def micro_batch_size(self, available_mb: float) -> int:
        """Rows per pass on one device: as requested, else its part of the batch, halved until it fits in memory."""
        rows = -(-self.spec.training.batch_size // self.split.replicas)
        if self.spec.hardware.micro_batch_size is not None:
            return min(self.spec.hardware.micro_batch_size, rows)
        while rows > 1 and total(self.memory(rows)) > available_mb * SHARE:
            rows = -(-rows // 2)
        return rows


def total(parts: list[PlanPart]) -> float:
    """Megabytes of all parts."""
    return sum(part.megabytes for part in parts)
