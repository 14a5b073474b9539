"""Line icons: SVG files whose `currentColor` is replaced with a theme colour."""

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from backend.contract.resources import resource


@cache
def _source(name: str) -> str:
    return resource("icons", f"{name}.svg").read_text(encoding="utf-8")


@cache
def pixmap_in(name: str, color: str, size: int) -> QPixmap:
    """The icon in one colour, drawn for the screen's pixel ratio."""
    ratio = QGuiApplication.primaryScreen().devicePixelRatio()
    picture = QPixmap(round(size * ratio), round(size * ratio))
    picture.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", color).encode()))
    with QPainter(picture) as painter:
        renderer.render(painter, QRectF(picture.rect()))
    picture.setDevicePixelRatio(ratio)
    return picture


@cache
def icon_in(name: str, color: str, disabled: str, size: int, room: int = 0) -> QIcon:
    """The icon with its disabled colour, and `room` empty pixels between it and a button's text."""
    made = QIcon(_with_room(pixmap_in(name, color, size), room))
    made.addPixmap(_with_room(pixmap_in(name, disabled, size), room), QIcon.Mode.Disabled)
    return made


def _with_room(picture: QPixmap, room: int) -> QPixmap:
    if not room:
        return picture
    ratio = picture.devicePixelRatio()
    wider = QPixmap(picture.width() + round(room * ratio), picture.height())
    wider.setDevicePixelRatio(ratio)
    wider.fill(Qt.GlobalColor.transparent)
    with QPainter(wider) as painter:
        painter.drawPixmap(0, 0, picture)
    return wider


def forget_icons() -> None:
    """Clear the icon cache, because the colours changed."""
    pixmap_in.cache_clear()
    icon_in.cache_clear()
