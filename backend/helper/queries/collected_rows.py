"""Owns `add_row`: an answered row of the Try box goes into a file of the person's own."""

from pathlib import Path
from typing import Any

from backend.contract.rpc.feedback import AddedRow
from backend.helper.query import Arguments, Query, Tell, needed


def _add(arguments: Arguments, tell: Tell) -> AddedRow:
    from backend import registry
    from backend.contract.spec import validated
    from backend.inference import feedback_file
    from backend.tasks.task import used_columns

    section: dict[str, Any] = needed(arguments, "task", dict)
    kind = registry.find("task", str(section.get("type")), "task.type")
    known = {name: value for name, value in section.items() if name in kind.Settings.model_fields}
    return feedback_file.add(
        Path(needed(arguments, "path")),
        used_columns(kind(validated(kind.Settings, known, "task"))),
        arguments.get("columns") or {},
        needed(arguments, "row", dict),
        arguments.get("right"),
        defuse=bool(arguments.get("defuse")),
        bom=bool(arguments.get("bom")),
    )


QUERIES = (Query("add_row", _add),)
