"""Measures the table of a million predictions: scrolling, filtering, sorting, and how long the window stands still.

    python tests/benchmarks/predictions_table.py [--rows 1000000] [--json] [--keep FILE.parquet]

The file is written as a run writes it, in row groups; the real window is opened offscreen with the real helper. A frame
is a scroll step and the painting of what it shows. A 5 ms heartbeat timer says how late the event loop is between them.
Answers are timed from the click to the painted rows. Everything is measured in one run of one window. Beside the time of
the clock stands the processor time of the same frames: on a machine with other work only the latter says what they cost.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

FRAME_MS, ANSWER_MS, STALL_MS = 33.0, 1000.0, 50.0
STEPS = 150
"""Frames of each way to scroll."""
BEAT_MS = 5
WORDS = [
    "the",
    "film",
    "was",
    "good",
    "bad",
    "plot",
    "actor",
    "a",
    "in",
    "of",
    "to",
    "nothing",
    "special",
    "battery",
    "screen",
    "gorgeous",
    "speaker",
    "waiter",
    "rude",
    "soup",
    "cold",
    "warm",
    "funny",
    "beautiful",
    "played",
    "café",
    "naïve",
    "price",
    "place",
    "way",
    "staff",
    "never",
    "always",
    "again",
    "recommend",
]
LABELS = ("negative", "neutral", "positive")


def main() -> int:
    """Write the file, open the window, scroll, filter, sort; returns 1 where a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", type=Path, help="the predictions file, made once and used again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="burnish-predictions-") as folder:
        for name in ("RUNS", "CACHE", "CONFIG"):
            os.environ[f"BURNISH_{name}"] = str(Path(folder) / name.lower())
        sys.dont_write_bytecode = False  # as a person has it
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.update(QT_QPA_PLATFORM="offscreen", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
        run = write_run(Path(folder) / "runs", options.rows, options.keep)
        found = Measured()
        measure(run, found)
    broken = found.broken()
    if options.json:
        print(json.dumps({"frames": found.frames, "answers": found.answers, "stalls": found.stalls, "broken": broken}))
    else:
        print(found.report(options.rows))
        print("\n".join(broken) or "every limit holds")
    return 1 if broken else 0


# The file


def write_run(runs: Path, rows: int, keep: Path | None) -> Path:
    """A finished run with so many predictions."""
    from backend.contract import spec_file
    from backend.contract.run import events

    run = runs / "2026-11-21-1530-million"
    run.mkdir(parents=True)
    spec = {"version": 1, "name": "million", "task": {"type": "text_classification"}, "model": {"name_or_path": "x"},
            "data": {"columns": {"text": "text", "label": "label"}}}  # fmt: skip
    run.joinpath("spec.yaml").write_text(spec_file.dump(spec), encoding="utf-8")
    told = [
        events.RunStarted(time=time.time(), name="million", task="text_classification", model="x"),
        events.RunFinished(time=time.time(), state="finished", step=1),
    ]
    run.joinpath("events.jsonl").write_bytes(b"".join(map(events.encode, told)))
    if keep is not None and keep.is_file():
        run.joinpath("predictions.parquet").symlink_to(keep.absolute())
        return run
    target = keep.absolute() if keep is not None else run / "predictions.parquet"
    write_predictions(target, rows)
    if keep is not None:
        run.joinpath("predictions.parquet").symlink_to(target)
    return run


def write_predictions(path: Path, rows: int) -> None:
    """Texts of fourteen words, three labels, some of them wrong, in row groups as the backend writes them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from backend.inference.predictions_file import GROUP_ROWS

    rng = np.random.default_rng(0)
    writer: parquet.ParquetWriter | None = None
    for start in range(0, rows, 50_000):
        count = min(50_000, rows - start)
        words = np.array(WORDS)[rng.integers(0, len(WORDS), (count, 14))]
        chances = rng.dirichlet([0.6] * 3, count)
        predicted = chances.argmax(axis=1)
        actual = np.where(rng.random(count) < chances.max(axis=1), predicted, rng.integers(0, 3, count))
        names = np.array(LABELS)
        part = pa.table(
            {
                "text": [f"{' '.join(each)} {start + number}" for number, each in enumerate(words)],
                "source": np.array(["imdb", "yelp", "amazon"])[rng.integers(0, 3, count)],
                "label": names[actual],
                "prediction": names[predicted],
                "actual": names[actual],
                **{f"probability_{label}": chances[:, place] for place, label in enumerate(LABELS)},
            }
        )
        writer = writer or parquet.ParquetWriter(path, part.schema)
        writer.write_table(part, row_group_size=GROUP_ROWS)
    assert writer is not None
    writer.close()


# What is measured


class Measured:
    """Milliseconds of every frame and answer, and how late the loop was."""

    def __init__(self) -> None:
        self.frames: dict[str, dict[str, float]] = {}
        self.answers: dict[str, float] = {}
        self.stalls: dict[str, float] = {}

    def add_frames(self, name: str, times: list[float], processor: list[float]) -> None:
        self.frames[name] = {
            "p50_ms": at(times, 0.5),
            "p99_ms": at(times, 0.99),
            "worst_ms": at(times, 1.0),
            "processor_p99_ms": at(processor, 0.99),
        }

    def broken(self) -> list[str]:
        found = [
            f"{name}: 99th percentile {one['p99_ms']} ms is not below {FRAME_MS}"
            for name, one in self.frames.items()
            if one["p99_ms"] >= FRAME_MS
        ]  # fmt: skip
        found += [f"{name}: {value} ms is not below {ANSWER_MS}" for name, value in self.answers.items() if value >= ANSWER_MS]  # fmt: skip
        return found + [f"{name}: the loop stood still for {value} ms" for name, value in self.stalls.items() if value >= STALL_MS]  # fmt: skip

    def report(self, rows: int) -> str:
        lines = [f"{rows:,} rows", "", f"{'scrolling':50}   p50    p99  worst  limit (p99)   processor p99"]
        lines += [
            f"{name:50} {one['p50_ms']:5.1f}  {one['p99_ms']:5.1f}  {one['worst_ms']:5.1f}  {FRAME_MS:5.0f} ms"
            f"       {one['processor_p99_ms']:5.1f} ms"
            for name, one in self.frames.items()
        ]
        lines += ["", f"{'answered and painted':50}   time  limit"]
        lines += [f"{name:50} {value:6.0f}  {ANSWER_MS:5.0f} ms" for name, value in self.answers.items()]
        lines += ["", f"{'longest stall of the event loop':50}   time  limit"]
        lines += [f"{name:50} {value:6.1f}  {STALL_MS:5.0f} ms" for name, value in self.stalls.items()]
        return "\n".join(lines)


def at(times: list[float], share: float) -> float:
    """The time that this share of all does not exceed, in milliseconds."""
    return round(sorted(times)[min(len(times) - 1, int(len(times) * share))], 1)


def measure(run: Path, found: Measured) -> None:
    """The real window on the run."""
    from PySide6.QtWidgets import QApplication

    from app import theme
    from app.core import preferences
    from app.main_window import MainWindow

    application = QApplication(["burnish"])
    theme.apply(application, "light")
    window = MainWindow(preferences.load())
    window.resize(1280, 800)
    window.show()
    wait(200)
    window.open_services()
    until(lambda: not window.is_warming, 60)
    panel = window.show_page("predictions")
    assert panel is not None
    wait(500)
    heart = Heart(window)
    begin = time.perf_counter()
    panel.show_run(str(run))  # type: ignore[attr-defined]
    until(lambda: panel.browser.rows is not None, 60)  # type: ignore[attr-defined]
    found.answers["first rows are there"] = paint(panel, begin)
    scroll(panel, found, heart, "while the file is prepared")
    until(lambda: panel.browser.rows.pages.is_mapped, 120)  # type: ignore[attr-defined]
    until(lambda: bool(panel.browser.overview.matrix._labels), 120)  # type: ignore[attr-defined]
    found.stalls["opening"] = heart.worst()
    scroll(panel, found, heart, "in the file's order")
    found.stalls["scrolling"] = heart.worst()
    ask(panel, found, heart)
    window.close()


def paint(panel, begin: float) -> float:
    panel.table.viewport().repaint()
    return round((time.perf_counter() - begin) * 1000, 1)


def scroll(panel, found: Measured, heart: "Heart", where: str) -> None:
    """By wheel, keys, the scroll bar, and to the ends; a frame is timed until it is painted."""
    ways: dict[str, Callable[[int], None]] = {
        "wheel": lambda step: turn_wheel(panel),
        "page keys": lambda step: press_page_down(panel),
        "scroll bar drag": lambda step: drag(panel, step),
        "jump to end and start": lambda step: jump(panel, step),
    }
    for name, act in ways.items():
        times, processor = [], []
        panel.table.scrollToTop()
        for step in range(STEPS):
            begin, spent = time.perf_counter(), time.process_time()
            act(step)
            panel.table.viewport().repaint()
            times.append((time.perf_counter() - begin) * 1000)
            processor.append((time.process_time() - spent) * 1000)
            wait(1)
        found.add_frames(f"{name}, {where}", times, processor)


def turn_wheel(panel) -> None:
    from PySide6.QtCore import QPoint, QPointF, Qt
    from PySide6.QtGui import QWheelEvent
    from PySide6.QtWidgets import QApplication

    viewport = panel.table.viewport()
    place = QPointF(viewport.rect().center())
    event = QWheelEvent(
        place, viewport.mapToGlobal(place), QPoint(), QPoint(0, -360), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(viewport, event)


def press_page_down(panel) -> None:
    from PySide6.QtCore import Qt
    from PySide6.QtTest import QTest

    QTest.keyClick(panel.table, Qt.Key.Key_PageDown)


def drag(panel, step: int) -> None:
    bar = panel.table.verticalScrollBar()
    bar.setSliderPosition(round(bar.maximum() * ((step * 37) % STEPS) / STEPS))


def jump(panel, step: int) -> None:
    panel.table.scrollToTop() if step % 2 else panel.table.scrollToBottom()


def ask(panel, found: Measured, heart: "Heart") -> None:
    """Filter and sort, and scroll what comes."""
    browser, filters = panel.browser, panel.browser.filters
    timed(
        panel,
        found,
        "text in any column",
        lambda: (filters.search.line.setText("soup cold"), filters.search.changed.emit()),
    )
    found.stalls["a text filter"] = heart.worst()
    timed(panel, found, "whole word", lambda: filters.search.exactness["words"].setChecked(True))
    filters.search.exactness["words"].setChecked(False)
    filters.clear()
    wait(300)
    timed(panel, found, "wrong rows", lambda: filters.right_group.button(2).click())
    filters.clear()
    timed(panel, found, "a label pair", lambda: browser.overview.pair_chosen.emit("negative", "positive"))
    filters.clear()
    timed(panel, found, "sorted by confidence", lambda: panel.table.sort_requested.emit("confidence", True))
    scroll(panel, found, heart, "sorted by confidence")
    timed(panel, found, "sorted by confidence, ascending", lambda: panel.table.sort_requested.emit("confidence", False))
    timed(panel, found, "wrong and sorted", lambda: filters.right_group.button(2).click())
    found.stalls["filtering and sorting"] = heart.worst()


def timed(panel, found: Measured, name: str, act: Callable[[], object]) -> None:
    """From the click to the rows on the screen."""
    table = panel.browser.table
    came: list[bool] = []
    table.model().modelReset.connect(lambda: came.append(True))
    begin = time.perf_counter()
    act()
    until(lambda: bool(came) and not panel.browser.chosen.is_busy, 60)
    found.answers[name] = paint(panel, begin)
    wait(300)


class Heart:
    """A timer that beats every 5 ms and keeps how late each beat was."""

    def __init__(self, parent) -> None:
        from PySide6.QtCore import Qt, QTimer

        self._worst = 0.0
        self._last = time.perf_counter()
        self._timer = QTimer(parent, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _beat(self) -> None:
        now = time.perf_counter()
        self._worst = max(self._worst, (now - self._last) * 1000 - BEAT_MS)
        self._last = now

    def worst(self) -> float:
        """The latest beat since the last question, in milliseconds."""
        worst, self._worst = self._worst, 0.0
        return round(worst, 1)


def wait(milliseconds: int) -> None:
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def until(condition: Callable[[], bool], seconds: float) -> None:
    begin = time.perf_counter()
    while not condition():
        if time.perf_counter() - begin > seconds:
            raise SystemExit("what was waited for did not come")
        wait(2)


if __name__ == "__main__":
    raise SystemExit(main())
