"""Owns what a decoder is given to write its labels: the same, one place later."""

import numpy as np

from backend.contract.heads import IGNORE

BEGINS_WITH_LAST = frozenset({"mbart"})
"""Architectures whose decoder begins with the last token of the labels, a language, whatever their configuration says."""


def decoder_inputs(labels: np.ndarray, start: int | None, padding: int) -> np.ndarray:
    """(rows, length) the start token, then all labels but the last; -100 becomes padding.

    Without a start token the last label that is known comes first (mBART, Liu et al. 2020).
    """
    known = np.where(labels == IGNORE, padding, labels)
    if start is not None:
        first = np.full((len(known), 1), start, known.dtype)
    else:
        last = np.maximum((known != padding).sum(axis=1, keepdims=True) - 1, 0)
        first = np.take_along_axis(known, last, axis=1)
    return np.concatenate([first, known[:, :-1]], axis=1)
