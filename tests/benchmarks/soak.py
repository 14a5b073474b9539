"""Lives with the window for a while and says what is left behind: memory that grew, processes that stayed.

    python tests/benchmarks/soak.py --minutes 60 [--json]

One real window offscreen, with its real helper. Round after round a new run appears in the runs folder and writes its
events, is watched to its end, compared with those before, its predictions are shown, filtered and left again, the
tokenizer page is typed into, palette, sheet and themes are opened and switched, pages come and go, and the oldest run is
deleted. The first rounds, a fifth of the time and at least three, warm up. Limits: 20 MB of growth, no process left.
"""

import argparse
import csv
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

MAX_GROWTH_MB = 20.0
WARM_SHARE, WARM_ROUNDS = 0.2, 3
STEPS = 2000
ROWS = 600
KEPT_RUNS = 6
"""In the runs folder; the oldest is deleted."""
GIVEN_UP = 60.0


def main() -> int:
    """Live for the given time; returns 1 where a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kinds", action="store_true", help="which kinds of Python objects and widgets grew")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="burnish-soak-") as folder:
        os.environ.update(surroundings(Path(folder)))
        report = lived(Path(folder), options.minutes * 60, options.kinds)
    broken = [f"memory grew by {report['grown_mb']} MB"] * (report["grown_mb"] > MAX_GROWTH_MB)
    broken += [f"{report['processes_left']} processes were left"] * (report["processes_left"] > 0)
    if options.json:
        print(json.dumps({**report, "broken": broken}))
    else:
        print("\n".join(f"{name:18} {value}" for name, value in report.items()))
        print("\n".join(broken) or "every limit holds")
    return 1 if broken else 0


def surroundings(folder: Path) -> dict[str, str]:
    own = {"RUNS": "runs", "CACHE": "cache", "CONFIG": "config"}
    places = {f"BURNISH_{name}": str(folder / part) for name, part in own.items()}
    return {**places, "QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def lived(folder: Path, seconds: float, kinds: bool) -> dict[str, Any]:
    """Rounds until the time is over; what was measured."""
    import psutil

    life = Life(folder)
    begin, rounds, warm, before = time.monotonic(), 0, 0.0, Counter()
    sizes: list[float] = []
    while time.monotonic() - begin < seconds or rounds <= WARM_ROUNDS + 1:
        life.round(rounds)
        rounds += 1
        sizes.append(life.memory_mb())
        if not warm and rounds >= WARM_ROUNDS and time.monotonic() - begin >= WARM_SHARE * seconds:
            warm, before = sizes[-1], life.kinds() if kinds else Counter()
        print(f"round {rounds}: {sizes[-1]:.1f} MB, {life.widgets()} widgets, {life.timers()} timers", file=sys.stderr)
    if kinds:
        for kind, more in (life.kinds() - before).most_common(25):
            print(f"{more:6} more {kind}", file=sys.stderr)
    life.close()
    me = psutil.Process()
    psutil.wait_procs(me.children(recursive=True), timeout=10)
    return {
        "minutes": round((time.monotonic() - begin) / 60, 1),
        "rounds": rounds,
        "warm_mb": round(warm, 1),
        "end_mb": round(sizes[-1], 1),
        "grown_mb": round(sizes[-1] - warm, 1),
        "processes_left": len(me.children(recursive=True)),
    }


class Life:
    """One window and what is done with it."""

    def __init__(self, folder: Path) -> None:
        from PySide6.QtWidgets import QApplication

        from app import theme
        from app.core import preferences
        from app.main_window import MainWindow

        self.folder = folder
        (folder / "runs").mkdir()
        self.application = QApplication(["burnish"])
        theme.apply(self.application, "light")
        self.window = MainWindow(preferences.load())
        self.window.resize(1280, 800)
        self.window.show()
        self.window.open_services()
        self.runs: list[Path] = []

    def round(self, number: int) -> None:
        """Everything once."""
        run = self._new_run(number)
        self._watch(run)
        self._compare()
        self._predictions(run)
        self._tokenizer(number)
        self._habits(number)
        while len(self.runs) > KEPT_RUNS:
            shutil.rmtree(self.runs.pop(0))
        self.live(0.2)

    # What is done

    def _new_run(self, number: int) -> Path:
        from backend.contract.run import events
        from backend.contract.run.folder import ExitRecord, RunFolder
        from tests.benchmarks.window_latency import new_run, step_event

        run = new_run(self.folder / "runs" / f"2026-11-21-{number:06}-soak")
        self.runs.append(run)
        self.window.show_run(str(run))
        with (run / "events.jsonl").open("ab") as file:
            for step in range(1, STEPS + 1):
                file.write(events.encode(step_event(step)))
                if step % 250 == 0:
                    file.flush()
                    self.live(0.05)
            predictions = write_predictions(run)
            file.write(events.encode(predictions))
            file.write(events.encode(events.RunFinished(time=time.time(), state="finished", step=STEPS)))
        RunFolder(run).write_exit_record(ExitRecord(1, 0, time.time()))
        return run

    def _watch(self, run: Path) -> None:
        panel: Any = self.window.show_page("run")
        self.until(
            lambda: panel.watcher is not None and panel.watcher.state.step >= STEPS - 1
        )  # the last event is an evaluation
        for name in ("Learning rate", "Memory", "Metrics"):
            panel.plots.show_page(name)
            self.live(0.05)
        for axis in ("Time", "Step"):
            panel.plot_options.axis.setCurrentText(axis)
            self.live(0.1)

    def _compare(self) -> None:
        panel: Any = self.window.show_page("runs")
        assert self.window.context is not None
        self.window.context.library_watcher.refresh_now()
        here = set(self.runs)
        self.until(lambda: here <= {run.path for run in panel.table.runs})
        panel.table.selectAll()
        if panel.buttons["compare"].isEnabled():
            panel.buttons["compare"].click()
            self.live(0.4)
            panel.compared.close_view()
        panel.search.setText("soak")
        panel.search.clear()

    def _predictions(self, run: Path) -> None:
        panel: Any = self.window.show_page("predictions")
        panel.show_run(str(run))
        self.until(lambda: panel.table.shown_count() == ROWS)
        for line in (0, ROWS // 2, ROWS - 1):
            panel.table.selectRow(line)
            self.live(0.05)
        panel.browser.filters.search.line.setText("good")
        self.live(0.3)
        panel.browser.filters.search.line.clear()
        self.live(0.3)

    def _tokenizer(self, number: int) -> None:
        panel: Any = self.window.show_page("tokenizer")
        side = panel.tab()
        side.text.setPlainText(f"Round {number}: a sentence of its own, typed once more. " * 5)
        self.live(0.8)

    def _habits(self, number: int) -> None:
        from app import theme

        for page in ("new_run", "settings", "runs", "run"):
            self.window.show_page(page)
            self.live(0.1)
        commands = self.window.commands
        commands.show_palette()
        assert commands.palette is not None
        commands.palette.field.setText("run")
        self.live(0.05)
        commands.show_sheet()
        self.live(0.05)
        commands.show_sheet()
        for look in ("dark", "light"):
            theme.apply(self.application, look)
            self.live(0.1)
        self.window.show_message("info", f"Round {number} is over.")

    # Time

    def live(self, seconds: float) -> None:
        """Let the window live."""
        from PySide6.QtCore import QEvent

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.application.processEvents()
            # Without a loop of its own nothing else takes away what was deleted for later.
            self.application.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            time.sleep(0.005)

    def until(self, condition: Callable[[], bool]) -> None:
        """Let it live until the condition holds."""
        end = time.monotonic() + GIVEN_UP
        while not condition():
            if time.monotonic() > end:
                raise SystemExit("the window did not come so far within a minute")
            self.live(0.02)

    def close(self) -> None:
        """The window goes, and its helper with it."""
        self.window.close()
        self.live(0.5)

    # What is measured

    def memory_mb(self) -> float:
        """Resident memory of the window's process, after what can be collected was."""
        from app.__main__ import resident_mb

        gc.collect()
        return resident_mb()

    def widgets(self) -> int:
        return len(self.application.allWidgets())

    def timers(self) -> int:
        from PySide6.QtCore import QTimer

        return len(self.window.findChildren(QTimer))

    def kinds(self) -> Counter[str]:
        """How many of each kind are alive."""
        gc.unfreeze()
        return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())


def write_predictions(run: Path) -> Any:
    """A small file of predictions in both forms, and the event that tells of it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from backend.contract.run import events

    rows = list(prediction_rows())
    with (run / "predictions.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    pq.write_table(pa.Table.from_pylist(rows), run / "predictions.parquet", row_group_size=200)
    return events.PredictionsWritten(
        time=time.time(),
        split="validation",
        csv="predictions.csv",
        parquet="predictions.parquet",
        rows=ROWS,
        seconds=0.1,
    )


def prediction_rows() -> Iterator[dict[str, Any]]:
    for row in range(ROWS):
        label, guess = ("good", "bad")[row % 2], ("good", "bad")[row % 3 % 2]
        yield {
            "text": f"Row {row} was {label} enough to be read twice",
            "label": label,
            "prediction": guess,
            "actual": label,
            "probability_bad": 0.3,
            "probability_good": 0.7,
        }


if __name__ == "__main__":
    raise SystemExit(main())
