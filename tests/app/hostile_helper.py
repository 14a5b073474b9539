"""The small helper of the panels' tests whose answers hold hostile texts; `spoil` does the same to recorded events."""

from typing import Any

import msgspec

from backend.contract.rpc import protocol
from tests.app.pages import small_helper

HOSTILE = '<b>x</b><img src="file:///burnish/trap.png">&amp;<a href="x">y</a>'
SPOILED = (
    "positive", "negative", "sentiment", "bert-tiny", "BertForSequence", "accuracy", "train.csv", "predictions.csv",
    "no text", "Processor, 2 cores", "mt5-small", "not_entailment", "No apples were sold", "This model was not trained",
    "The device ran out of memory", "cpu out of memory", "for these labels", "word word",
)  # fmt: skip
"""Names, labels, messages and cells that come from data, models and runs."""


def spoil(text: str) -> str:
    """`text`, which is JSON, with markup before each of the words above."""
    markup = msgspec.json.encode(HOSTILE).decode()[1:-1]
    for word in SPOILED:
        text = text.replace(word, f"{markup}{word}")
    return text


def spoiled(value: Any) -> Any:
    """An answer with the same markup before these words in its texts, and in names that are keys of a mapping."""
    match value:
        case str():
            return f"{HOSTILE}{value}" if any(word in value for word in SPOILED) else value
        case dict():
            return {spoiled(key): spoiled(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(spoiled, value))
        case msgspec.Struct():
            fields = {field: spoiled(getattr(value, field)) for field in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
    return value


load = small_helper.load


def main() -> None:
    """Answer as the small helper does; the catalog and the demo's spec are our own."""
    answered = small_helper.answered

    def answer_hostile(request: protocol.Request) -> object:
        answer = answered(request)
        return answer if request.query in ("catalog", "demo_spec") else spoiled(answer)

    small_helper.answered = answer_hostile
    small_helper.main()
