"""Owns how the JAX engine gets a model through the bridge: transformers' class with its weights, tried, then emptied."""

from pathlib import Path
from typing import Any

from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.engines.engine import Loading
from backend.engines.jax.bridge import SETTING
from backend.engines.jax.bridge.module import BridgedModel
from backend.engines.jax.bridge.trial import Trial
from backend.engines.jax.bridge.writer import BridgedWriter
from backend.engines.jax.loading import Opened
from backend.engines.transformers_model import Kind, open_model

_CLASSES: dict[Head, Any] = {
    Head.CAUSAL_LM: AutoModelForCausalLM,
    Head.MASKED_LM: AutoModelForMaskedLM,
    Head.SEQ2SEQ_LM: AutoModelForSeq2SeqLM,
    Head.SEQUENCE_CLASSIFICATION: AutoModelForSequenceClassification,
    Head.SEQUENCE_REGRESSION: AutoModelForSequenceClassification,
    Head.TOKEN_CLASSIFICATION: AutoModelForTokenClassification,
    Head.QUESTION_ANSWERING: AutoModelForQuestionAnswering,
    Head.MULTIPLE_CHOICE: AutoModelForMultipleChoice,
}


def open_bridged(loading: Loading) -> Opened:
    """Raises InputError where torchax cannot compute the model, or the spec asks for what the bridge does not have."""
    head = loading.head.head
    if head not in _CLASSES:
        raise _lacking(f"no {head.replace('_', ' ')}")
    if loading.adapter is not None:
        raise InputError(
            f"adapter: {SETTING} trains whole models; leave the adapter out, or choose PyTorch", "adapter.type"
        )
    # Eager, for torchax's fused attention gives NaN where a row is masked wholly.
    module, account = open_model(loading, Kind(lambda config: _CLASSES[head], "eager", _no_adapter))
    _check(module, trains=loading.training is not None)
    loaded, trial = account.stated(module), Trial(module, head, trains=loading.training is not None)
    model = BridgedModel(module, head, trial.constant)
    parameters = model.take_parameters()
    trial.check(model, parameters)
    return Opened(model, parameters, module.config, getattr(module, "generation_config", None), loaded, BridgedWriter)


def _check(module: PreTrainedModel, *, trains: bool) -> None:
    """Raises InputError for what a traced program would do once and for all, instead of in every step."""
    config = module.config.to_dict()
    dropped = [name for name in config if name.endswith("layerdrop") and config[name]]
    if trains and dropped:
        raise InputError(
            f"model.config.{dropped[0]}: {SETTING} cannot leave layers out by chance; set it to 0, or choose PyTorch",
            f"model.config.{dropped[0]}",
        )
    if trains and any(isinstance(each, nn.modules.batchnorm._BatchNorm) for each in module.modules()):
        raise _lacking("no running means, which this model's batch normalisation keeps")


def _no_adapter(module: PreTrainedModel, folder: Path) -> set[str]:
    raise InputError(
        f"model.name_or_path: {folder} holds an adapter alone, which {SETTING} cannot merge; choose PyTorch, or merge it "
        "with PEFT",
        "model.name_or_path",
    )


def _lacking(what: str) -> InputError:
    return InputError(f"{SETTING}: the bridge knows {what}; choose PyTorch", SETTING)
