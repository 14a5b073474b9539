"""Recognises a model whose weights only exist in a format that can contain code (pickle), or in Flax's."""

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.models.location import CONVERT_OPTION
from backend.training.failures.failure import Failure, FailureContext, chain, kinds

MESSAGE = message("the model's weights are only available as pytorch_model.bin, a format that can contain programs")
HINT = message(
    "Agree to convert them once to safetensors ({convert_option}), or choose a model with safetensors.",
    convert_option=CONVERT_OPTION,
)
MORE_THAN_NUMBERS = message("the model's weights file contains more than numbers, so it was not opened")
ELSEWHERE = message("Choose a model with safetensors weights.")


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """Our own error, transformers' (`a serious vulnerability issue in torch.load`), and torch's UnpicklingError."""
    for each in chain(error):
        if "UnpicklingError" in kinds(each):
            return Failure(MORE_THAN_NUMBERS, ELSEWHERE)
        if isinstance(each, InputError) and CONVERT_OPTION in str(each):
            return Failure(str(each), "", RunFix(convert_weights=True))
        if isinstance(each, ValueError | OSError) and _mentions_pickle(str(each)):
            return Failure(MESSAGE, HINT, RunFix(convert_weights=True) if context.is_convertible else None)
    return None


def _mentions_pickle(words: str) -> bool:
    return "torch.load" in words or "no file named model.safetensors" in words


FAILURE = recognise
