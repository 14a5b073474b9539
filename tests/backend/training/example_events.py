"""Events as a run writes them, for tests that need some and do not care which."""

from backend.contract.run.events import RunStarted, StepFinished

STARTED = RunStarted(time=1.0, name="reviews", task="t", model="m")


def step(number: int) -> StepFinished:
    """That a step was made."""
    return StepFinished(
        time=1.0,
        step=number,
        epoch=0.0,
        loss=0.5,
        learning_rate=1e-3,
        gradient_norm=None,
        rows=4,
        tokens=9,
        seconds=0.1,
    )
