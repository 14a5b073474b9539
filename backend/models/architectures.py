"""Which architectures can do what, read from transformers' own tables without running transformers."""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

from backend.contract.heads import Head
from backend.contract.messages import message

BEAM_CLASSES = {
    "xlnet": "XLNetForQuestionAnswering",
    "xlm": "XLMForQuestionAnswering",
    "flaubert": "FlaubertForQuestionAnswering",
}
"""The only architectures with a beam-search head, and its class; transformers has no table of them."""
_AUDIO = ("SPEECH_SEQ_2_SEQ", "AUDIO_CLASSIFICATION", "CTC", "AUDIO_XVECTOR", "TEXT_TO_SPECTROGRAM", "TEXT_TO_WAVEFORM")
_IMAGES = (
    "IMAGE", "IMAGE_CLASSIFICATION", "ZERO_SHOT_IMAGE_CLASSIFICATION", "MASKED_IMAGE_MODELING", "IMAGE_SEGMENTATION",
    "SEMANTIC_SEGMENTATION", "UNIVERSAL_SEGMENTATION", "OBJECT_DETECTION", "ZERO_SHOT_OBJECT_DETECTION",
    "DEPTH_ESTIMATION", "VIDEO_CLASSIFICATION", "VISUAL_QUESTION_ANSWERING", "IMAGE_TO_IMAGE", "MASK_GENERATION",
)  # fmt: skip

_NAMED = re.compile(
    r"""self\.(\w+)\s*(?::[^=\n]+)?=(?!=)|(?:register_\w+|add_module)\(\s*["'](\w+)|base_model_prefix\s*=\s*["'](\w+)"""
)
"""How transformers' code names a module or a parameter of the one around it."""
_OF_ANOTHER = re.compile(r"from \.\.(\w+)\.modeling_\w+ import")
_ANY_MODEL = re.compile(r"\bAutoModel\w*\.from_")


def explain_unsupported(config: dict[str, Any], head: Head) -> str:
    """Why a configuration's architecture does not support a head, as the end of a sentence; empty if it does."""
    model_type = str(config.get("model_type", ""))
    if not model_type:
        return message("its config.json does not specify a model_type, so its type is unknown")
    if needs_code(config):
        return _explain_own_code(config, head)
    if medium := _medium(model_type):
        return message(
            "a {model_type} model is made for {medium}; choose a model for text", model_type=model_type, medium=medium
        )
    if head is Head.QUESTION_ANSWERING_BEAM and model_type not in BEAM_CLASSES:
        return message(
            "a {model_type} model has no beam-search head; choose XLNet, XLM or FlauBERT, or the plain head",
            model_type=model_type,
        )
    if model_type not in model_types(head):
        return message(
            "a {model_type} model cannot {purpose}; choose one that can, or another task",
            model_type=model_type,
            purpose=head.declared.purpose,
        )
    if head is Head.CAUSAL_LM and config.get("is_encoder_decoder"):
        return message(
            "a {model_type} model turns one text into another and cannot continue a text; choose a "
            "decoder such as GPT-2",
            model_type=model_type,
        )
    if head is Head.CAUSAL_LM and model_type == "xlnet":
        return message(
            "an XLNet model sees the words that follow, so it cannot continue a text; choose a decoder such as GPT-2"
        )
    if head is Head.CAUSAL_LM and model_type in model_types(Head.MASKED_LM) and not config.get("is_decoder"):
        return message(
            "a {model_type} model is an encoder and cannot continue a text; choose a decoder such as GPT-2",
            model_type=model_type,
        )
    return ""


def _explain_own_code(config: dict[str, Any], head: Head) -> str:
    mapped, wanted = config.get("auto_map"), head.declared.auto_class
    if isinstance(mapped, dict) and wanted in mapped and "AutoConfig" in mapped:
        return ""
    lacking = message(" (its auto_map has no {wanted})", wanted=wanted) if wanted else ""
    return message(
        "this model's own code cannot {purpose}{lacking}; choose another task, or another model",
        purpose=head.declared.purpose,
        lacking=lacking,
    )


def needs_code(config: dict[str, Any]) -> bool:
    """Whether a configuration points to its own Python code because transformers does not support its architecture."""
    kind = config.get("model_type")
    known = isinstance(kind, str) and any(kind in types for types in _tables().values())
    return "auto_map" in config and not known


def model_types(head: Head) -> frozenset[str]:
    """The model types that have this head in transformers."""
    return frozenset(BEAM_CLASSES) if head is Head.QUESTION_ANSWERING_BEAM else _table(head.declared.table)


@cache
def activations() -> frozenset[str]:
    """The names of transformers' activation functions."""
    for node in _module("activations.py").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and _is_named(node.targets[0], "ACT2CLS"):
            return frozenset(key.value for key in node.value.keys if isinstance(key, ast.Constant))  # type: ignore[misc]
    raise AssertionError(message("transformers has no table of activation functions"))


@cache
def module_names(model_type: str) -> frozenset[str]:
    """All module and parameter names in transformers' code of a model type; none if unknown."""
    return _names_in(model_type.replace("-", "_"))


@cache
def _names_in(package: str) -> frozenset[str]:
    texts = [path.read_text(encoding="utf-8") for path in (_folder() / "models" / package).glob("modeling_*.py")]
    if not texts or any(map(_ANY_MODEL.search, texts)):  # another model within it may have any name
        return frozenset()
    shared = (_folder() / "modeling_layers.py").read_text(encoding="utf-8")
    named = {name for text in (*texts, shared) for found in _NAMED.findall(text) for name in found if name}
    others = {other for text in texts for other in _OF_ANOTHER.findall(text)} - {package}
    return frozenset(named.union(*map(_names_in, others)))


def _is_named(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _medium(model_type: str) -> str:
    if any(model_type in _table(name) for name in _AUDIO):
        return "audio"
    reads_text = any(model_type in model_types(head) for head in Head)
    if any(model_type in _table(name) for name in _IMAGES) and not reads_text:
        return "images"
    if model_type in _table("IMAGE_TEXT_TO_TEXT") and not reads_text:
        return message("images and text")
    return ""


def _table(name: str) -> frozenset[str]:
    return _tables().get(f"MODEL_FOR_{name}_MAPPING_NAMES", frozenset())


@cache
def _tables() -> dict[str, frozenset[str]]:
    # Importing these tables loads torch wherever it is installed (seconds); reading their source takes 30 ms.
    tree = _module("models/auto/modeling_auto.py")
    return {
        node.targets[0].id: frozenset(_keys(node.value))
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)
    }


def _module(path: str) -> ast.Module:
    return ast.parse((_folder() / path).read_text(encoding="utf-8"))


def _folder() -> Path:
    package = importlib.util.find_spec("transformers")
    assert package is not None, "transformers is a dependency of the distribution"
    return Path((package.submodule_search_locations or [""])[0])


def _keys(call: ast.Call) -> list[str]:
    """The model types in `OrderedDict([...])` of (model_type, class) pairs, without those copied from other tables."""
    pairs = call.args[0].elts if call.args and isinstance(call.args[0], ast.List) else []
    first = [pair.elts[0] for pair in pairs if isinstance(pair, ast.Tuple)]
    return [key.value for key in first if isinstance(key, ast.Constant) and isinstance(key.value, str)]
