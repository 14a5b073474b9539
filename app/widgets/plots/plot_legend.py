"""Owns the legend of a plot: one line where there is room for it, several in a row of their own where there is not."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QLabel

GAP = "&nbsp;&nbsp; "
"""Between two entries, where the line may break."""


class Legend(QLabel):
    """May be squeezed: a long legend must not decide how wide a plot is."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)

    def one_line(self) -> int:
        """Pixels that it is wide without a break."""
        document = QTextDocument()
        document.setDocumentMargin(0)
        document.setDefaultFont(self.font())
        document.setHtml(self.text())
        return round(document.idealWidth()) + 2 if self.text() else 0

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(self.one_line(), self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        """No width at all."""
        return QSize(0, self.fontMetrics().height())
