"""Writes a model as ONNX, rounds it to 8 bits, and answers with such a file in ONNX Runtime as the engine does with the model."""

import contextlib
import io
import logging
import math
import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.engines.engine import Batch
from backend.engines.torch.engine import TorchEngine, insert_filler
from backend.engines.torch.heads import HEADS
from backend.engines.torch.inputs import forward_arguments, valid_rows

OUTPUTS = {
    Head.SEQUENCE_CLASSIFICATION: ("logits",),
    Head.MULTI_LABEL_CLASSIFICATION: ("logits",),
    Head.SEQUENCE_REGRESSION: ("logits",),
    Head.TOKEN_CLASSIFICATION: ("logits",),
    Head.MULTIPLE_CHOICE: ("logits",),
    Head.QUESTION_ANSWERING: ("start_logits", "end_logits"),
}
"""The heads whose models are one pass over the tokens, and what that returns."""
_ROWS, _CHOICES, _LENGTH = 2, 3, 5
"""Sizes of the batch that is traced; all of them are variables of the file."""


class _Pass(nn.Module):
    def __init__(self, model: Any, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self._model, self._outputs = model, outputs

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, ...]:
        """The outputs by name."""
        kinds = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        found = self._model(input_ids=input_ids, attention_mask=attention_mask, **kinds)
        return tuple(found[name] for name in self._outputs)


@torch.no_grad()
def write(folder: Path, head: Head, target: Path, *, token_types: bool) -> None:
    """Write the model of a Hugging Face `folder` as one ONNX file, in float32, for any number of rows and tokens.

    `token_types` says whether its tokenizer makes `token_type_ids`: a GPT-2 takes those of zeros for words. Raises InputError if its architecture cannot be written so.
    """
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    model = HEADS[head].model_class(config).from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    shape = (_ROWS, _CHOICES, _LENGTH) if head is Head.MULTIPLE_CHOICE else (_ROWS, _LENGTH)
    given = {"input_ids": torch.arange(math.prod(shape)).reshape(shape) % config.vocab_size}
    given["attention_mask"] = torch.ones_like(given["input_ids"])
    if token_types and "token_type_ids" in forward_arguments(model):
        given["token_type_ids"] = torch.zeros_like(given["input_ids"])
    sizes = dict.fromkeys(range(len(shape)), torch.export.Dim.DYNAMIC)
    try:
        with _quietly():
            program = torch.onnx.export(
                _Pass(model, OUTPUTS[head]), (), kwargs=given, dynamo=True, verbose=False, optimize=True,
                dynamic_shapes=dict.fromkeys(given, sizes), input_names=list(given), output_names=list(OUTPUTS[head]),
            )  # fmt: skip
            assert program is not None
            program.save(target)
    except (RuntimeError, ValueError, TypeError) as error:
        cause = error.__cause__ or error
        raise InputError(
            "--onnx: a {model_type} model cannot be written as ONNX ({error})",
            model_type=config.model_type,
            error=f"{type(cause).__name__}: {next(iter(str(cause).splitlines()), '')}",
        ) from error


@contextlib.contextmanager
def _quietly() -> Any:
    """Without what the exporter prints and logs of packages that it would know too."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def round_to_int8(source: Path, target: Path) -> None:
    """Write the file again with weights in 8 bits; activations are rounded as they come, each time by their own range.

    Weights take 7 of the 8 bits: processors without VNNI would overflow where they add up products of 8 bits.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        quantize_dynamic(source, target, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    finally:
        root.setLevel(level)


class OnnxEngine(TorchEngine):
    """The engine with an ONNX file in place of its model; it only evaluates, and on the CPU."""

    def __init__(self, path: Path, facts: HeadFacts, config: Any, threads: int | None) -> None:
        super().__init__()
        self._device = torch.device("cpu")
        self._model = _OnnxModel(path, facts.head, config, threads)
        self._head = HEADS[facts.head](facts, 0.0, self._device)

    def evaluate(self, batch: Batch) -> dict[str, np.ndarray]:
        """The head's outputs for every row of the batch; filler rows get zeros."""
        own = valid_rows(batch)
        found = self._head.outputs(self._head.answer(self._model, own), own)
        return insert_filler(found, batch["row_valid"])


class _OnnxModel:
    """Called like a model of transformers."""

    training = False

    def __init__(self, path: Path, head: Head, config: Any, threads: int | None) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or int(os.environ.get("OMP_NUM_THREADS", 0))
        options.log_severity_level = 3
        self.config, self._head = config, head
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._inputs = [each.name for each in self._session.get_inputs()]

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """The outputs of these tokens; a mask that masks nothing may be left out."""
        given = {
            "input_ids": input_ids,
            "attention_mask": torch.ones_like(input_ids) if attention_mask is None else attention_mask,
            "token_type_ids": torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids,
        }
        found = self._session.run(None, {name: given[name].long().numpy() for name in self._inputs})
        return SimpleNamespace(
            **{name: torch.from_numpy(each) for name, each in zip(OUTPUTS[self._head], found, strict=True)}
        )

    __call__ = forward
