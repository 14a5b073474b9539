"""The legend of a plot, and its curves as text: for a screen reader, and as columns of a file."""

from collections.abc import Iterable, Mapping
from html import escape

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QLabel

from app import theme
from app.core.i18n import tr
from app.widgets.plots.plot_crosshair import short_number
from app.widgets.plots.plot_series import PlotSeries

GAP = "&nbsp;&nbsp; "
"""Between two entries, where the line may break."""


class Legend(QLabel):
    """One line if it fits, else several; it can shrink, so that a long legend does not determine the plot's width."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)

    def one_line(self) -> int:
        """Its width in pixels on one line."""
        document = QTextDocument()
        document.setDocumentMargin(0)
        document.setDefaultFont(self.font())
        document.setHtml(self.text())
        return round(document.idealWidth()) + 2 if self.text() else 0

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(self.one_line(), self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        """Zero width."""
        return QSize(0, self.fontMetrics().height())


def legend_html(curves: Iterable[PlotSeries], tick_word: str) -> str:
    """An entry for each curve with points, and for the ticks; one for all twins, which are told apart by colour."""
    filled = [curve for curve in curves if len(curve)]
    entries = [
        _entry(curve.style.sign, curve.style.own_color, curve.style.label)
        for curve in filled
        if not curve.style.twin_of
    ]
    entries += [_entry("╍", "muted", curve.style.label) for curve in filled if curve.style.twin_of][:1]
    if entries and tick_word:
        entries.append(_entry("▴", "muted", tick_word))
    return GAP.join(entries)


def _entry(sign: str, token: str, words: str) -> str:
    mark = f'<span style="color:{theme.hex_color(token)}"><b>{sign}</b></span>'
    markup = f'<span style="color:{theme.hex_color("muted")}">{escape(words).replace(" ", "&nbsp;")}</span>'
    return f"{mark}&nbsp;{markup}"


def describe_curves(curves: Mapping[str, PlotSeries]) -> str:
    """The last value of each curve with points."""
    return ", ".join(
        tr(
            "{spoken_name} {value} at {xs:,.0f}",
            spoken_name=curve_name(curve, curves),
            value=short_number(float(curve.points.ys[-1])),
            xs=curve.points.xs[-1],
        )
        for curve in curves.values()
        if len(curve)
    )


def curve_name(curve: PlotSeries, curves: Mapping[str, PlotSeries]) -> str:
    """A curve's name by itself; for a twin, its owner."""
    owner = curves.get(curve.style.twin_of)
    if owner is None:
        return curve.style.label
    return tr("{label} of {label_2}", label=owner.style.label, label_2=curve.style.label)
