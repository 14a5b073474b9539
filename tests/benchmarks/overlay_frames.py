"""Measures how smooth the window stays while many runs are read and drawn over each other, zoomed and hovered.

    python tests/benchmarks/overlay_frames.py [--runs 20] [--steps 10000]

The runs page's comparison is shown offscreen at 1280 × 800. A 5 ms heartbeat says how late the event loop is; a frame is
one paint of the plot after its view has moved, in processor time; lateness is on the clock.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app import theme
from app.core.runs.run_library import RunLibrary
from app.pages.runs.compare_view import CompareView
from app.services.backend_client import BackendClient
from backend.contract.run import events

BEAT_MS = 5
FRAMES = 60
LIMIT_MS = 50.0


def main() -> int:
    """Print the times; 1 where a frame takes longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    application = QApplication(sys.argv[:1])
    theme.apply(application, "light")
    with tempfile.TemporaryDirectory(prefix="burnish-overlay-") as folder:
        for number in range(options.runs):
            write_run(Path(folder) / f"run-{number:02d}", options.steps, number)
        library = RunLibrary(Path(folder))
        library.refresh()
        return measure(CompareView(library, BackendClient()), library, options.steps)


def write_run(folder: Path, steps: int, seed: int) -> None:
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(f"name: run\ntraining: {{learning_rate: {1e-5 * (seed + 1)}}}\n")
    noise = np.random.default_rng(seed).normal(0, 0.1, steps)
    losses = 2.5 * np.exp(-np.arange(steps) / (steps / (3 + seed % 5))) + 0.3 + noise
    said: list[events.Event] = [events.RunStarted(time=1, name="run", task="text_classification", model="m")]
    said += [
        events.StepFinished(
            time=1 + n / 10, step=n + 1, epoch=0, loss=float(loss), learning_rate=1e-4, gradient_norm=1, rows=8,
            tokens=99, seconds=0.1,
        )
        for n, loss in enumerate(losses)
    ]  # fmt: skip
    said.append(events.RunFinished(time=1 + steps / 10, state="finished", step=steps, metrics={"loss": 0.3}))
    (folder / "events.jsonl").write_bytes(b"".join(map(events.encode, said)))


def measure(view: CompareView, library: RunLibrary, steps: int) -> int:
    late: list[float] = []
    last = [time.perf_counter()]

    def beat() -> None:
        now = time.perf_counter()
        late.append((now - last[0]) * 1000 - BEAT_MS)
        last[0] = now

    heart = QTimer(interval=BEAT_MS)
    heart.timeout.connect(beat)
    view.resize(1068, 800)
    view.show()
    QApplication.processEvents()
    heart.start()
    began = last[0] = time.perf_counter()
    view.show_runs(library.runs)
    curves = view.curves

    def drawn() -> bool:
        plot = curves.plot
        return plot is not None and all(len(one) == steps for one in plot.series.values())

    until(drawn)
    print(
        f"all curves    {time.perf_counter() - began:.2f} s until {len(library.runs)} runs of {steps:,} steps are drawn"
    )
    until(lambda: len(view.states.specs) == len(library.runs) and not view.states._specs_timer.isActive())
    tell("lateness", late)
    assert curves.plot is not None
    zooming = [frame(view, lambda n=n: zoom(view, n)) for n in range(FRAMES)]
    curves.plot.show_all()
    hovering = [frame(view, lambda n=n: curves.plot.show_hover(steps * n / FRAMES)) for n in range(FRAMES)]
    tell("zoom frames", zooming)
    tell("hover frames", hovering)
    worst = float(np.percentile(zooming, 99))
    print("smooth" if worst < LIMIT_MS else f"the 99th percentile of frames is not below {LIMIT_MS:g} ms")
    view.states.stop()
    return 0 if worst < LIMIT_MS else 1


def zoom(view: CompareView, number: int) -> None:
    plot = view.curves.plot
    assert plot is not None
    plot._view.setXRange(number * 50, number * 50 + 4000, padding=0)
    plot._on_zoomed()
    plot.redraw()


def frame(view: CompareView, change: Callable[[], None]) -> float:
    """Milliseconds of a change and the paint that shows it."""
    began = time.process_time()  # other work on the machine does not count
    change()
    assert view.curves.plot is not None
    view.curves.plot.grab()
    return (time.process_time() - began) * 1000


def tell(name: str, times: list[float]) -> None:
    print(
        f"{name:13} median {np.median(times):.1f} ms, 99th percentile {np.percentile(times, 99):.1f} ms, worst {max(times):.1f} ms"
    )


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        QApplication.processEvents()
        time.sleep(0.001)


if __name__ == "__main__":
    sys.exit(main())
