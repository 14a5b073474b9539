"""Owns how a run's name is painted in the table of runs: above its note and tags, if a person wrote some."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app import theme
from app.core.runs.run_library import RunSummary
from app.pages.runs.run_lines import RunLines
from app.widgets.tables.grouped_list import Index

LEFT = 12


class RunName(QStyledItemDelegate):
    """Two lines where there is a note or a tag, else one."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.model()
        assert isinstance(model, RunLines)
        run = model.item(index.row())
        if run is None or not (words := words_below(run)):
            super().paint(painter, option, index)
            return
        blank = QStyleOptionViewItem(option)
        self.initStyleOption(blank, index)
        name, blank.text = blank.text, ""
        blank.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, blank, painter, blank.widget)
        area = QRect(option.rect).adjusted(LEFT, 0, -LEFT // 2, 0)
        middle = area.center().y() + 1
        painter.save()
        for font, ink, top, height, text in (
            (
                theme.font(13, QFont.Weight.DemiBold),
                blank.palette.color(QPalette.ColorRole.Text),
                middle - 17,
                18,
                name,
            ),
            (theme.font(11), theme.color("muted"), middle + 1, 15, words),
        ):
            painter.setFont(font)
            painter.setPen(ink)
            cut = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, area.width())
            painter.drawText(QRect(area.left(), top, area.width(), height), Qt.AlignmentFlag.AlignVCenter, cut)
        painter.restore()


def words_below(run: RunSummary) -> str:
    """What a person wrote to it."""
    return "  ".join(filter(None, [run.note, *(f"#{tag}" for tag in run.tags)]))
