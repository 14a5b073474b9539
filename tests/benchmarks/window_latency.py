"""Measures how late the window's event loop is while a run writes, while a long run opens, and how fast it starts.

    python tests/benchmarks/window_latency.py [--seconds 60] [--rounds 3] [--json]

Each part runs the real window offscreen in a process of its own. A 5 ms heartbeat timer says how late the loop is: the
time between two beats less 5 ms. The best of the rounds counts, because other work on the machine only adds lateness.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

BEAT_MS = 5
EVENTS_A_SECOND = 1000
LONG_RUN = 200_000
LIMITS = {
    "first_paint_seconds": 0.6,
    "rss_mb": 250.0,
    "p99_ms": 16.0,
    "worst_ms": 50.0,
    "curve_seconds": 5.0,
    "page_ms": 150.0,
    "page_again_ms": 150.0,
    "theme_ms": 400.0,
}
WARM_SECONDS = 30.0
"""The window loads what other pages need long before."""


def main() -> int:
    """Run all parts; returns 1 where a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", choices=["live", "long", "write", "pages"], help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "write":
        return write_events(options.run, options.seconds)
    if options.part == "pages":
        return measure_pages(options.run)
    if options.part:
        return measure_window(options.part, options.run, options.seconds)
    return report(options)


def report(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="burnish-latency-") as folder:
        results = {
            "first paint": best([first_paint(Path(folder)) for _ in range(options.rounds)]),
            "1,000 events a second": best([live(Path(folder), n, options.seconds) for n in range(options.rounds)]),
            "200,000 steps": best([long(Path(folder), n) for n in range(options.rounds)]),
            **best_pages([pages(Path(folder), n) for n in range(options.rounds)]),
        }
    broken = [
        f"{part}: {name} {value} is not below {LIMITS[name]}"
        for part, numbers in results.items()
        for name, value in numbers.items()
        if name in LIMITS and value >= LIMITS[name]
    ]
    if options.json:
        print(json.dumps({**results, "broken": broken}))
    else:
        for part, numbers in results.items():
            print(f"{part:24}", "  ".join(f"{name} {value}" for name, value in numbers.items()))
        print("\n".join(broken) or "every limit holds")
    return 1 if broken else 0


def best(rounds: list[dict]) -> dict:
    """The round with the least worst lateness, or the quickest first paint."""
    return min(rounds, key=lambda numbers: numbers.get("worst_ms", numbers.get("first_paint_seconds")))


# The three parts


def first_paint(folder: Path) -> dict:
    return child(folder, ["-P", "-m", "app", "--report-first-paint"])


def live(folder: Path, number: int, seconds: float) -> dict:
    run = new_run(folder / "runs" / f"2026-11-21-1530-live-{number}")
    # The writer outlives the measurement: it begins before the window is up and ends after it is gone.
    command = [sys.executable, __file__, "--part", "write", "--run", str(run), "--seconds", str(seconds + 120)]
    writer = subprocess.Popen(command, env=environment(folder))
    try:
        return child(folder, [__file__, "--part", "live", "--run", str(run), "--seconds", str(seconds)])
    finally:
        writer.terminate()
        writer.wait()


def long(folder: Path, number: int) -> dict:
    from backend.contract.run import events
    from backend.contract.run.folder import ExitRecord, RunFolder

    run = new_run(folder / "runs" / f"2026-11-20-1530-long-{number}")
    with (run / "events.jsonl").open("ab") as file:
        for step in range(1, LONG_RUN + 1):
            file.write(events.encode(step_event(step)))
        file.write(events.encode(events.RunFinished(time=time.time(), state="finished", step=LONG_RUN)))
    RunFolder(run).write_exit_record(ExitRecord(1, 0, time.time()))
    return child(folder, [__file__, "--part", "long", "--run", str(run), "--seconds", "10"])


def pages(folder: Path, number: int) -> dict[str, dict]:
    run = new_run(folder / "runs" / f"2026-11-19-1530-pages-{number}")
    return child(folder, [__file__, "--part", "pages", "--run", str(run)])


