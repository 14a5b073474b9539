"""Owns `make screenshots`: every page in both themes, from a real demo run, as PNG files under `docs/screenshots`."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs" / "screenshots"
LOOKS = ("light", "dark")
SECONDS = 60.0
SETTLE_SECONDS = 2.5
SENTENCE = (
    "Burnish tokenises unbelievably well: naïve cafés, 42 numbers & façades – all at once.\n"
    "Colours and lines mark where a token begins; grey ones are special."
)

TYPED = ("The waiter was rude and the soup was cold.", "Funny, warm and beautifully played.")


def main() -> int:
    """Train the demo in a folder of its own unless a run is given, then draw."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="burnish-") as home:
        for name in ("RUNS", "CACHE", "CONFIG"):
            os.environ[f"BURNISH_{name}"] = str(Path(home) / name.lower())
        os.environ["HF_HUB_OFFLINE"] = "1"
        run = _taken(options.run, Path(home)) if options.run else _trained()
        options.output.mkdir(parents=True, exist_ok=True)
        draw(run, Path(home), options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="draw this finished run instead of training the demo")
    parser.add_argument("--size", default="1280x800", help="width x height of the window")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the pictures go")
    parser.add_argument("--look", choices=LOOKS, nargs="*", default=LOOKS)
    parser.add_argument("--page", nargs="*", help="only these pages")
    return parser


def _trained() -> Path:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "backend", "demo", "--headless"], check=True, stdout=subprocess.PIPE, text=True
    )
    return Path(done.stdout.strip().splitlines()[-1]).parent


def _taken(run: Path, home: Path) -> Path:
    """The run and its neighbours, copied, so that drawing changes nothing."""
    shutil.copytree(run.absolute().parent, home / "runs")
    return home / "runs" / run.name


def draw(run: Path, home: Path, options: argparse.Namespace) -> None:
    """Open the window on a finished run and keep a picture of every page in each theme."""
    from PySide6.QtWidgets import QApplication  # after the platform is chosen

    from app import theme
    from app.core import preferences
    from app.main_window import PAGES, MainWindow

    application = QApplication(sys.argv[:1])
    chosen = preferences.load()
    for look in options.look:
        chosen.set("theme", look)
        theme.apply(application, look)
        window = MainWindow(chosen)
        window.resize(*(int(part) for part in options.size.split("x")))
        window.show()
        until(lambda window=window: window.isVisible(), 1)
        window.open_services()
        window.show_run(str(run))
        for _, _, name in PAGES:
            if not options.page or name in options.page:
                panel = window.show_page(name)
                prepare(name, panel, run)
                keep(window, options.output / f"{name.replace('_', '-')}-{look}.png", home)
                if name == "new_run":
                    keep(reported(panel), options.output / f"data-report-{look}.png", home)
        if not options.page or "my-data" in options.page:
            for page in ("lengths", "rows"):
                prepare_data(window, run, page)
                keep(window, options.output / f"my-data-{page}-{look}.png", home)
        if not options.page or "try" in options.page:
            prepare_try(window.show_page("predictions"), run)
            keep(window, options.output / f"try-{look}.png", home)
        window.close()
        window.deleteLater()


def prepare(name: str, panel: object, run: Path) -> None:
    """Bring a page to where it has something to show."""
    if name == "new_run":
        until(lambda: panel.catalog is not None)
        panel.fill_demo()
        until(lambda: panel.checks.plan is not None and not panel.reason())
    elif name == "run":
        until(lambda: panel.watcher is not None and panel.watcher.is_caught_up)
    elif name == "runs":
        panel.table.choose(run)
    elif name == "predictions":
        panel.show_run(str(run))
        until(lambda: panel.table.shown_count() > 0)
        panel.table.selectRow(2)
    elif name == "tokenizer":
        side = panel.tab()
        side.text.setPlainText(SENTENCE)
        until(lambda: side.tokens.table.sources == [SENTENCE] and side.tokens.is_drawn())
        side.view.select(6, 7)
        side.token.show_token(side.tokens.table, 6)
    elif name == "settings":
        until(panel.machine.check_again.isEnabled)
    until(lambda: False, SETTLE_SECONDS)  # plots, tables and answers settle


def prepare_data(window: object, run: Path, page: str) -> None:
    """The demo's data against a limit that cuts some rows, or the rows of a step of the run."""
    if page == "rows":
        panel = window.show_page("tokenizer")
        panel.show_step(str(run), 12)
        until(lambda: panel.tab().rows.feature_card.feature is not None)
    else:
        new_run = window.show_page("new_run")
        until(lambda: new_run.catalog is not None)
        new_run.fill_demo()
        until(lambda: not new_run.reason())
        new_run.apply_settings({"task.max_length": 24})
        new_run.data_asked.emit()
        panel = window.show_page("tokenizer")
        until(lambda: panel.tab().lengths.answer is not None)
    until(lambda: False, SETTLE_SECONDS)


def prepare_try(panel: object, run: Path) -> None:
    """Ask the run's model about two sentences."""
    panel.show_run(str(run))
    panel.show_tab(1)
    until(lambda: bool(panel.attempt.form.fields))
    for number, text in enumerate(TYPED, start=1):
        panel.attempt.form.fill({"text": text})
        panel.attempt.ask()
        until(lambda number=number: len(panel.attempt.kept) == number)
    until(lambda: False, SETTLE_SECONDS)


def reported(panel: object) -> object:
    """The window with the report on the data of the New run page."""
    panel.cards.data.report.click()
    until(lambda: panel.report.report is not None)
    until(lambda: False, SETTLE_SECONDS)
    return panel.report


def until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Let the window live until the condition holds or the time is over."""
    from PySide6.QtWidgets import QApplication

    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        QApplication.processEvents()
        time.sleep(0.005)


def keep(window: object, path: Path, home: Path) -> None:
    """One PNG; what belongs to the computer that drew it is written as anybody's."""
    from PySide6.QtWidgets import QLabel, QLineEdit

    places = {
        str(home): "/home/you/.local/share/burnish",
        str(ROOT): "/home/you/burnish",
        str(Path.home()): "/home/you",
    }
    for shown in [*window.findChildren(QLabel), *window.findChildren(QLineEdit)]:
        text = shown.text()
        for place, public in places.items():
            text = text.replace(place, public)
        if text != shown.text():
            shown.blockSignals(True)
            shown.setText(text)
    window.grab().save(str(path))
    print(path)


if __name__ == "__main__":
    raise SystemExit(main())
