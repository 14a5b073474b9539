"""The filter on a table of predictions: each condition as a query to the helper and as a chip's text."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from app.core.i18n import figure, tr

LETTERS = 28
"""Of a value that a chip shows."""
RIGHT, TEXT, PAIR, CONFIDENCE, SLICE = "right", "text", "pair", "confidence", "slice"
_COMPARED = {
    "is": tr("{column} is {value}"),
    "is_not": tr("{column} is not {value}"),
    "at_least": tr("{column} at least {value}"),
    "at_most": tr("{column} at most {value}"),
}


@dataclass(frozen=True)
class ValueFilter:
    """Rows whose column compares with a value; `comparison` is `is`, `is_not`, `at_least` or `at_most`."""

    column: str
    comparison: str
    value: Any

    @property
    def words(self) -> str:
        """A chip's text."""
        column = short(self.column.replace("_", " "))
        if self.value is None:
            return (
                tr("{column} is empty", column=column)
                if self.comparison == "is"
                else tr("{column} is not empty", column=column)
            )
        return _COMPARED[self.comparison].format(column=column, value=short(value_text(self.value)))


@dataclass(frozen=True)
class RowFilter:
    """All conditions must hold; the empty filter keeps every row."""

    right: bool | None = None
    text: str = ""
    text_column: str = ""
    """Where the text is looked for; empty: in any column."""
    case: bool = False
    words: bool = False
    regex: bool = False
    pair: tuple[str, str] | None = None
    """Actual and predicted label; an empty one may be any."""
    confidence: tuple[float, float] | None = None
    """Above the first and at most the second, as the bins of a reliability diagram."""
    values: tuple[ValueFilter, ...] = ()
    slice: tuple[int, str] | None = None
    """The number of a slice, and what it is called."""

    @property
    def is_empty(self) -> bool:
        """Whether every row matches."""
        return not any(True for _ in self.chips())

    @property
    def is_plain(self) -> bool:
        """Whether it only filters by right, wrong and a plain text in any column."""
        own = self.text_column or self.case or self.words or self.regex
        asked = self.pair is not None or self.confidence is not None or self.slice is not None
        return not (self.text and own) and not asked and not self.values

    def question(self) -> dict[str, Any]:
        """The arguments of `filter_predictions` for this filter."""
        arguments: dict[str, Any] = {} if self.right is None else {"right": self.right}
        if self.text:
            options = {name: True for name in ("case", "words", "regex") if getattr(self, name)}
            arguments |= {"text": self.text, **options}
            arguments |= {"text_column": self.text_column} if self.text_column else {}
        if self.pair is not None:
            arguments |= {name: label for name, label in zip(("actual", "prediction"), self.pair, strict=True) if label}
        if self.slice is not None:
            arguments["slice"] = self.slice[0]
        if conditions := list(self._conditions()):
            arguments["conditions"] = conditions
        return arguments

    def _conditions(self) -> Iterator[dict[str, Any]]:
        if self.confidence is not None:
            low, high = self.confidence
            yield {"column": "confidence", "is": "above" if low > 0 else "at_least", "value": low}
            yield {"column": "confidence", "is": "at_most", "value": high}
        for one in self.values:
            yield {"column": one.column, "is": one.comparison, "value": one.value}

    def chips(self) -> Iterator[tuple[str, str]]:
        """(key, words) of each condition; `without(key)` removes it."""
        if self.right is not None:
            yield RIGHT, tr("Correct") if self.right else tr("Wrong")
        if self.text:
            yield TEXT, self._text_words()
        if self.pair is not None:
            yield PAIR, _pair_words(*(short(label) for label in self.pair))
        if self.confidence is not None:
            low, high = self.confidence
            yield CONFIDENCE, tr("Confidence {low:.2f} to {high:.2f}", low=low, high=high)
        if self.slice is not None:
            yield SLICE, short(self.slice[1])
        for place, one in enumerate(self.values):
            yield str(place), one.words

    def _text_words(self) -> str:
        text = short(self.text)
        pattern = f"/{text}/" if self.regex else f"“{text}”"
        where = short(self.text_column.replace("_", " "))
        return tr("{said} in {where}", said=pattern, where=where) if where else pattern

    def without(self, key: str) -> "RowFilter":
        """The same filter without a chip's condition."""
        if key == TEXT:
            return replace(self, text="")
        if key in (RIGHT, PAIR, CONFIDENCE, SLICE):
            return replace(self, **{key: None})
        return replace(self, values=tuple(one for place, one in enumerate(self.values) if str(place) != key))

    def with_value(self, value: ValueFilter) -> "RowFilter":
        """The same filter with one more condition; duplicates are kept once."""
        return self if value in self.values else replace(self, values=(*self.values, value))


def _pair_words(actual: str, predicted: str) -> str:
    if not predicted:
        return tr("Actual {label}", label=actual)
    if not actual:
        return tr("Predicted {label}", label=predicted)
    return tr("Actual {short}, predicted {short_2}", short=actual, short_2=predicted)


def short(text: str) -> str:
    """A text shortened to fit a chip."""
    line = " ".join(text.split())
    return line if len(line) <= LETTERS else f"{line[:LETTERS]}…"


def value_text(value: Any) -> str:
    """A value in short form."""
    return figure(value, ".4g") if isinstance(value, float) else str(value)
