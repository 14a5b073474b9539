"""Nothing on the New run page moves while answers arrive: fields of the open section, the sections' lines, the bar."""

from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QApplication, QWidget

from app.pages.new_run.data.recognised_note import TaskOffer
from app.pages.new_run.page import Page
from app.pages.new_run.section_state import SECTIONS
from app.widgets.accessibility import in_reading_order
from backend.contract.catalog import Device
from backend.contract.errors import Fix
from backend.contract.rpc.data import IgnoredFile, OtherTask, RecognisedData
from backend.contract.rpc.plan import AutoSetting, DeviceList, DiskPart, DiskPlan, DiskVolume
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.run.cost import DiskFix, MeasuredTime, Measurement, MemoryFix
from tests.app.pages.small_helper import GLANCE

LONG = "This sentence goes on and on, as those of a backend may, and says what to do about it in many words"
FULL = DiskVolume(LONG, 211, 190, 1000)
LESS = DiskFix(title="Keep one checkpoint", changes={}, disk_mb=158, fits=True, note=LONG)
CHOSEN = {
    "training.epochs": 12.0,
    "training.learning_rate": 4e-4,
    "training.batch_size": 8,
    "training.warmup": 0.1,
    "training.gradient_checkpointing": "true",
    "hardware.compile": "always",
    "hardware.processes": 2,
    "model.weights": "bfloat16",
}
MEASURED = Measurement(time=0.0, mean_length=17.3, longest=91, steps=31, step_seconds=0.4, memory_mb=1250.0)
OFFER = TaskOffer(LONG, [("causal_lm", LONG[:40]), ("masked_lm", LONG[:40])])
FIX = MemoryFix(title="LoRA adapter", changes={}, memory_mb=470, fits=True, note="Few.")


def places(page: Page) -> dict[str, QRect]:
    """Where everything that can be used stands in the page, by what it is."""
    QApplication.processEvents()
    sections = page.sections.named.values()
    fields = in_reading_order(page.sections.named[page.sections.opened].inside)
    bar = page.start_bar
    parts: list[QWidget] = [*(section.header for section in sections), page.header, page.sections.side, bar]
    parts += [bar.time, bar.memory, bar.measure, bar.more, bar.start]
    named = {f"{type(one).__name__} {number}": one for number, one in enumerate(parts)}
    named |= {f"{type(one).__name__} {one.accessibleName()}": one for one in fields}
    return {name: QRect(one.mapTo(page, QPoint(0, 0)), one.size()) for name, one in named.items()}


def moved(before: dict[str, QRect], after: dict[str, QRect]) -> list[str]:
    return [f"{name}: {place} -> {after[name]}" for name, place in before.items() if after.get(name, place) != place]


