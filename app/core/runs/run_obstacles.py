"""Says why something cannot be done with a run now, in a few words; empty if it can."""

from collections.abc import Callable, Container, Sequence

from app.core.i18n import tr
from app.core.page_actions import SELECT_A_QUEUED_RUN, SELECT_A_RUN, SELECT_SEVERAL
from app.core.runs.run_library import RunSummary
from app.core.runs.run_status import RunResults, RunStatus
from backend.contract.run.queue import MOVES

MAX_COMPARED = 20
QUEUE_MOVES = {f"move_{name}": places for name, places in MOVES.items()}
"""Action → the number of places by which it moves a queued run."""


def resume_obstacle(run: RunSummary | RunStatus) -> str:
    """Why the run cannot be resumed."""
    if run.resumable:
        return ""
    if run.waits:
        return tr("The run is still queued.")
    if run.alive:
        return tr("The run is still in progress.")
    return tr("The run has finished.") if run.state == "finished" else tr("The run would fail in the same way again.")


def stop_obstacle(run: RunSummary | RunStatus) -> str:
    """Why the run cannot be stopped."""
    return "" if run.alive else tr("The run has already ended.")


def start_now_obstacle(run: RunSummary | RunStatus) -> str:
    """Why the run cannot be started before its turn."""
    if isinstance(run, RunSummary) and run.members:
        return tr("Select one of the group's runs.")
    if run.job:
        return tr("The cluster decides when the run starts.")
    return "" if run.waits else tr("The run is not queued.")


def move_obstacles(run: RunSummary | None, queue: Sequence[RunSummary]) -> dict[str, str]:
    """Why the run cannot be moved within the queue, whose runs are given in their order."""
    place = next((number for number, one in enumerate(queue) if run is not None and one.path == run.path), None)
    if place is None:
        return dict.fromkeys(QUEUE_MOVES, SELECT_A_QUEUED_RUN)
    first = "" if place > 0 else tr("The run is already first in the queue.")
    last = "" if place < len(queue) - 1 else tr("The run is already last in the queue.")
    return {"move_next": first, "move_earlier": first, "move_later": last}


def button_obstacles(run: RunStatus, results: RunResults, requests: Container[str]) -> dict[str, str]:
    """Button of the Run page → why it cannot be pressed, while `requests` were not answered yet."""
    stopping = tr("The run is stopping.") if "stop" in requests else ""
    training = stop_obstacle(run) or stopping or (tr("The run is still queued.") if run.waits else "")
    return {
        "checkpoint": training or (tr("A checkpoint is being saved.") if "checkpoint" in requests else ""),
        "pause": training or (tr("The run is pausing.") if "pause" in requests else ""),
        "stop": stop_obstacle(run) or stopping,
        "start_now": start_now_obstacle(run) or stopping,
        "resume": resume_obstacle(run),
        **result_obstacles(results),
    }


def result_obstacles(results: RunResults) -> dict[str, str]:
    """Why the run cannot be tried, looked at or exported."""
    removed = tr("The weights of this run were removed. A search can be told to keep only those of its best trials.")
    needs_model = removed if results.are_weights_removed else tr("The model is saved when the run ends.")
    needs_weights = removed if results.are_weights_removed else tr("Needs a checkpoint; none has been saved yet.")
    return {
        "try": "" if results.can_try else needs_weights,
        "predictions": "" if results.has_predictions else tr("Written when the run finishes."),
        "export": "" if results.has_model else needs_model,
    }


def selection_obstacles(runs: Sequence[RunSummary]) -> dict[str, str]:
    """Action → why it cannot be done with the selected runs."""
    several = tr("Select a single run.") if runs else SELECT_A_RUN
    alone = runs[0] if len(runs) == 1 else None

    def of_one(obstacle: Callable[[RunSummary], str]) -> str:
        return several if alone is None else obstacle(alone)

    any_alive = any(run.alive for run in runs)
    return {
        **dict.fromkeys(("open", "duplicate", "folder"), of_one(lambda _: "")),
        "resume": of_one(resume_obstacle),
        "start_now": of_one(start_now_obstacle),
        "stop": of_one(stop_obstacle),
        "predictions": of_one(lambda run: "" if run.has_predictions else tr("The run has no predictions yet.")),
        "compare": _compare_obstacle(len(runs)),
        "delete": several if not runs else tr("Stop the run first.") if any_alive else "",
    }


def _compare_obstacle(selected: int) -> str:
    if selected < 2:
        return SELECT_SEVERAL
    if selected > MAX_COMPARED:
        return tr("You can compare up to {MAX_COMPARED} runs.", MAX_COMPARED=MAX_COMPARED)
    return ""
