"""Owns the text of an editor as a person wrote it: Qt's own way makes plain spaces of those that must not break."""

from PySide6.QtWidgets import QPlainTextEdit

_ENDS = str.maketrans({"\u2029": "\n", "\u2028": "\n"})


def text_of(editor: QPlainTextEdit) -> str:
    """Characters stay where `toPlainText` has them; both of Qt's ends of lines are line feeds."""
    return editor.document().toRawText().translate(_ENDS)
