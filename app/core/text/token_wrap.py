"""Owns how boxes of given widths flow into lines: numpy sums the widths once, each line's end is one binary search."""

from bisect import bisect_right

import numpy as np


def line_starts(advance: np.ndarray, breaks: np.ndarray, width: float) -> np.ndarray:
    """Starts of the lines and at the end the number of boxes; between two equal starts lies an empty line.

    `advance` is (boxes + 1,): where each box begins if there were one line. `breaks` is sorted: a box before which a
    line must end, as many times as there are line breaks.
    """
    places, count = advance.tolist(), len(advance) - 1
    starts, begin = [0], 0
    for stop in [*breaks.tolist(), count]:
        while begin < stop:
            fits = bisect_right(places, places[begin] + width, begin) - 1
            begin = min(stop, max(begin + 1, fits))
            starts.append(begin)
    if not len(breaks):
        return np.array(starts, np.int64)
    repeated, counts = np.unique(breaks, return_counts=True)
    # The first of several breaks ends the line before; at the very beginning there is none.
    empty = np.repeat(repeated, counts - (repeated > 0))
    return np.sort(np.concatenate([np.array(starts, np.int64), empty]), kind="stable")
