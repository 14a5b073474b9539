"""The theme of the window: colors, fonts, icons and the style sheet, light and dark, switched at run time.

A widget takes its colours from here. If it keeps any of them longer than a paint, it offers
`apply_theme()` and calls `follow`.
Style sheet roles, set with `theme.role(widget, name)`:
labels   title, subtitle, heading, section, value, muted, faint, mono, success, warning, danger
frames   card, panel, sidebar, banner-info, banner-warning, banner-error, banner-success, chip
buttons  primary, danger, quiet, icon, nav, chip, chip-narrow
"""

from typing import Literal
from weakref import WeakKeyDictionary, WeakSet

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QLabel, QProxyStyle, QWidget
from shiboken6 import isValid

from app.theme.icons import forget_icons, icon_in, pixmap_in
from app.theme.palette import DARK, LIGHT, palette_of, style_sheet
from backend.contract.resources import resource

Choice = Literal["system", "light", "dark"]
TEXT_SIZES = (12, 13, 15, 16)
"""Pixels of plain text that a person may choose; all other sizes keep their proportion to it."""
USUAL_SIZE = 13
SANS = "Inter"
MONO = "JetBrains Mono"
_STYLED = "burnish"
_present: dict[str, dict[str, str]] = {"tokens": LIGHT}
_text = {"size": USUAL_SIZE}
_followers: WeakSet[QWidget] = WeakSet()
_own_fonts: WeakKeyDictionary[QWidget, tuple[int, QFont.Weight, bool]] = WeakKeyDictionary()


class _PlainTextStyle(QProxyStyle):
    """Shows text as it stands: no label reads it as HTML unless it was told to, not even Qt's own.

    Tooltips and message boxes are labels, too, and every widget is polished before it is shown. By itself Qt takes a text
    that looks like HTML for HTML, and loads its pictures.
    """

    def polish(self, polished: QWidget | QApplication | QPalette) -> None:  # type: ignore[override]
        """Qt asks for the application and for palettes, too."""
        if isinstance(polished, QLabel) and polished.textFormat() == Qt.TextFormat.AutoText:
            polished.setTextFormat(Qt.TextFormat.PlainText)
        super().polish(polished)  # type: ignore[arg-type]


def apply(application: QApplication, choice: str = "system", text_size: int | None = None) -> None:
    """Give the whole application the look of `choice`; widgets that follow it take the new look.

    `text_size`, one of TEXT_SIZES, stays what it was where it is not given. The look that the application has already
    costs nothing.
    """
    tokens = DARK if _wants_dark(choice) else LIGHT
    size = text_size if text_size in TEXT_SIZES else _text["size"]
    is_styled = application.objectName() == _STYLED and application.styleSheet()
    if is_styled and tokens is _present["tokens"] and size == _text["size"]:
        return
    _present["tokens"], _text["size"] = tokens, size
    load_fonts()
    forget_icons()
    if application.objectName() != _STYLED:
        # Once: replacing the style under living widgets crashes Qt now and then.
        application.setStyle(_PlainTextStyle("Fusion"))
        application.setObjectName(_STYLED)
    # A style sheet in the place of another is polished anew for every widget as often as it has ancestors; in the place
    # of none once, a fifth of the time.
    application.setStyleSheet("")
    application.setPalette(palette_of(_present["tokens"]))
    application.setFont(font())
    application.setStyleSheet(style_sheet(_present["tokens"], is_dark(), _text["size"] / USUAL_SIZE))
    # Not `allWidgets()`: a wrapper of one of Qt's own widgets may outlive it, and touching that one crashes.
    for widget, own in list(_own_fonts.items()):
        if isValid(widget):
            widget.setFont(_own_font(*own))
    for widget in filter(isValid, list(_followers)):
        widget.apply_theme()  # type: ignore[attr-defined]


def follow(widget: QWidget) -> None:
    """Call the widget's `apply_theme()` whenever the colours or the text size change."""
    _followers.add(widget)


def _wants_dark(choice: str) -> bool:
    if choice != "system":
        return choice == "dark"
    return QGuiApplication.styleHints().colorScheme().name == "Dark"


def is_dark() -> bool:
    """Whether the dark colours are on."""
    return _present["tokens"] is DARK


def color(name: str) -> QColor:
    """The present colour of a token, for example `accent`."""
    return QColor(_present["tokens"][name])


def hex_color(name: str) -> str:
    """The same as `#rrggbb`."""
    return _present["tokens"][name]


def pixels(usual: float) -> int:
    """So many pixels at the usual text size, as many as that is at the present one."""
    return round(usual * _text["size"] / USUAL_SIZE)


def text_size() -> int:
    """Pixels of plain text, one of TEXT_SIZES."""
    return _text["size"]


def font(usual: int = 13, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """The text font, `usual` pixels high at the usual text size."""
    made = QFont(SANS)
    made.setPixelSize(pixels(usual))
    made.setWeight(weight)
    return made


def mono_font(usual: int = 13) -> QFont:
    """The font of logs, ids and tokens."""
    made = QFont(MONO)
    made.setPixelSize(pixels(usual))
    made.setStyleHint(QFont.StyleHint.Monospace)
    return made


def give_font(widget: QWidget, usual: int, weight: QFont.Weight = QFont.Weight.Normal, mono: bool = False) -> None:
    """Give a widget a font of its own, which follows the text size."""
    _own_fonts[widget] = (usual, weight, mono)
    widget.setFont(_own_font(usual, weight, mono))


def _own_font(usual: int, weight: QFont.Weight, mono: bool) -> QFont:
    return mono_font(usual) if mono else font(usual, weight)


def icon(name: str, token: str = "muted", size: int = 18, room: int = 0) -> QIcon:
    """A line icon in a token's colour, greyed where the button is disabled, `room` empty pixels at its right."""
    return icon_in(name, hex_color(token), hex_color("disabled"), size, room)


def pixmap(name: str, token: str = "muted", size: int = 18) -> QPixmap:
    """The same as a sharp pixmap of `size` logical pixels."""
    return pixmap_in(name, hex_color(token), size)


def role(widget: QWidget, name: str) -> QWidget:
    """Give a widget a role of the style sheet, now or later; returns the widget."""
    if widget.property("role") != name:
        widget.setProperty("role", name)
        if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
            QApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))
    return widget


_loaded: list[str] = []


def load_fonts() -> None:
    """Make the bundled fonts known to Qt, once a process; a file that Qt refuses leaves the system's font."""
    if _loaded:
        return
    for path in sorted(resource("fonts").glob("*.[ot]tf")):
        QFontDatabase.addApplicationFont(str(path))
        _loaded.append(path.name)
