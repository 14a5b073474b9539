"""Opens the window: `python -m app [--run RUN] [--page PAGE]`."""

import argparse
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QLibraryInfo, QLocale, QTimer, QTranslator
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app import theme
from app.core import i18n
from app.core import preferences as preferences_file
from app.widgets import desktop
from app.widgets.accessibility import speak_roles
from backend.contract.processes import OPEN_AGAIN

if TYPE_CHECKING:
    from app.main_window import MainWindow

TOUR_MS = 400
"""Until the first page has its place and a newcomer has seen it."""


def main(arguments: list[str] | None = None) -> int:
    """Show the window until it is closed; returns the exit code."""
    preferences = preferences_file.load()
    i18n.choose(desktop.choose_language(preferences.language))
    from app.main_window import PAGES, MainWindow  # its texts are in the language that was chosen by now

    options = _parser([name for _, _, name in PAGES]).parse_args(arguments)
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Burnish")
    application.setDesktopFileName("burnish")
    speak_roles()
    _translate_dialogs(application)
    theme.apply(application, preferences.theme, preferences.text_size)
    window = MainWindow(preferences)
    QGuiApplication.styleHints().colorSchemeChanged.connect(lambda _: _follow_system(application, preferences))
    window.first_painted.connect(lambda: _after_first_paint(window, options))
    _quit_on_interrupt(application)
    sys.excepthook = lambda *error: _report_exception(window, *error)
    window.show()
    code = application.exec()
    return OPEN_AGAIN if window.opens_again else code


def _translate_dialogs(application: QApplication) -> None:
    translator = QTranslator(application)
    if translator.load(
        QLocale(i18n.current_language()), "qtbase", "_", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    ):
        application.installTranslator(translator)


def _parser(pages: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="burnish", description="Fine-tune transformer models by point and click")
    parser.add_argument("--run", metavar="RUN", help="a run folder to open")
    parser.add_argument("--page", choices=pages, help="the page to open")
    parser.add_argument("--report-first-paint", action="store_true", help=argparse.SUPPRESS)
    return parser


def _after_first_paint(window: "MainWindow", options: argparse.Namespace) -> None:
    if options.report_first_paint:
        report = {"first_paint_seconds": round(seconds_since_process_start(), 3), "rss_mb": resident_mb()}
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()
        QApplication.quit()
        return
    window.open_services()
    if options.page:
        window.show_page(options.page)
    if options.run:
        window.show_run(str(Path(options.run).absolute()))
    elif not options.page and window.preferences.tour_seen:
        window.open_running_run()
    elif not options.page:
        QTimer.singleShot(TOUR_MS, window, window.show_tour)


def _follow_system(application: QApplication, preferences: preferences_file.Preferences) -> None:
    if preferences.theme == "system":
        theme.apply(application, "system")


def _quit_on_interrupt(application: QApplication) -> None:
    # Qt's loop runs no Python while it waits: a slow timer lets Ctrl-C in the terminal through.
    signal.signal(signal.SIGINT, lambda *_: application.quit())
    wake = QTimer(application, interval=500)
    wake.timeout.connect(lambda: None)
    wake.start()


def _report_exception(
    window: "MainWindow", kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Report an unexpected exception, for example a full disk: the window continues."""
    traceback.print_exception(kind, error, trace)
    window.show_message(
        "error", i18n.tr("Something went wrong: {error}. See the terminal for details.", error=error or kind.__name__)
    )


def seconds_since_process_start() -> float:
    """The age of this process, to a hundredth of a second."""
    if sys.platform == "linux":
        # psutil's creation time hangs on the boot time, which the kernel tells in whole seconds.
        ticks = int(Path("/proc/self/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    import psutil  # only if the line above does not work

    return time.time() - psutil.Process().create_time()


def resident_mb() -> float:
    """Resident memory of this process in megabytes (10^6 bytes)."""
    import psutil  # a few milliseconds that only a measurement pays

    return round(psutil.Process().memory_info().rss / 1e6, 1)


if __name__ == "__main__":
    raise SystemExit(main())
