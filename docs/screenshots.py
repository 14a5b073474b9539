"""Owns `make screenshots`: every page in both themes, from a real demo run, as PNG files under `docs/screenshots`."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs" / "screenshots"
SIZE = (1280, 800)
SECONDS = 60.0
SENTENCE = "Burnish tokenises unbelievably well: naïve cafés, 42 numbers & some emoji 🙂 – all at once."


def main() -> int:
    """Train the demo in a folder of its own, then draw."""
    with tempfile.TemporaryDirectory() as home:
        for name in ("RUNS", "CACHE", "CONFIG"):
            os.environ[f"BURNISH_{name}"] = str(Path(home) / name.lower())
        os.environ["HF_HUB_OFFLINE"] = "1"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "backend", "demo", "--headless"], check=True, stdout=subprocess.PIPE, text=True
        )
        run = Path(done.stdout.strip().splitlines()[-1]).parent
        draw(run)
    return 0


def draw(run: Path) -> None:
    """Open the window on a finished run and keep a picture of every page in both themes."""
    from PySide6.QtWidgets import QApplication  # after the platform is chosen

    from app import theme
    from app.core import preferences
    from app.main_window import PANELS, MainWindow

    application = QApplication(sys.argv[:1])
    chosen = preferences.load()
    for look in ("light", "dark"):
        chosen.set("theme", look)
        theme.apply(application, look)
        window = MainWindow(chosen)
        window.resize(*SIZE)
        window.show()
        until(lambda window=window: window.isVisible(), 1)
        window.open_services()
        window.show_run(str(run))
        for _, _, name in PANELS:
            panel = window.show_page(name)
            prepare(name, panel, run)
            keep(window, f"{name.replace('_', '-')}-{look}")
        window.close()
        window.deleteLater()


def prepare(name: str, panel: object, run: Path) -> None:
    """Bring a page to where it has something to show."""
    if name == "new_run":
        until(lambda: panel.catalog is not None)
        panel.fill_demo()
        until(lambda: panel.cost.start.isEnabled())
    elif name == "run":
        until(lambda: panel.watcher is not None and panel.watcher.is_caught_up)
    elif name == "predictions":
        panel.show_run(str(run))
    elif name == "tokenizer":
        panel.text.setPlainText(SENTENCE)
    until(lambda: False, 2.5)  # plots, tables and answers settle


def until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Let the window live until the condition holds or the time is over."""
    from PySide6.QtWidgets import QApplication

    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        QApplication.processEvents()
        time.sleep(0.005)


def keep(window: object, name: str) -> None:
    """One PNG."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / f"{name}.png"
    window.grab().save(str(path))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    raise SystemExit(main())
