"""How a section of the New run page stands: complete, with something missing, being read, or wrong."""

from dataclasses import dataclass

from app.core.i18n import tr
from app.core.page_actions import NEW_RUN_SECTIONS

DONE, OPEN, BUSY, WRONG = "done", "open", "busy", "wrong"
"""The state of a section: complete, something still to be chosen, being read, or wrong."""
SECTIONS = tuple(NEW_RUN_SECTIONS)
ACTIONS = {
    "task": tr("Fix the task"),
    "data": tr("Fix the data"),
    "model": tr("Choose another model"),
    "hardware": tr("Change the hardware"),
    "settings": tr("Change the settings"),
    "search": tr("Change the search"),
}
"""What to do in a section in which something is wrong, if nobody knows more."""


@dataclass(frozen=True)
class SectionState:
    """`note` is what is missing, being read or wrong, as a sentence; `action` is what to do about it, in a few words."""

    kind: str
    note: str = ""
    action: str = ""


def section_of(key: str) -> str:
    """The section that has the setting with this dotted key."""
    first, _, rest = key.partition(".")
    if first == "model":
        return "model" if rest in ("", "name_or_path", "revision", "trust_remote_code") else "settings"
    if key in ("task", "task.type", "name"):
        return "task"
    return first if first in ("data", "hardware", "search") else "settings"
