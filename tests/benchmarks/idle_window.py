"""Measures what the idle window costs with a thousand ended runs, by page, alone and with one run that trains beside it.

    python tests/benchmarks/idle_window.py [--runs 1000] [--seconds 30] [--pages runs new_run] [--beside CHECKOUT] [--json]

The real window is opened offscreen with the real helper; nobody touches it. What counts is the processor time of the
window's process, as a share of one core. The run beside is a process that holds a lock and appends five steps a second.
`--beside` measures another checkout of Burnish on the same runs too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IDLE_PERCENT = 0.5
STEPS = 400
"""Of each run: 100 KB of events."""


def main() -> int:
    """Print the share of a core by page; returns 1 if the limit of the idle window is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pages", nargs="+", default=["runs", "new_run", "run"])
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", choices=("ended", "training"), help=argparse.SUPPRESS)
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        return train(options.train)
    if options.measure:
        print(json.dumps(measured(options.pages, options.seconds)))
        return 0
    checkouts = {"here": ROOT, **({"beside": options.beside.absolute()} if options.beside else {})}
    with tempfile.TemporaryDirectory(prefix="burnish-idle-") as name:
        found = dict(compared(Path(name), checkouts, options))
    broken = [title for title, share in found.items() if share >= IDLE_PERCENT and title.startswith("here, ended")]
    if options.json:
        print(json.dumps({"percent": found, "broken": broken}))
    else:
        for title, share in found.items():
            print(f"{title:34}{share:8.2f} % of a core")
        print("\n".join(f"{title}: {IDLE_PERCENT} % is the limit" for title in broken) or "the limit holds")
    return 1 if broken else 0


def compared(folder: Path, checkouts: dict[str, Path], options: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Title and share of a core, of every checkout and page, first without a run that trains, then with one."""
    sys.path.insert(0, str(ROOT))
    write_runs(folder / "runs", options.runs)
    for state in ("ended", "training"):
        trainer = start_training(folder / "runs") if state == "training" else None
        try:
            for which, checkout in checkouts.items():
                shares = ask(folder, checkout, state, options)
                yield from ((f"{which}, {state}, {page}", share) for page, share in shares.items())
        finally:
            if trainer is not None:
                trainer.kill()
                trainer.wait()


def ask(folder: Path, checkout: Path, state: str, options: argparse.Namespace) -> dict[str, float]:
    """The shares by page, measured in a window of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {f"BURNISH_{name}": str(folder / name.lower()) for name in ("RUNS", "CACHE", "CONFIG")}
    environment |= {"QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-P", __file__, "--measure", state, "--seconds", str(options.seconds), "--pages", *options.pages],
        env=environment, stdout=subprocess.PIPE, check=True, text=True, cwd=folder,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


# The runs


def write_runs(root: Path, count: int) -> None:
    """So many runs of this computer that have ended."""
    from backend.contract.run.folder import ExitRecord, ProcessRecord, boot_id, host_id
    from backend.contract.run.notes import RunNotes, write_notes

    for number in range(count):
        folder = begun(root / f"2026-10-{1 + number % 28:02d}-{number // 60 % 24:02d}{number % 60:02d}-run-{number}")
        with folder.events.open("ab") as file:
            file.writelines(lines(number))
        folder.lock.touch()
        folder.log.write_text("loading\n", encoding="utf-8")
        folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, 1e9))
        folder.write_exit_record(ExitRecord(1, 0, 1e9 + STEPS))
        if number % 5 == 0:
            write_notes(folder, RunNotes(f"try {number}", ("paper",)))


def begun(path: Path):
    """A run folder with its first events."""
    from backend.contract import spec_file
    from backend.contract.run import events
    from backend.contract.run.folder import RunFolder

    path.mkdir(parents=True)
    spec = {"version": 1, "name": path.name, "task": {"type": "text_classification"}, "model": {"name_or_path": "x"},
            "data": {"train": "reviews.csv", "columns": {"text": "text", "label": "label"}}}  # fmt: skip
    folder = RunFolder(path)
    folder.spec.write_text(spec_file.dump(spec), encoding="utf-8")
    first = [
        events.RunStarted(time=1e9, name=path.name, task="text_classification", model="x"),
        events.StageStarted(time=1e9, stage="training", total=STEPS, unit="steps"),
    ]
    folder.events.write_bytes(b"".join(map(events.encode, first)))
    return folder


def lines(seed: int) -> Iterator[bytes]:
    """The steps, evaluations and end of one run."""
    from backend.contract.run import events

    accuracy = 0.5 + seed % 400 / 1000
    for step in range(1, STEPS + 1):
        yield step_line(step)
        if step % 100 == 0:
            yield events.encode(events.EvaluationFinished(
                time=1e9 + step, step=step, epoch=step / 100, metrics={"accuracy": accuracy, "loss": 1 / step}, rows=99,
                seconds=1,
            ))  # fmt: skip
    yield events.encode(
        events.RunFinished(time=1e9 + STEPS, state="finished", step=STEPS, metrics={"accuracy": accuracy})
    )


def step_line(step: int, now: float = 1e9) -> bytes:
    """One step's event."""
    from backend.contract.run import events

    return events.encode(events.StepFinished(
        time=now + step, step=step, epoch=step / 100, loss=0.2 + 1 / step, learning_rate=2e-5, gradient_norm=1.5,
        rows=32, tokens=999, seconds=0.2,
    ))  # fmt: skip


def start_training(root: Path) -> "subprocess.Popen[bytes]":
    """A process that carries a run; waits until it does."""
    path = root / "2026-11-01-0000-training"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-P", __file__, "--train", str(path)], env=environment)
    while not (path / "process.json").exists():
        time.sleep(0.05)
    return process


def train(path: Path) -> int:
    """Append steps until somebody ends it, or the benchmark is gone."""
    from backend.contract.run.folder import ProcessRecord, boot_id, host_id
    from backend.contract.run.lock import take_lock

    folder = begun(path)
    take_lock(folder.lock)
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), os.getpid(), os.getpid(), time.time()))
    parent, step = os.getppid(), 0
    while os.getppid() == parent:
        step += 1
        with folder.events.open("ab") as file:
            file.write(step_line(step, time.time()))
        time.sleep(0.2)
    return 0


# The window


def measured(pages: list[str], seconds: float) -> dict[str, float]:
    """Page → percent of a core, of this process, while nothing happens."""
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
    while window.is_warming or window.context is None or not window.context.library.runs:
        wait(100)
    found = {}
    for page in pages:
        if page == "run":
            window.show_run(str(window.context.library.runs[0].path))
        else:
            window.show_page(page)
        wait(10_000)  # until everything has been read and drawn
        begin, spent = time.perf_counter(), time.process_time()
        wait(round(seconds * 1000))
        found[page] = round(100 * (time.process_time() - spent) / (time.perf_counter() - begin), 3)
    window.close()
    return found


def wait(milliseconds: int) -> None:
    """Let the window live."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


if __name__ == "__main__":
    raise SystemExit(main())