def best_pages(rounds: list[dict[str, dict]]) -> dict[str, dict]:
    """Of each page, and of the switch between themes, the quickest of the rounds."""
    return {
        part: {name: min(one[part][name] for one in rounds) for name in numbers} for part, numbers in rounds[0].items()
    }


def child(folder: Path, arguments: list[str]) -> dict:
    """What a process of ours reports on the last line of its output."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(folder), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def environment(folder: Path) -> dict[str, str]:
    own = {"BURNISH_RUNS": "runs", "BURNISH_CACHE": "cache", "BURNISH_CONFIG": "config"}
    places = {name: str(folder / part) for name, part in own.items()}
    kept = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }  # as a person has it
    return {**kept, **places, "QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


# What a run writes


def new_run(path: Path) -> Path:
    from backend.contract.run import events
    from backend.contract.run.folder import ProcessRecord, RunFolder, boot_id, host_id

    folder = RunFolder(path)
    path.mkdir(parents=True)
    folder.spec.write_text("version: 1\nname: latency\n", encoding="utf-8")
    folder.lock.touch()
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), os.getpid(), os.getpid(), time.time()))
    begin = [
        events.RunStarted(time=time.time(), name="latency", task="text_classification", model="bert-tiny"),
        events.PlanMade(
            time=time.time(),
            total_steps=LONG_RUN,
            steps_per_epoch=1000,
            batch_size=32,
            micro_batch_size=32,
            accumulation=1,
            epochs=LONG_RUN / 1000,
            best_metric="accuracy",
        ),
        events.StageStarted(time=time.time(), stage="training", total=LONG_RUN, unit="steps"),
    ]
    folder.events.write_bytes(b"".join(map(events.encode, begin)))
    return path


def step_event(step: int):
    """A step as training writes it, every 250th an evaluation, every 100th the memory."""
    from backend.contract.run import events

    loss = 2.5 * 0.9999**step + 0.3 + 0.1 * ((step * 7919 % 1000) / 1000 - 0.5)
    if step % 250 == 0:
        metrics = {"loss": loss + 0.05, "accuracy": 1 - loss / 4}
        return events.EvaluationFinished(
            time=time.time(), step=step, epoch=step / 1000, metrics=metrics, rows=600, seconds=0.2
        )
    if step % 100 == 0:
        return events.MemoryMeasured(time=time.time(), step=step, memory_mb=900 + step % 50)
    return events.StepFinished(
        time=time.time(),
        step=step,
        epoch=step / 1000,
        loss=loss,
        learning_rate=2e-5 * (1 - step / LONG_RUN / 2),
        gradient_norm=1 + loss / 3,
        rows=32,
        tokens=1024,
        seconds=0.001,
    )


def write_events(run: Path, seconds: float) -> int:
    """Append EVENTS_A_SECOND events every second, in groups of a few, holding the run's lock like a supervisor."""
    from backend.contract.run import events
    from backend.contract.run.folder import RunFolder
    from backend.contract.run.lock import hold_lock

    folder = RunFolder(run)
    begin, step = time.perf_counter(), 0
    with hold_lock(folder.lock), folder.events.open("ab", buffering=0) as file:
        while (gone := time.perf_counter() - begin) < seconds:
            due = int(gone * EVENTS_A_SECOND)
            if due > step:
                file.write(b"".join(events.encode(step_event(number)) for number in range(step + 1, due + 1)))
                step = due
            time.sleep(0.005)
    return 0


# The window


def measure_window(part: str, run: Path, seconds: float) -> int:
    """Open the real window on a run and print how late its loop was."""
    from app.__main__ import resident_mb

    window, _ = opened("run")
    panel = window.show_page("run")
    assert panel is not None
    if part == "live":
        panel.show_run(str(run))  # type: ignore[attr-defined]
        wait(2000)
    heart = Heart(window)
    begin = time.perf_counter()
    numbers: dict[str, float] = {}
    if part == "live":
        wait(int(seconds * 1000))
        numbers["steps_taken_in"] = drawn_steps(panel, settled=False)
    else:
        panel.show_run(str(run))  # type: ignore[attr-defined]
        expected = LONG_RUN - LONG_RUN // 250 - sum(1 for n in range(100, LONG_RUN + 1, 100) if n % 250)
        while drawn_steps(panel) < expected and time.perf_counter() - begin < 60:
            wait(10)
        numbers["curve_seconds"] = round(time.perf_counter() - begin, 2)
        wait(3000)
    print(json.dumps({**heart.numbers(), **numbers, "rss_mb": resident_mb()}))
    sys.stdout.flush()
    window.close()
    return 0


