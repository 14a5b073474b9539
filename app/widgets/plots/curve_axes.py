"""Owns what the curves of a run may be drawn over, in the words of a list and of a plot."""

from app.core.i18n import tr
from app.widgets.plots.plot_axis import Kind

AXIS_TITLES = {"step": tr("Step"), "epoch": tr("Epoch"), "tokens": tr("Tokens"), "time": tr("Time")}
X_LABELS: dict[str, tuple[str, Kind]] = {
    "step": ("step", "whole"),
    "epoch": ("epoch", "number"),
    "tokens": ("tokens", "count"),
    "time": ("seconds", "duration"),
}
"""Axis → how a plot calls it, and what its numbers are."""
