"""Aligns table cells and list items by their text direction: Hebrew and Arabic to the right."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QPlainTextEdit, QStyledItemDelegate, QStyleOptionViewItem

from app.core.text.direction import runs_right_to_left


def direction_of(text: str) -> Qt.LayoutDirection:
    """The direction of a text; left to right if it has no letters."""
    # Qt draws a cell in the direction of its table: a sentence of the other would have its full stop at the wrong end.
    return Qt.LayoutDirection.RightToLeft if runs_right_to_left(text) else Qt.LayoutDirection.LeftToRight


def follow_direction(field: QPlainTextEdit) -> None:
    """Align typed text by its first letter; a plain field uses one side for all lines."""

    def turn() -> None:
        document = field.document()
        is_right = direction_of(document.firstBlock().text()) == Qt.LayoutDirection.RightToLeft
        side = Qt.AlignmentFlag.AlignRight if is_right else Qt.AlignmentFlag.AlignLeft
        option = document.defaultTextOption()
        if option.alignment() != side:
            option.setAlignment(side)
            field.blockSignals(True)  # the text is the same
            document.setDefaultTextOption(option)
            field.blockSignals(False)

    field.textChanged.connect(turn)


class DirectedText(QStyledItemDelegate):
    """Draws each text in its own direction."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        """Add the direction to the style option."""
        super().initStyleOption(option, index)
        option.direction = direction_of(option.text)  # type: ignore[attr-defined]
