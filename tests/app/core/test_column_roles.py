"""Which parts play under a task's settings."""

from app.core.draft.column_roles import decides_parts, forget_unused, used_parts
from app.core.draft.draft import Draft
from backend.contract.catalog import Column, TaskEntry

TASK = TaskEntry(
    name="causal_lm",
    title="Language model",
    description="",
    head="causal_lm",
    columns=[
        Column("text", "Text", "", when={"rows": ["blocks", "examples"]}),
        Column("prompt", "Prompt", "", when={"rows": ["instructions"]}),
        Column("label", "Label", ""),
    ],
    metrics=[],
    default_metric="loss",
    settings={"properties": {"rows": {"default": "blocks"}}},
)


def names(draft: Draft) -> list[str]:
    return [part.name for part in used_parts(TASK, draft)]


def test_a_setting_that_was_not_touched_counts_by_its_default():
    assert names(Draft({"task": {"type": "causal_lm"}})) == ["text", "label"]


def test_another_value_asks_for_other_columns():
    assert names(Draft({"task": {"rows": "instructions"}})) == ["prompt", "label"]


def test_columns_that_play_no_more_are_forgotten():
    draft = Draft({"task": {"rows": "instructions"}, "data": {"columns": {"text": "body", "label": "stars"}}})
    forget_unused(TASK, draft)
    assert draft.get("data.columns") == {"label": "stars"}


def test_only_some_settings_decide():
    assert decides_parts(TASK, "task.rows")
    assert not decides_parts(TASK, "task.max_length")
    assert not decides_parts(None, "task.rows")
