"""What to ask before a model is loaded: whether its code may run, or its old weights may be converted."""

from app.core.i18n import tr
from backend.contract.rpc.models import ModelDescription

CODE_FIELD = "model.trust_remote_code"
"""The field of the mistake that a model's code was not agreed to."""
OLD_WEIGHTS = {
    "bin": tr(
        "This model only has weights in an older format (pytorch_model.bin). Burnish can convert "
        "them to safetensors once, in an isolated process that loads nothing but numbers, and use "
        "the copy from then on."
    ),
    "flax": tr(
        "This model only has Flax weights (flax_model.msgpack). Burnish can convert them to "
        "safetensors once, for both engines, and use the copy from then on."
    ),
}
CODE = tr("This model needs to run its own Python code. Review the code before you allow it.")
TRUST, CONVERT = tr("Allow this code"), tr("Convert weights")


def own_code(model: ModelDescription) -> str:
    """The question about a model's own code, and the files that contain it."""
    return CODE + (tr(" Files: {files}.", files=", ".join(model.code_files)) if model.code_files else "")


def question(model: ModelDescription) -> tuple[str, str]:
    """`convert` or `trust` with the sentence; both empty if there is no question."""
    if model.problem:
        return "", ""
    if model.needs_conversion:
        return "convert", OLD_WEIGHTS.get(model.weights_format, OLD_WEIGHTS["bin"])
    return ("trust", own_code(model)) if model.needs_remote_code and not model.code_agreed else ("", "")
