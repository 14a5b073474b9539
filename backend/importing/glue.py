"""Owns what experiments of other systems say by the name of a public data set: its task, columns and splits."""

from typing import Any

_PAIRS = {
    "cola": ("sentence", None), "sst2": ("sentence", None), "mnli": ("premise", "hypothesis"),
    "mrpc": ("sentence1", "sentence2"), "rte": ("sentence1", "sentence2"), "stsb": ("sentence1", "sentence2"),
    "wnli": ("sentence1", "sentence2"), "qnli": ("question", "sentence"), "qqp": ("question1", "question2"),
    "xnli": ("premise", "hypothesis"),
}  # fmt: skip


def task_of_glue(name: str | None) -> str | None:
    """The task of a GLUE configuration; None for any other name."""
    if name is None or name.lower() not in _PAIRS:
        return None
    return "text_regression" if name.lower() == "stsb" else "text_classification"


def glue_columns(name: str | None) -> dict[str, str] | None:
    """Role → column of a data set of pairs or sentences; None where the name says nothing."""
    if name is None or name.lower() not in _PAIRS:
        return None
    text, pair = _PAIRS[name.lower()]
    return {"text": text, **({"text_pair": pair} if pair else {}), "label": "label"}


def hub_data(name: str, configuration: str | None) -> dict[str, Any]:
    """The `data` section for a hub data set with its usual splits."""
    validation = "validation_matched" if configuration == "mnli" else "validation"
    return {"source": "hub", "name": name, "configuration": configuration, "train": "train", "validation": validation}
