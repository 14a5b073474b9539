"""Owns whose data is looked at: the run that is being set up, or one that was started."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DRAFT = "draft"


@dataclass(frozen=True)
class TrainingSubject:
    """A draft by its spec, or a run by its folder; neither is nothing yet."""

    run: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    lacks: str = ""
    """What a draft still needs before its data can be looked at, as a sentence."""

    @property
    def is_draft(self) -> bool:
        """Whether settings that are found here can be used in it."""
        return not self.run

    @property
    def ready(self) -> bool:
        """Whether there is something to ask about."""
        return bool(self.run) or (bool(self.spec) and not self.lacks)

    def arguments(self, split: str, asked: int) -> dict[str, Any]:
        """The question's arguments; `asked` counts how often files were to be looked at anew."""
        own = {"run": self.run} if self.run else {"spec": dict(self.spec)}
        return {"subject": self.run or DRAFT, "split": split, "asked": asked, **own}
