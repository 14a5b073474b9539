"""Recognises that the processes of a run waited for one another in vain, or that NCCL could not connect their GPUs."""

from typing import Any

from backend.contract.errors import RunFailed
from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.training.failures.failure import Failure, FailureContext

_SETTING = "hardware.collective_timeout"
_ENVIRONMENT = "hardware.environment"
_LONGEST_SECONDS = 86_400
_LESS_DIRECT = {"NCCL_P2P_LEVEL": "NVL", "NCCL_P2P_DISABLE": "1"}
"""What lets NCCL go through the computer's memory: first for GPUs that NVLink does not connect, then for all."""
_HINT = message(
    "Some computers cannot copy directly between their GPUs. In hardware.environment, NCCL_P2P_LEVEL: NVL does so only over "
    "NVLink, and NCCL_P2P_DISABLE: '1' never. With NCCL_DEBUG: INFO the logs of all processes show the cause."
)


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """What the engine says; for NCCL with the next less direct way, else with twice the time to wait."""
    if not isinstance(error, RunFailed) or error.code != "collective_failed":
        return None
    is_nccl = "NCCL" in str(error)
    changes = (_go_less_directly(context) if is_nccl else {}) or _wait_longer(context)
    fix = RunFix(changes, resume=context.can_resume) if changes else None
    return Failure(str(error), _HINT if is_nccl else error.hint, fix)


def _go_less_directly(context: FailureContext) -> dict[str, Any]:
    chosen = context.setting(_ENVIRONMENT) or {}
    return next(({f"{_ENVIRONMENT}.{name}": value} for name, value in _LESS_DIRECT.items() if name not in chosen), {})


def _wait_longer(context: FailureContext) -> dict[str, Any]:
    seconds = context.setting(_SETTING)
    return {_SETTING: 2 * seconds} if isinstance(seconds, int) and 2 * seconds <= _LONGEST_SECONDS else {}


FAILURE = recognise