def measure_pages(run: Path) -> int:
    """Click through the pages of a real window, then switch themes with all of them built."""
    from PySide6.QtCore import Qt
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QApplication

    from app import theme
    from app.__main__ import resident_mb
    from app.main_window import PAGES

    window, start = opened("settings")
    numbers: dict[str, dict[str, float]] = {"start": {"start_worst_ms": start.numbers()["worst_ms"]}}
    for key in ("page_ms", "page_again_ms"):
        for place, (title, _, name) in [*enumerate(PAGES)]:
            begin, worked = time.perf_counter(), time.process_time()
            QTest.mouseClick(window.sidebar.buttons()[place], Qt.MouseButton.LeftButton)
            window.repaint()
            numbers.setdefault(f"page {title}", {})[key] = round((time.perf_counter() - begin) * 1000, 1)
            numbers[f"page {title}"][key.replace("_ms", "_cpu_ms")] = round((time.process_time() - worked) * 1000, 1)
            if name == "run" and key == "page_ms":
                window.show_run(str(run))
            wait(1500)
    switches, worked = [], time.process_time()
    for look in ("dark", "light") * 3:
        begin = time.perf_counter()
        theme.apply(QApplication.instance(), look)
        window.repaint()
        switches.append((time.perf_counter() - begin) * 1000)
        wait(300)
    numbers["theme"] = {"theme_ms": round(min(switches), 1), "worst_switch_ms": round(max(switches), 1)}
    numbers["theme"]["cpu_ms"] = round((time.process_time() - worked) * 1000 / len(switches), 1)
    numbers["theme"]["rss_mb"] = resident_mb()
    print(json.dumps(numbers))
    sys.stdout.flush()
    window.close()
    return 0


def opened(page: str) -> tuple[Any, "Heart"]:
    """The real window on that page, and the heart that beat until it had loaded what other pages need."""
    from PySide6.QtWidgets import QApplication

    from app import theme
    from app.core import preferences
    from app.main_window import MainWindow

    application = QApplication.instance() or QApplication(["burnish"])
    theme.apply(application, "light")  # type: ignore[arg-type]
    window = MainWindow(preferences.load())
    window.resize(1280, 800)
    window.show()
    wait(200)
    window.show_page(page)
    window.open_services()
    heart = Heart(window)
    begin = time.perf_counter()
    while window.is_warming and time.perf_counter() - begin < WARM_SECONDS:
        wait(20)
    heart.stop()
    wait(500)
    return window, heart


def wait(milliseconds: int) -> None:
    """Let the window live for so long."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


class Heart:
    """A timer that beats every 5 ms and keeps how late each beat was."""

    def __init__(self, parent) -> None:
        from PySide6.QtCore import Qt, QTimer

        self.late_ms: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer(parent, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _beat(self) -> None:
        now = time.perf_counter()
        self.late_ms.append((now - self._last) * 1000 - BEAT_MS)
        self._last = now

    def stop(self) -> None:
        self._timer.stop()

    def numbers(self) -> dict[str, float]:
        ordered = sorted(self.late_ms)
        if os.environ.get("BURNISH_LATENCY_DUMP"):
            sys.stderr.write(f"latest beats: {[round(value, 1) for value in ordered[-25:]]}\n")
        return {
            "p50_ms": round(ordered[len(ordered) // 2], 2),
            "p99_ms": round(ordered[int(len(ordered) * 0.99)], 2),
            "worst_ms": round(ordered[-1], 2),
            "beats": len(ordered),
        }


def drawn_steps(panel, settled: bool = True) -> int:
    """How many points of the loss the plot has; `settled` counts them only once all of them are on the screen."""
    from app.widgets.plots.live_plot import LivePlot

    for plot in panel.findChildren(LivePlot):
        series = plot.series.get("loss")
        if series is not None and series.style.label == "training" and not (settled and series.changed):
            return len(series)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
