"""Draws the pictures of README and guide into `docs/screenshots` from a real window and a real run (`make screenshots`)."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docs.scenes import DEVICE_SCENES, SCENES, Stage, backend, settle, until

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs" / "screenshots"
LOOKS = ("light", "dark")
DARK = ("run", "search")
"""Pictures that README and guide show in the dark theme too."""
SIZE = (1280, 800)
"""Of the window."""
MARGIN = 10
"""Pixels around a card that is drawn alone."""
COLOURS = 256
SHADES = 0xF0F0F0
"""The bits in which colours of another hue or shade differ."""
FOUR_DEVICES = "--xla_force_host_platform_device_count=4"


def main() -> int:
    """Train the demo in a folder of its own unless a run is given, then draw."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="burnish-") as home:
        for name in ("RUNS", "CACHE", "CONFIG"):
            os.environ[f"BURNISH_{name}"] = str(Path(home) / name.lower())
        os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(Path(home) / "hub")}
        run = _copy(options.run, Path(home)) if options.run else _train()
        options.output.mkdir(parents=True, exist_ok=True)
        draw(run, Path(home), options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="draw this finished run of the demo instead of training it")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the pictures go")
    parser.add_argument("--look", choices=LOOKS, nargs="*", help="all pictures in these themes")
    parser.add_argument("--only", choices=(*SCENES, *DEVICE_SCENES), nargs="*", help="only these pictures")
    return parser


def _train() -> Path:
    return Path(backend("demo", "--headless").strip().splitlines()[-1]).parent


def _copy(run: Path, home: Path) -> Path:
    """The run alone, so that drawing changes nothing."""
    return Path(shutil.copytree(run.absolute(), home / "runs" / run.name))


def draw(run: Path, home: Path, options: argparse.Namespace) -> None:
    """Open the window on a finished run and keep each picture."""
    from PySide6.QtWidgets import QApplication  # after the platform is chosen

    QApplication(sys.argv[:1])
    for look in options.look or LOOKS:
        chosen = [name for name in options.only or (*SCENES, *DEVICE_SCENES) if options.look or look == "light" or name in DARK]  # fmt: skip
        _draw_scenes({name: SCENES[name] for name in SCENES if name in chosen}, run, home, look, options.output)
        os.environ["XLA_FLAGS"] = FOUR_DEVICES  # for what the next window starts
        devices = {name: DEVICE_SCENES[name] for name in DEVICE_SCENES if name in chosen}
        _draw_scenes(devices, run, home, look, options.output)
        del os.environ["XLA_FLAGS"]


def _draw_scenes(scenes: dict[str, Callable[[Stage], Any]], run: Path, home: Path, look: str, output: Path) -> None:
    from PySide6.QtWidgets import QApplication

    from app import theme
    from app.core import preferences
    from app.main_window import MainWindow

    if not scenes:
        return
    chosen = preferences.load()
    chosen.set("theme", look)
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    theme.apply(application, look)
    window = MainWindow(chosen)
    window.resize(*SIZE)
    window.show()
    until(window.isVisible, 1)
    window.open_services()
    until(lambda: not window.is_warming)
    settle()
    stage = Stage(window, home, run)
    for name, scene in scenes.items():
        shown = scene(stage)
        settle()
        window.toasts.hide()  # a run that ended meanwhile
        keep(shown, output / f"{name}-{look}.png", home)
        if shown.window() is not window:
            shown.window().close()
        window.resize(*SIZE)
    window.close()
    window.deleteLater()


def keep(shown: Any, path: Path, home: Path) -> None:
    """A window whole, or a card with a margin; what belongs to the computer that drew it is drawn as anybody's."""
    from PySide6.QtCore import QPoint, QRect

    window = shown.window()
    area = window.rect()
    if shown is not window:
        card = QRect(shown.mapTo(window, QPoint(0, 0)), shown.size())
        area = area.intersected(card.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN))
    with _hidden_places(window, home):
        image = window.grab(area).toImage()
    _reduce_colours(image).save(str(path), quality=0)  # the smallest file
    print(path)


@contextmanager
def _hidden_places(window: Any, home: Path) -> Iterator[None]:
    """Afterwards each field says again where it is: what is made next is made there."""
    from PySide6.QtWidgets import QLabel, QLineEdit

    places = {
        str(home): "/home/you/.local/share/burnish",
        str(ROOT): "/home/you/burnish",
        str(Path.home()): "/home/you",
    }
    texts = {shown: shown.text() for shown in [*window.findChildren(QLabel), *window.findChildren(QLineEdit)]}
    for shown, text in texts.items():
        public = text
        for place, name in places.items():
            public = public.replace(place, name)
        _show(shown, public)
    yield
    for shown, text in texts.items():
        _show(shown, text)


def _show(field: Any, text: str) -> None:
    if field.text() != text:
        field.blockSignals(True)
        field.setText(text)
        field.blockSignals(False)


def _reduce_colours(image: Any) -> Any:
    """The same picture in few colours, a third of the size: one of every hue and shade, then the commonest."""
    import numpy as np
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QImage

    image = image.convertToFormat(QImage.Format.Format_RGB32)
    colours, counts = np.unique(np.frombuffer(image.constBits(), np.uint32), return_counts=True)
    common = colours[np.argsort(-counts)]
    _, first = np.unique(common & SHADES, return_index=True)
    table = list(dict.fromkeys([*common[np.sort(first)[: COLOURS // 2]].tolist(), *common.tolist()]))[:COLOURS]
    return image.convertToFormat(QImage.Format.Format_Indexed8, table, Qt.ImageConversionFlag.AvoidDither)


if __name__ == "__main__":
    raise SystemExit(main())
