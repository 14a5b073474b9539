"""Owns what is asked of a person before a model is opened: to let its code run, or to convert its old weights."""

from app.core.i18n import tr
from backend.contract.rpc.models import ModelDescription

CODE_FIELD = "model.trust_remote_code"
"""The field of the mistake that a model's code was not agreed to."""
OLD_WEIGHTS = {
    "bin": tr(
        "This model has only old weights (pytorch_model.bin). A throwaway process can convert "
        "them once, reading numbers and nothing else; the copy is used from then on."
    ),
    "flax": tr(
        "This model has only Flax weights (flax_model.msgpack). They can be converted once, for "
        "both engines; the copy is used from then on."
    ),
}
CODE = tr("This model runs Python code of its own. Read that code before you agree to run it.")
TRUST, CONVERT = tr("I have read it, run its code"), tr("Convert once")


def own_code(model: ModelDescription) -> str:
    """What is asked of a model with code of its own, and which files hold it."""
    return CODE + (tr(" Files: {files}.", files=", ".join(model.code_files)) if model.code_files else "")


def question(model: ModelDescription) -> tuple[str, str]:
    """`convert` or `trust` with the sentence; both empty where nothing is asked."""
    if model.problem:
        return "", ""
    if model.needs_conversion:
        return "convert", OLD_WEIGHTS.get(model.weights_format, OLD_WEIGHTS["bin"])
    return ("trust", own_code(model)) if model.needs_remote_code and not model.code_agreed else ("", "")
