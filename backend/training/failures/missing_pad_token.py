"""Recognises a tokenizer or model without a padding token, as reported by transformers."""

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.models.inspection import read_config
from backend.models.tokenizer_files import end_token
from backend.training.failures.failure import Failure, FailureContext, chain

MESSAGE = message("the tokenizer has no padding token, so rows of different lengths cannot share a batch")
HINT = message("Set one in model.tokenizer_options, for example {pad_token: <|endoftext|>}.")
_OF_TOKENIZER = ("does not have a padding token", "without a padding token")
_OF_MODEL = "if no padding token is defined"
_PAD_TOKEN = "model.tokenizer_options.pad_token"


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """`Asking to pad but the tokenizer does not have a padding token`, `Cannot handle batch sizes > 1 if no padding …`."""
    for each in chain(error):
        own = isinstance(each, InputError)
        if (
            isinstance(each, ValueError)
            and not own
            and any(words in str(each) for words in (*_OF_TOKENIZER, _OF_MODEL))
        ):
            return Failure(MESSAGE, HINT, _fix(context))
    return None


def _fix(context: FailureContext) -> RunFix | None:
    """Use the end token for padding: it is identified by the attention mask, so no real token is mistaken for it."""
    folder = context.model
    token = end_token(folder) if folder else ""
    if not folder or not token or context.setting(_PAD_TOKEN) == token:
        return None
    config = read_config(folder)
    end, rows = config.get("eos_token_id"), config.get("vocab_size")
    has_row = isinstance(end, int) and isinstance(rows, int) and end < rows
    return RunFix({_PAD_TOKEN: token, **({"model.config.pad_token_id": end} if has_row else {})})


FAILURE = recognise
