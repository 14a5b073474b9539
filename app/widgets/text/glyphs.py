"""Finds characters that no installed font has and Qt draws as boxes, and sets text without ligatures."""

from functools import lru_cache

from PySide6.QtGui import QFont, QTextLayout
from PySide6.QtWidgets import QWidget

from app import theme
from app.core.i18n import tr
from app.core.text import invisible_characters

MAX_NAMED = 3
MAX_LOOKED_AT = 200


def missing_glyphs(text: str) -> str:
    """What a box means, in a sentence; empty if everything can be drawn."""
    missing = [letter for letter in dict.fromkeys(text[:MAX_LOOKED_AT]) if not is_drawn(letter)]
    if not missing:
        return ""
    names = ", ".join(invisible_characters.name(letter) for letter in missing[:MAX_NAMED])
    if len(missing) > MAX_NAMED:
        return tr(
            "No installed font has {names} and {number} more, so they appear as boxes.",
            names=names,
            number=len(missing) - MAX_NAMED,
        )
    return tr("No installed font has {names}, so it appears as a box.", names=names)


@lru_cache(4096)
def is_drawn(letter: str) -> bool:
    """Whether any font, queried as for drawing tokens, has a glyph for it; invisible characters count as drawn."""
    return letter.isspace() or invisible_characters.is_invisible(letter) or _is_in_a_font(letter)


def _is_in_a_font(letter: str) -> bool:
    layout = QTextLayout(letter, theme.mono_font(13))
    layout.beginLayout()
    layout.createLine()
    layout.endLayout()
    return not any(_is_box(run) for run in layout.glyphRuns())


def _is_box(run: object) -> bool:
    """Glyph 0 is a font's own box. If a script has no font at all, Qt uses a box font, an em as high as its
    pixel size; its names must not be queried, which crashes."""
    raw = run.rawFont()  # type: ignore[attr-defined]
    return 0 in run.glyphIndexes() or raw.unitsPerEm() == raw.pixelSize()  # type: ignore[attr-defined]


def show_plain_signs(widget: QWidget) -> None:
    """Turn off ligatures in the widget's font; its style sheet role is applied first."""
    font = widget.font()
    font.setFeature(QFont.Tag("calt"), 0)
    widget.setFont(font)
