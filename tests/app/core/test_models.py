"""What the list of models says, as values."""

import pytest

from app.core.draft import model_rows
from app.core.draft.draft import Draft
from app.core.draft.model_consent import question
from app.core.draft.model_rows import GroupHeading, ModelFilter
from app.core.runs.run_state import RunState
from app.core.runs.run_status import RunStatus
from app.pages.new_run.model.model_controller import free_mb, model_filter
from app.pages.new_run.model.obstacle import obstacle
from app.pages.run.progress import stage_words
from backend.contract.catalog import Device
from backend.contract.rpc.models import ModelChoice, ModelDescription
from backend.contract.run import events

BERT = ModelChoice(name="/demo/bert", group="demo", title="bert", model_type="bert", tasks=["masked_lm"])
GONE = ModelChoice(name="/gone", group="recent", title="gone", problem="the folder is not there; choose another")
CACHED = ModelChoice(name="team/x", group="cache", model_type="t5", licence="mit", started_mb=12)
HUB = ModelChoice(name="team/x", group="hub", downloads=61_234_567)


def test_groups_have_headings_and_what_is_here_is_not_listed_from_the_hub_again():
    assert model_rows.lines([HUB, CACHED, BERT], ModelFilter()) == [
        GroupHeading(model_rows.HEADINGS["demo"], 1), BERT, GroupHeading(model_rows.HEADINGS["cache"], 1), CACHED,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        (ModelFilter("BERT"), [BERT]),
        (ModelFilter("t5 mit"), [CACHED]),
        (ModelFilter("t5 apache"), []),
        (ModelFilter(fitting=True), [BERT, CACHED]),
        (ModelFilter(task="masked_lm"), [BERT]),
        (ModelFilter(groups=("recent",)), [GONE]),
    ],
)
def test_words_task_and_fit_limit_the_list(sought: ModelFilter, found: list[ModelChoice]):
    lines = model_rows.lines([BERT, GONE, CACHED], sought)
    assert [line for line in lines if isinstance(line, ModelChoice)] == found


def test_a_line_says_everything_to_those_who_cannot_see_it():
    assert model_rows.spoken_line(GONE) == "gone, /gone, Does not fit, The folder is not there; choose another."
    assert model_rows.spoken_line(CACHED).startswith("team/x, t5, mit, Partly downloaded, 12 MB already downloaded")
    assert "61.2 M downloads" in model_rows.spoken_line(HUB)


def test_the_wish_follows_the_draft_and_its_device():
    devices = [Device("cpu", 0, "CPU", 16000, 8000), Device("cuda", 0, "Card", 80000, 79000)]
    draft = Draft({"task": {"type": "causal_lm"}, "adapter": {"type": "lora"}, "hardware": {"engine": "torch"}})
    found = model_filter(draft, devices)
    assert (found["task"], found["partly"], found["free_mb"]) == ("causal_lm", True, 79000)
    draft.set("hardware.device", "cpu")
    assert free_mb(draft, devices) == 8000
    draft.set("hardware.memory_limit", 4)
    assert free_mb(draft, devices) == 4000
    assert free_mb(draft, []) == 0


def test_what_fits_is_judged_by_the_freest_device():
    cards = [Device("cuda", number, "Card", 80000, free) for number, free in enumerate((2000, 79000))]
    assert free_mb(Draft({"task": {"type": "causal_lm"}}), cards) == 79000


def test_the_worst_obstacle_is_said_first_with_the_way_out():
    def met(**facts: object) -> str:
        found = obstacle(ModelDescription(name="x", **facts), False, Draft({"task": {"max_length": 512}}))  # type: ignore[arg-type]
        return found.fix if found else "none"

    assert met(problem="no", needs_conversion=True) == "another"
    assert met(needs_conversion=True, weights_format="bin", found="hub") == "convert"
    assert met(needs_remote_code=True) == "trust"
    assert met(max_length=128, found="hub") == "shorten"
    assert met(max_length=512, found="hub") == "download"
    assert met(max_length=512, found="folder") == "none"


def test_everybody_who_asks_for_consent_names_the_files_with_the_code():
    model = ModelDescription(name="x", needs_remote_code=True, code_files=["modeling_x.py", "configuration_x.py"])
    met = obstacle(model, False, None)
    assert met is not None
    assert question(model) == ("trust", met.sentence)
    assert met.sentence.endswith("Files: modeling_x.py, configuration_x.py.")


def test_a_run_that_downloads_its_model_says_how_many_bytes():
    state = RunState()
    state.apply(events.StageStarted(time=1.0, stage="finding model", unit="bytes"))
    state.apply(events.StageProgress(time=2.0, stage="finding model", done=120_000_000, total=268_000_000))
    running = RunStatus("running")
    assert stage_words(state, running) == "Downloading the model · 120 MB of 268 MB"
