"""Owns the points of curves as a CSV file, written a portion at a time, so that a window that writes it stays quick."""

import csv
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path

import numpy as np

from app.widgets.plots.min_max_pyramid import Floats
from backend.contract.output_file import whole_file

CELLS = 8_000
"""Written at once: some milliseconds."""


def written(path: Path, x_label: str, curves: Mapping[str, tuple[Floats, Floats]]) -> Iterator[None]:
    """Write every point of every curve, one line an x, empty where a curve has none; each turn does a portion.

    The file bears its name when the last turn is done, and nothing is left where they end early. Raises InputError.
    """
    # A run that goes on writes into the same arrays.
    curves = {name: (np.array(xs), np.array(ys)) for name, (xs, ys) in curves.items()}
    with whole_file(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([x_label, *curves])
        places = np.zeros(0)
        for xs, _ in curves.values():
            places = _with(places, xs)
            yield
        columns = []
        for xs, ys in curves.values():
            columns.append(_column(places, xs, ys))
            yield
        lines = max(1, CELLS // (1 + len(columns)))
        for begin in range(0, len(places), lines):
            part = [places[begin : begin + lines], *(column[begin : begin + lines] for column in columns)]
            writer.writerows(zip(*(map(_cell, cells.tolist()) for cells in part), strict=True))
            yield


def _with(places: Floats, xs: Floats) -> Floats:
    """The places of another curve among them; steps come ascending nearly always, so that little is sorted."""
    if not len(places):
        return xs if bool((np.diff(xs) > 0).all()) else np.unique(xs)
    at = np.searchsorted(places, xs)
    new = np.unique(xs[places[np.minimum(at, len(places) - 1)] != xs])
    return np.insert(places, np.searchsorted(places, new), new) if len(new) else places


def _column(places: Floats, xs: Floats, ys: Floats) -> Floats:
    """A value for each place, NaN where the curve has none."""
    values = np.full(len(places), np.nan)
    values[np.searchsorted(places, xs)] = ys
    return values


def _cell(value: float) -> str:
    if not isfinite(value):
        return ""
    return str(int(value)) if value == round(value) and abs(value) < 1e15 else repr(value)
