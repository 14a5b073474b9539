"""Owns how the curves of a plot are put into words: in the legend, for a screen reader, and as columns of a file."""

from collections.abc import Iterable, Mapping
from html import escape

from app import theme
from app.core.i18n import tr
from app.widgets.plots.plot_crosshair import short_number
from app.widgets.plots.plot_legend import GAP
from app.widgets.plots.plot_series import PlotSeries


def legend(curves: Iterable[PlotSeries], tick_word: str) -> str:
    """An entry for each curve that has points, and for the ticks; of twins one stands for all, whose colours tell them apart."""
    filled = [curve for curve in curves if len(curve)]
    entries = [
        _entry(curve.style.sign, curve.style.color_token, curve.style.label)
        for curve in filled
        if not curve.style.twin_of
    ]
    entries += [_entry("╍", "muted", curve.style.label) for curve in filled if curve.style.twin_of][:1]
    if entries and tick_word:
        entries.append(_entry("▴", "muted", tick_word))
    return GAP.join(entries)


def _entry(sign: str, token: str, words: str) -> str:
    mark = f'<span style="color:{theme.hex_color(token)}"><b>{sign}</b></span>'
    said = f'<span style="color:{theme.hex_color("muted")}">{escape(words).replace(" ", "&nbsp;")}</span>'
    return f"{mark}&nbsp;{said}"


def spoken(curves: Mapping[str, PlotSeries]) -> str:
    """Where each curve that has points ends."""
    return ", ".join(
        tr(
            "{spoken_name} {value} at {xs:,.0f}",
            spoken_name=name_of(curve, curves),
            value=short_number(float(curve.points.ys[-1])),
            xs=curve.points.xs[-1],
        )
        for curve in curves.values()
        if len(curve)
    )


def name_of(curve: PlotSeries, curves: Mapping[str, PlotSeries]) -> str:
    """What a curve is called alone; a twin by its owner."""
    owner = curves.get(curve.style.twin_of)
    if owner is None:
        return curve.style.label
    return tr("{label} of {label_2}", label=owner.style.label, label_2=curve.style.label)
