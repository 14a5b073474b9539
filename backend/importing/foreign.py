"""Owns the reading of another system's configuration: what was used, and what nobody asked for, by name."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from backend.contract.errors import InputError
from backend.contract.spec_include import laid_over


@dataclass
class Imported:
    """A spec (plain values) made of another system's configuration."""

    spec: dict[str, Any] = field(default_factory=dict)
    unmatched: list[str] = field(default_factory=list)
    """What had no counterpart, each as `key: value` with the reason where one is known."""
    notes: list[str] = field(default_factory=list)
    """What is done otherwise here, as sentences."""

    def add(self, **sections: Any) -> None:
        """Lay sections over the spec; a value of None inside a mapping stays out."""
        self.spec = laid_over(self.spec, _without_nothing(sections))


class Foreign:
    """A nested configuration. `take` gives a value and remembers that it was asked for."""

    def __init__(self, values: dict[str, Any], prefix: str = "") -> None:
        self._values, self._prefix, self._left = values, prefix, dict.fromkeys(values)

    def take(self, key: str, default: Any = None) -> Any:
        """The value of a key that has a counterpart; `default` where it is absent or null.

        Where the default is a number the value is one too. Raises InputError for what is none.
        """
        self._left.pop(key, None)
        value = self._values.get(key)
        if value is None:
            return default
        return self._number(key, value) if type(default) in (int, float) else value

    def _number(self, key: str, value: Any) -> int | float:
        if type(value) in (int, float):
            return value
        for kind in (int, float):
            try:
                return kind(str(value))
            except ValueError:
                continue
        raise InputError(f"{self._prefix}{key}: {value!r} is no number; write one", key)

    def within(self, key: str) -> "Foreign":
        """The mapping under a key; an empty one where there is none."""
        value = self.take(key, {})
        return Foreign(value if isinstance(value, dict) else {}, f"{self._prefix}{key}.")

    def skip(self, *keys: str) -> None:
        """Keys that say nothing about the training itself, such as where a cache lies."""
        for key in keys:
            self._left.pop(key, None)

    def refuse(self, key: str, reason: str) -> Iterator[str]:
        """A key without counterpart, where it is there, with the reason."""
        value = self.take(key)
        if value not in (None, False, {}, []):
            yield f"{self._prefix}{key}: {_short(value)} ({reason})"

    def left(self) -> list[str]:
        """What nobody asked for, as `key: value`; null and empty values ask for nothing."""
        return [
            f"{self._prefix}{key}: {_short(self._values[key])}"
            for key in self._left
            if self._values[key] not in (None, {}, [])
        ]


def _without_nothing(values: dict[str, Any]) -> dict[str, Any]:
    cleaned = {key: _without_nothing(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: value for key, value in cleaned.items() if value is not None and value != {}}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
