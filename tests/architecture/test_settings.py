"""One declaration per setting: what forms, --set, validation and the docs are made from says all they need."""

import json
from collections.abc import Iterator

import pytest
from pydantic.fields import FieldInfo

from backend import catalog_building, registry
from backend.contract.spec import (
    DataSection,
    EvaluationSection,
    HardwareSection,
    ModelSection,
    RunSpec,
    Section,
    TrainingSection,
)
from backend.metrics.metric import declared_metrics

OPEN_SECTIONS = {"source": DataSection, "engine": HardwareSection}
"""Kinds whose own settings stand beside those of a section of the contract."""


def sections() -> Iterator[type[Section]]:
    """Every section of the spec, the registered ones included."""
    yield RunSpec
    yield from (DataSection, EvaluationSection, HardwareSection, ModelSection, TrainingSection)
    for kind in ("task", "source", "engine", "optimizer", "adapter"):
        yield from (member.Settings for member in registry.all_of(kind).values())


def fields() -> list[tuple[str, FieldInfo]]:
    """Every setting with its place; a section inside a section is no setting."""
    return [
        (f"{section.__module__}.{section.__name__}.{name}", field)
        for section in sections()
        for name, field in section.model_fields.items()
        if not _is_section(field)
    ]


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Section)


def test_there_are_members_of_every_kind():
    assert {"text_classification", "causal_lm"} <= set(registry.names("task"))
    assert {"files", "hub"} <= set(registry.names("source"))
    assert "torch" in registry.names("engine")


@pytest.mark.parametrize(("place", "field"), fields(), ids=[place for place, _ in fields()])
def test_setting_has_a_title_and_a_description(place: str, field: FieldInfo):
    assert field.title, f"{place} has no title"
    assert field.title[0].isupper(), f"{place}: titles are in sentence case"
    assert field.description, f"{place} has no description"
    assert field.description.rstrip().endswith("."), f"{place}: a description is a sentence"


@pytest.mark.parametrize("kind", ["task", "source", "engine", "optimizer", "adapter"])
def test_member_has_a_title_and_a_description(kind: str):
    for name, member in registry.all_of(kind).items():
        assert member.title, f"{kind} {name} has no title"
        assert len(member.description.split()) > 3, f"{kind} {name} has no description"


@pytest.mark.parametrize("kind", OPEN_SECTIONS)
def test_own_settings_do_not_hide_those_of_the_section(kind: str):
    taken = set(OPEN_SECTIONS[kind].model_fields)
    for name, member in registry.all_of(kind).items():
        assert not taken & set(member.Settings.model_fields), f"{kind} {name} declares a key of the section anew"


def test_forms_get_plain_json():
    for section in sections():
        json.dumps(section.model_json_schema())


@pytest.mark.parametrize("name", registry.names("task"))
def test_task_defaults_are_a_fragment_of_a_spec(name: str):
    task = registry.find("task", name, "task.type")
    assert set(task.defaults) <= set(RunSpec.model_fields)
    directions = {metric.name: metric.greater_is_better for metric in declared_metrics(task.metrics)}
    assert directions[task.default_metric] is not None
    assert None not in directions.values()


def test_files_that_declare_the_same_metric_agree_on_its_title_and_direction():
    found: dict[str, set[tuple[str, bool | None]]] = {}
    for metrics in registry.all_of("metrics").values():
        for metric in metrics:
            found.setdefault(metric.name, set()).add((metric.title, metric.greater_is_better))
    assert {name for name, declarations in found.items() if len(declarations) > 1} == set()


def test_every_metric_belongs_to_a_task_and_is_computed():
    for metrics in registry.all_of("metrics").values():
        for metric in metrics:
            assert metric.score is not None, metric.name
            assert set(metric.tasks) & set(registry.names("task")), metric.name


@pytest.mark.parametrize("name", registry.names("task"))
def test_task_has_examples_of_its_own_columns(name: str):
    task = registry.find("task", name, "task.type")
    roles = {column.name for column in task.columns}
    assert task.examples
    for row in task.examples:
        assert set(row) <= roles, row


def test_the_catalog_says_what_tasks_declare():
    for entry in catalog_building.build_catalog({}).tasks:
        task = registry.find("task", entry.name, "task.type")
        assert (tuple(entry.examples), entry.trained_architecture) == (task.examples, task.trained_architecture)