def answers(page: Page) -> dict[str, Callable[[], object]]:
    """Every kind of answer, as it arrives from the backend; each may come while somebody works."""
    checks, section = page.checks, page.sections.data
    preview, model, plan = checks.preview, checks.model, checks.plan
    assert preview is not None
    assert model is not None
    assert plan is not None
    replace = msgspec.structs.replace
    fix = Fix("Set the encoding", {"data.encoding": "cp1252"}, ("one", "two", "three"), LONG)
    left_out = [IgnoredFile("a.txt", LONG)]
    recognised = RecognisedData(data={"source": "files"}, source_title="Files", words=LONG, left_out=left_out)
    found: dict[str, Callable[[], object]] = {
        f"asking {topic}": lambda topic=topic: checks.asking.emit(topic, None) for topic in ("data", "model", "plan")
    }
    found |= {
        f"progress {topic}": lambda topic=topic: checks.asking.emit(topic, Progress(done=1, total=3, text=LONG))
        for topic in ("data", "model")
    }
    found |= {f"emptied {topic}": lambda topic=topic: checks.emptied.emit(topic) for topic in ("data", "model", "plan")}
    found |= {
        f"refused {topic} {field}": lambda topic=topic, field=field: checks._on_mistake(topic, ErrorReply(LONG, field))
        for topic, field in (
            ("data", "data.train"),
            ("data", "data.encoding"),
            ("model", "model.name_or_path"),
            ("plan", "training.learning_rate"),
            ("plan", "task.max_length"),
            ("plan", "hardware.device"),
            ("plan", "hardware.compile"),
            ("plan", "data.columns.label"),
            ("plan", "adapter.type"),
            ("plan", "name"),
            ("plan", None),
            ("devices", None),
        )
    }
    found |= {
        "a fix for the data": lambda: checks._on_mistake("data", ErrorReply(LONG, "data.train", fix=fix)),
        "a preview": lambda: checks.previewed.emit(preview),
        "a preview with a fix": lambda: checks.previewed.emit(replace(preview, fix=fix)),
        "a preview with a wrong column": lambda: checks._on_preview(
            replace(preview, wrong_column=ErrorReply(LONG, "data.columns.label", fix=fix))
        ),
        "a preview of data for other tasks": lambda: checks._on_preview(
            replace(preview, other_tasks=[OtherTask("causal_lm", LONG), OtherTask("masked_lm", LONG)])
        ),
        "a preview of other columns": lambda: checks.previewed.emit(
            replace(preview, columns=["a", "b"], rows=[], best_guesses={})
        ),
        "recognising": section.show_recognising,
        "recognised": lambda: section.show_recognised(recognised, OFFER),
        "all rows": lambda: page.data_controller._on_glance(replace(GLANCE, warnings=[LONG, LONG], notes=[LONG, LONG])),
        "no rows": lambda: page.data_controller._on_no_glance(ErrorReply(LONG, "data.validation")),
        "a look at all rows": lambda: section.view.show_counting(0.3),
        "no look at all rows": lambda: section.view.show_glance(None),
        "a model": lambda: checks.described.emit(model),
        "a model with much to say": lambda: checks.described.emit(
            replace(model, problem=LONG, notes=[LONG, LONG], needs_conversion=True)
        ),
        "a model of the hub": lambda: checks._on_model(replace(model, found="hub", size_mb=440.0)),
        "a model with its own code": lambda: checks._on_model(
            replace(model, needs_remote_code=True, code={"x": "c0ffee"}, code_files=[LONG])
        ),
        "a model that takes less": lambda: checks._on_model(replace(model, max_length=64)),
        "a download": lambda: page.model_controller.download.changed.emit(),
        "the catalog once more": lambda: page._on_catalog(page.catalog),
        "a plan with what was chosen": lambda: checks._on_plan(
            replace(plan, auto=[AutoSetting(key, value, LONG) for key, value in CHOSEN.items()], notes=[LONG, LONG])
        ),
        "a measured plan": lambda: checks._on_plan(replace(plan, measured=MEASURED, seconds=100.0)),
        "a plan": lambda: checks.planned.emit(plan),
        "a plan that does not fit": lambda: checks._on_plan(
            replace(plan, fits=False, problems=[LONG], remedies=[FIX, FIX], notes=[LONG], precision_reason=LONG)
        ),
        "a plan for which the disk is too small": lambda: checks._on_plan(
            replace(plan, disk=DiskPlan(parts=[DiskPart(LONG, 1, LONG)], volumes=[FULL], problem=LONG, fixes=[LESS]))
        ),
        "devices": lambda: checks.devices_found.emit(
            DeviceList([Device("cuda", n, "Card", 16000, 12000, ["float32"]) for n in range(3)], LONG)
        ),
        "no devices": lambda: checks.devices_found.emit(DeviceList([], LONG)),
        "a measurement": lambda: checks.measuring.emit(Progress(part="training", done=1, total=3)),
        "the end of a measurement": lambda: checks.measuring.emit(None),
        "a shortage": lambda: checks.short_of_memory.emit(MeasuredTime(shortage=LONG, remedies=[FIX])),
        "a refused start": lambda: page._on_refused(f"training.batch_size: {LONG}"),
        "starting": lambda: page.start_bar.show_starting(True),
        "adding to the queue": lambda: page.start_bar.show_starting(True, queue=True),
        "another run": lambda: page.start_bar.show_others(LONG),
    }
    return found


@pytest.mark.parametrize("name", SECTIONS)
def test_nothing_moves_when_an_answer_arrives(demo: Page, name: str):
    demo.sections.open(name)
    demo.sections.settings.groups["training"].set_open(True)
    for form in demo.sections.data.forms_shown():
        form.set_unfolded(True)
    places(demo)
    before = places(demo)
    jumps: dict[str, list[str]] = {}
    for kind, arrive in answers(demo).items():
        arrive()
        if found := moved(before, places(demo)):
            jumps[kind] = found
    demo.start_bar.show_starting(False)
    demo.start_bar.show_others("")
    assert jumps == {}
