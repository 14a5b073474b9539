"""The theme of the window: colours, fonts, icons and the style sheet, light and dark, switched at run time.

A widget takes its colours from here. If it stores any of them between paints, it provides
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
    """Shows text literally: labels never interpret it as HTML unless told to, including Qt's own.

    Tooltips and message boxes are labels too, and every widget is polished before it is shown. By default Qt reads text
    that looks like HTML as such, and loads its images.
    """

    def polish(self, polished: QWidget | QApplication | QPalette) -> None:  # type: ignore[override]
        """Also called by Qt for the application and for palettes."""
        if isinstance(polished, QLabel) and polished.textFormat() == Qt.TextFormat.AutoText:
            polished.setTextFormat(Qt.TextFormat.PlainText)
        super().polish(polished)  # type: ignore[arg-type]


def apply(application: QApplication, choice: str = "system", text_size: int | None = None) -> None:
    """Apply the theme `choice` to the whole application; widgets that follow it update.

    `text_size`, one of TEXT_SIZES, is unchanged if not given. The look that the application has already
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
    """Whether the dark theme is active."""
    return _present["tokens"] is DARK


def color(name: str) -> QColor:
    """The current colour of a token, for example `accent`."""
    return QColor(_present["tokens"][name])


def hex_color(name: str) -> str:
    """The same as `#rrggbb`."""
    return _present["tokens"][name]


def pixels(usual: float) -> int:
    """Scale pixels for the usual text size to the current one."""
    return round(usual * _text["size"] / USUAL_SIZE)


def text_size() -> int:
    """The size of plain text in pixels, one of TEXT_SIZES."""
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
    """Give a widget its own font, which follows the text size."""
    _own_fonts[widget] = (usual, weight, mono)
    widget.setFont(_own_font(usual, weight, mono))


def _own_font(usual: int, weight: QFont.Weight, mono: bool) -> QFont:
    return mono_font(usual) if mono else font(usual, weight)


def icon(name: str, token: str = "muted", size: int = 18, room: int = 0) -> QIcon:
    """A line icon in a token's colour, grey if the button is disabled, with `room` empty pixels on its right."""
    return icon_in(name, hex_color(token), hex_color("disabled"), size, room)


def pixmap(name: str, token: str = "muted", size: int = 18) -> QPixmap:
    """The same as a sharp pixmap of `size` logical pixels."""
    return pixmap_in(name, hex_color(token), size)


def role(widget: QWidget, name: str) -> QWidget:
    """Set a widget's style sheet role, initially or later; returns the widget."""
    if widget.property("role") != name:
        widget.setProperty("role", name)
        if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
            QApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))
    return widget


def flag(widget: QWidget, name: str, on: bool) -> None:
    """Set a state that the style sheet knows, such as `mistaken`."""
    if bool(widget.property(name)) != on:
        widget.setProperty(name, on)
        if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
            widget.style().unpolish(widget)
            widget.style().polish(widget)


_loaded: list[str] = []


def load_fonts() -> None:
    """Register the bundled fonts with Qt, once per process; if Qt rejects a file, the system's font is used."""
    if _loaded:
        return
    for path in sorted(resource("fonts").glob("*.[ot]tf")):
        QFontDatabase.addApplicationFont(str(path))
        _loaded.append(path.name)
