"""Reads another system's configuration: what was used, what was ignored, and public data sets by name."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from backend.contract.errors import InputError
from backend.contract.spec_include import overlay

_PAIRS = {
    "cola": ("sentence", None), "sst2": ("sentence", None), "mnli": ("premise", "hypothesis"),
    "mrpc": ("sentence1", "sentence2"), "rte": ("sentence1", "sentence2"), "stsb": ("sentence1", "sentence2"),
    "wnli": ("sentence1", "sentence2"), "qnli": ("question", "sentence"), "qqp": ("question1", "question2"),
    "xnli": ("premise", "hypothesis"),
}  # fmt: skip


@dataclass
class ImportedSpec:
    """A spec (plain values) made from another system's configuration."""

    spec: dict[str, Any] = field(default_factory=dict)
    unmatched: list[str] = field(default_factory=list)
    """What had no counterpart, each as `key: value` with the reason where one is known."""
    notes: list[str] = field(default_factory=list)
    """What is done otherwise here, as sentences."""

    def add(self, **sections: Any) -> None:
        """Merge sections into the spec; a value of None inside a mapping is left out."""
        self.spec = overlay(self.spec, _drop_empty(sections))


class ForeignConfig:
    """A nested configuration. `take` returns a value and marks it as used."""

    def __init__(self, values: dict[str, Any], prefix: str = "") -> None:
        self._values, self._prefix, self._left = values, prefix, dict.fromkeys(values)

    def take(self, key: str, default: Any = None) -> Any:
        """The value of a key that has a counterpart; `default` if it is missing or null.

        If the default is a number the value is one too. Raises InputError otherwise.
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
        raise InputError(f"{self._prefix}{key}: {value!r} is not a number; write one", key)

    def section(self, key: str) -> "ForeignConfig":
        """The mapping under a key; empty if there is none."""
        value = self.take(key, {})
        return ForeignConfig(value if isinstance(value, dict) else {}, f"{self._prefix}{key}.")

    def skip(self, *keys: str) -> None:
        """Mark keys that do not affect training, such as a cache folder."""
        for key in keys:
            self._left.pop(key, None)

    def refuse(self, key: str, reason: str) -> Iterator[str]:
        """Report a key without a counterpart, if present, with the reason."""
        value = self.take(key)
        if value not in (None, False, {}, []):
            yield f"{self._prefix}{key}: {_shorten(value)} ({reason})"

    def unused(self) -> list[str]:
        """Unused keys, as `key: value`; null and empty values are ignored."""
        return [
            f"{self._prefix}{key}: {_shorten(self._values[key])}"
            for key in self._left
            if self._values[key] not in (None, {}, [])
        ]


def _drop_empty(values: dict[str, Any]) -> dict[str, Any]:
    cleaned = {key: _drop_empty(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: value for key, value in cleaned.items() if value is not None and value != {}}


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def task_of_glue(name: str | None) -> str | None:
    """The task of a GLUE configuration; None for any other name."""
    if name is None or name.lower() not in _PAIRS:
        return None
    return "text_regression" if name.lower() == "stsb" else "text_classification"


def glue_columns(name: str | None) -> dict[str, str] | None:
    """Role → column of a data set of pairs or sentences; None if the name is unknown."""
    if name is None or name.lower() not in _PAIRS:
        return None
    text, pair = _PAIRS[name.lower()]
    return {"text": text, **({"text_pair": pair} if pair else {}), "label": "label"}


def hub_data(name: str, configuration: str | None) -> dict[str, Any]:
    """The `data` section for a hub data set with its usual splits."""
    validation = "validation_matched" if configuration == "mnli" else "validation"
    return {"source": "hub", "name": name, "configuration": configuration, "train": "train", "validation": validation}
