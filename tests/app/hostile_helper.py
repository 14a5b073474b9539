"""The small helper of the panels' tests whose answers hold hostile texts; `spoil` does the same to recorded events."""

import sys
from pathlib import Path

import msgspec

sys.path[:0] = [str(Path(__file__).parents[2])]

from backend.contract import queries  # noqa: E402 (the path above comes first)
from tests.app.panels import small_helper  # noqa: E402

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


def main() -> None:
    """Answer as the small helper does; the catalog and the demo's spec are our own."""
    answered = small_helper.answered

    def spoiled(request: queries.Request) -> object:
        answer = answered(request)
        if answer is None or request.query in ("catalog", "demo_spec"):
            return answer
        return msgspec.json.decode(spoil(msgspec.json.encode(answer).decode()), type=type(answer))

    small_helper.answered = spoiled
    small_helper.main()


if __name__ == "__main__":
    main()
