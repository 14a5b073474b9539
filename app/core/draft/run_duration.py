"""Describes how long a run will take: the range, its parts, and what the estimate is based on."""

from app.core import formatting
from app.core.backend_words import translate_word
from app.core.i18n import tr, trn
from backend.contract import time_span
from backend.contract.rpc.plan import RunPlan
from backend.contract.run.cost import Measurement, TimePart


def span(least: float, most: float) -> str:
    """`4 to 6 min`, `5 min`, `1.5 to 2.5 h`."""
    low, high, unit = time_span.span(least, most)
    if low == high:
        return {
            "seconds": tr("{number:g} s", number=high),
            "minutes": tr("{number:g} min", number=high),
            "hours": tr("{number:g} h", number=high),
            "days": tr("{number:g} d", number=high),
        }[unit]
    return {
        "seconds": tr("{least:g} to {most:g} s", least=low, most=high),
        "minutes": tr("{least:g} to {most:g} min", least=low, most=high),
        "hours": tr("{least:g} to {most:g} h", least=low, most=high),
        "days": tr("{least:g} to {most:g} d", least=low, most=high),
    }[unit]


def whole(plan: RunPlan) -> str:
    """`about 4 to 6 min`, or that it is unknown if nothing was measured."""
    if plan.least_seconds is not None and plan.most_seconds is not None:
        return tr("about {span}", span=span(plan.least_seconds, plan.most_seconds))
    return tr("about {seconds}", seconds=formatting.duration(plan.seconds)) if plan.seconds else tr("unknown")


def in_all(plan: RunPlan) -> str:
    """That of the whole search, if the plan is of one of its trials."""
    if plan.search is None:
        return whole(plan)
    seconds = plan.search.seconds
    return tr("about {seconds}", seconds=formatting.duration(seconds)) if seconds else tr("unknown")


def of_part(part: TimePart) -> str:
    """The time of one part."""
    if part.seconds is None:
        return tr("unknown")
    if part.seconds < time_span.NOTHING:
        return tr("almost none")
    if part.least is None or part.most is None:
        return tr("about {seconds}", seconds=formatting.duration(part.seconds))
    return span(part.least, part.most)


def basis_words(part: TimePart) -> str:
    """What a part's time is based on."""
    if not part.rows:
        return translate_word(part.words)
    rows = trn("{count} row", "{count} rows", part.rows)
    return rows if part.times == 1 else f"{formatting.group_digits(part.times)} × {rows}"


PARTS_OF_PARTS = (tr("libraries, data and model"), tr("already done"), tr("the model"))
"""What the backend says of a part that has no numbers."""


def origin(measured: Measurement | None, now: float) -> str:
    """The source of the time estimate, in short; empty if it is unknown."""
    if measured is None:
        return ""
    if measured.source == "run":
        return tr("from a run {ago}", ago=formatting.ago(now - measured.time))
    return tr("measured {ago}", ago=formatting.ago(now - measured.time))


def details(measured: Measurement, estimated_mb: float, now: float) -> list[str]:
    """Sentences on the measurement, and on reasons for doubt."""
    when = formatting.ago(now - measured.time)
    steps = trn("{count} step", "{count} steps", measured.steps)
    source = (
        tr("From a run on this machine {ago}: {steps}.", ago=when, steps=steps)
        if measured.source == "run"
        else tr("Measured on this machine {ago}: {steps}.", ago=when, steps=steps)
    )
    found = [source]
    if (seen := peak_mb(measured)) is not None:
        found.append(
            tr(
                "Peak memory was {measured}; the estimate was {estimated}.",
                measured=formatting.megabytes(seen),
                estimated=formatting.megabytes(estimated_mb),
            )
        )
    if measured.others >= time_span.BUSY:
        found.append(
            tr(
                "Other programs used {share:.0%} of the CPU during the measurement; training is faster without them.",
                share=measured.others,
            )
        )
    if not measured.weights:
        found.append(
            tr(
                "The model's weights were not downloaded yet, so the measurement used random weights; "
                "add the time to download them."
            )
        )
    return found


def peak_mb(measured: Measurement | None) -> float | None:
    """Peak memory where the run computes: the accelerator's, else the process's."""
    if measured is None:
        return None
    return measured.device_memory_mb if measured.device_memory_mb is not None else measured.memory_mb
