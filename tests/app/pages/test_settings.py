"""The Settings page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel

from app import theme
from app.core import preferences
from app.pages.settings.machine_card import is_command
from app.pages.settings.page import Page
from app.widgets.icon_label import IconButton, IconToolButton
from backend.contract import consents, places, spec_file
from backend.contract.rpc.machines import MachineState
from backend.contract.rpc.models import HubAccount
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.storage import ClearedCache, StorageItem, StorageUse

FINDINGS = [
    {"state": "fine", "text": "Python 3.11", "mend": ""},
    {"state": "missing", "text": "A library is missing", "mend": "apt-get install it"},
]


@pytest.fixture
def panel(qtbot, context) -> Page:
    made = Page(context)
    qtbot.addWidget(made)
    made.resize(1000, 800)
    made.show()
    return made


def stored(context) -> preferences.Preferences:
    return preferences.load(context.preferences.path)


def test_a_choice_of_theme_is_kept_and_told(qtbot, panel: Page, context):
    with qtbot.waitSignal(panel.theme_changed) as signal:
        panel.appearance.themes.button(2).click()
    assert signal.args == ["dark"]
    assert stored(context).theme == "dark"


def test_a_theme_that_is_not_known_here_follows_the_system(qtbot, context):
    context.preferences.set("theme", "sepia")
    panel = Page(context)
    qtbot.addWidget(panel)
    assert panel.appearance.themes.checkedId() == 0


def test_a_language_is_kept_and_what_comes_of_it_is_said_in_it(qtbot, panel: Page, context):
    choice = panel.appearance.language
    assert [choice.box.itemText(place) for place in range(3)] == ["Follow the system", "English", "Deutsch"]
    assert not choice.hint.isVisible()
    choice.box.setCurrentIndex(2)
    choice.box.activated.emit(2)
    assert stored(context).language == "de"
    assert (choice.hint.text().split()[:3], choice.restart.text()) == (
        ["Burnish", "wechselt", "zu"],
        "Burnish neu starten",
    )
    with qtbot.waitSignal(panel.restart_wanted):
        choice.restart.click()


def test_the_language_that_is_spoken_needs_no_restart(qtbot, panel: Page, context):
    choice = panel.appearance.language
    for place in (2, 1):
        choice.box.setCurrentIndex(place)
        choice.box.activated.emit(place)
    assert stored(context).language == "en"
    assert not choice.hint.isVisible()
    assert not choice.restart.isVisible()


def test_check_boxes_are_kept(panel: Page, context):
    panel.hub.offline.click()
    panel.csv_bom.click()
    panel.csv_defuse.click()
    assert (stored(context).offline, stored(context).csv_bom, stored(context).csv_defuse) == (True, True, True)


def test_another_runs_folder_is_looked_at_at_once(panel: Page, context, tmp_path: Path):
    panel.set_folder("runs_folder", str(tmp_path / "elsewhere"))
    assert context.library.root == tmp_path / "elsewhere"
    assert panel.folders.runs_folder.text() == str(tmp_path / "elsewhere")
    assert stored(context).runs_folder == str(tmp_path / "elsewhere")


def test_what_is_missing_comes_with_a_command_to_copy(qtbot, panel: Page):
    panel.machine.show_findings({"findings": FINDINGS})
    button = panel.machine.lines.itemAt(0).widget().findChild(IconToolButton)
    with qtbot.waitSignal(panel.message):
        button.click()
    assert QGuiApplication.clipboard().text() == "apt-get install it"


def test_a_fix_that_is_a_sentence_is_shown_whole(panel: Page):
    sentence = "small models train well on a CPU; a larger one needs a GPU, here or in the cloud"
    panel.machine.show_findings({"findings": [{"state": "note", "text": "No GPU found", "mend": sentence}]})
    line = panel.machine.lines.itemAt(0).widget()
    shown = line.findChildren(QLabel)[-1]
    assert shown.wordWrap()
    assert shown.text().lower().startswith(sentence.lower())
    assert line.findChild(IconToolButton) is None


@pytest.mark.parametrize(
    ("fix", "is_one"),
    [
        ("/usr/bin/python3 -m pip install torch", True),
        ("sudo apt-get install --no-install-recommends libegl1", True),
        ("unset HF_HOME; export HF_HUB_CACHE=/x", True),
        ("close other programs", False),
        ("set BURNISH_RUNS to a folder that you can write to", False),
    ],
)
def test_a_command_is_told_from_a_sentence(fix: str, is_one: bool):
    assert is_command(fix) is is_one


def test_this_computer_leads_with_its_devices_and_folds_what_is_fine(panel: Page):
    device = {"state": "note", "text": "No GPU found: this computer has none", "mend": "", "about": "device"}
    panel.machine.show_findings({"findings": [*FINDINGS, device]})
    lines = [panel.machine.lines.itemAt(place).widget() for place in range(panel.machine.lines.count())]
    assert "No GPU found" in " ".join(one.text() for one in lines[0].findChildren(QLabel))
    folded = lines[-1]
    assert not folded.isVisible()
    panel.machine.fold.click()
    assert folded.isVisible()


def test_a_window_that_is_open_says_nothing_of_its_display(panel: Page):
    display = {"state": "note", "text": "no display is available", "mend": "", "about": "display"}
    panel.machine.show_findings({"findings": [display]})
    assert panel.machine.lines.count() == 0


def test_checking_again_replaces_the_lines(panel: Page):
    panel.machine.show_findings({"findings": FINDINGS})
    panel.machine.show_findings({"findings": FINDINGS[1:]})
    assert panel.machine.lines.count() == 1


def test_a_mistake_of_the_helper_is_shown(panel: Page):
    panel.machine.show_mistake(ErrorReply("The helper is not there; try again."))
    assert panel.machine.banner.text() == "The helper is not there; try again."
    assert panel.machine.check_again.isEnabled()


STORAGE = StorageUse(
    runs=3,
    runs_size=12_000_000,
    cache_size=900_000_000,
    hub_folder="/hub",
    hub_size=2_000_000_000,
    free=50_000_000_000,
    parts=[
        StorageItem(name="features", title="Tokenized features", size=410_000_000),
        StorageItem(name="lengths", title="Measured lengths", size=40_000),
        StorageItem(name="tables", title="Cached rows", size=300_000_000),
    ],
)


class Asked:
    """Keeps the questions and answers nothing."""

    def __init__(self, context) -> None:
        self.questions: list[tuple[str, dict]] = []
        context.client.ask = self.ask

    def ask(self, query, arguments, *hear) -> Asked:
        self.questions.append((query, arguments))
        return self

    open = False


@pytest.fixture
def asked(context) -> Asked:
    return Asked(context)


def test_the_text_size_is_kept_and_all_text_follows_at_once(qtbot, panel: Page, context, qapp):
    usual = panel.hub.who.fontMetrics().height()
    with qtbot.waitSignal(panel.text_size_changed):
        panel.appearance.sizes.button(3).click()
    assert stored(context).text_size == 16
    theme.apply(qapp, "light", 16)
    assert panel.hub.who.fontMetrics().height() > usual
    theme.apply(qapp, "light", 13)
    assert panel.hub.who.fontMetrics().height() == usual


def test_sizes_of_the_folders_are_told(panel: Page, asked: Asked):
    panel.folders.ask_sizes()
    assert asked.questions == [("storage", {})]
    panel.folders._on_storage(STORAGE)
    assert panel.folders.runs_size.text() == "12 MB in 3 runs"
    assert "tokenized features 410 MB" in panel.folders.cache_size.text()
    assert "measured lengths" not in panel.folders.cache_size.text()
    assert "50.0 GB free" in panel.folders.cache_size.text()


def test_clearing_says_how_much_and_asks_first(panel: Page, asked: Asked):
    panel.folders._on_storage(STORAGE)
    panel.folders.clear_button.click()
    assert "Clear 410 MB of tokenized features" in panel.folders.banner.text()
    assert asked.questions == []
    panel.folders.keep_button.click()
    assert panel.folders.banner.isHidden()
    assert asked.questions == []
    panel.folders.clear_button.click()
    panel.folders.sure_button.click()
    assert asked.questions == [("clear_cache", {"parts": ["features", "lengths", "report", "pages"]})]


def test_rows_that_were_read_are_cleared_only_where_that_is_ticked(panel: Page, asked: Asked):
    panel.folders._on_storage(STORAGE)
    panel.folders.clear_button.click()
    panel.folders.tables.click()
    panel.folders.sure_button.click()
    assert asked.questions[0][1]["parts"] == ["features", "lengths", "report", "pages", "tables"]


def test_what_a_live_run_keeps_is_told(panel: Page, asked: Asked):
    panel.folders._on_cleared(ClearedCache(freed=1_000_000, kept=5_000_000, kept_for=["2026-11-21-1530-reviews"]))
    assert "Kept 5 MB that active runs may be reading: 2026-11-21-1530-reviews" in panel.folders.banner.text()


def test_an_empty_cache_cannot_be_cleared(panel: Page):
    panel.folders._on_storage(msgspec.structs.replace(STORAGE, parts=[]))
    assert not panel.folders.clear_button.isEnabled()


def test_a_token_is_handed_over_and_forgotten(panel: Page, asked: Asked):
    panel.hub.token.setText(" hf_abcdefghijklmnop ")
    panel.hub.login_button.click()
    assert asked.questions == [("hub_login", {"token": "hf_abcdefghijklmnop"})]
    assert panel.hub.token.text() == ""
    assert panel.hub.token.echoMode() == panel.hub.token.EchoMode.Password


def test_who_is_logged_in_is_shown_and_can_log_out(panel: Page, asked: Asked):
    panel.hub.show_account(HubAccount(name="ada", full_name="Ada L.", organisations=["engines"], has_token=True))
    assert panel.hub.who.text() == "Signed in as ada (Ada L.), member of engines."
    assert panel.hub.token.isHidden()
    panel.hub.logout_button.click()
    assert asked.questions == [("hub_logout", {})]
    panel.hub._on_logged_out(HubAccount())
    assert not panel.hub.token.isHidden()


def test_offline_nobody_can_log_in(panel: Page, context):
    panel.hub.token.setText("hf_abcdefghijklmnop")
    panel.hub.offline.click()
    panel.hub.show_account(HubAccount())
    assert not panel.hub.login_button.isEnabled()
    assert context.preferences.environment()["HF_HUB_OFFLINE"] == "1"


def test_a_consent_can_be_looked_through_and_withdrawn(qtbot, panel: Page, monkeypatch, tmp_path):
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "consents"))
    for commit in ("a" * 40, "b" * 40):
        consents.agree("somebody/model", commit, "digest")
    panel.consents.show_consents()
    assert panel.consents.lines.count() == 2
    line = panel.consents.lines.itemAt(0).widget()
    with qtbot.waitSignal(panel.consents.message):
        line.findChild(IconButton).click()
    assert [one.version for one in consents.read()] == ["b" * 40]
    panel.consents.withdraw("somebody/model", "b" * 40)
    assert consents.read() == []
    assert not panel.consents.none.isHidden()


def test_every_setting_is_found_by_its_title(panel: Page):
    for action in panel.offered_actions():
        assert action.kind == "Setting"
        action.do()
    assert panel.csv_defuse.hasFocus() or not panel.isActiveWindow()


def test_a_machine_is_added_checked_changed_and_removed(qtbot, panel: Page):
    card = panel.machines
    assert not card.save_button.isEnabled()
    card.name.setText("lab")
    card.address.setText("nobody@lab.invalid")
    with qtbot.waitSignal(card.changed):
        card.save_button.click()
    assert card.lines.count() == 1
    qtbot.waitUntil(lambda: "No connection to lab" in card.banner.text())
    card.edit("lab")
    assert (card.address.text(), card.save_button.text()) == ("nobody@lab.invalid", "Save machine")
    with qtbot.waitSignal(card.changed):
        card.remove("lab")
    assert card.lines.count() == 0


def test_a_cluster_is_described_with_what_its_jobs_need(qtbot, panel: Page):
    card = panel.machines
    card.name.setText("cluster")
    assert not card.save_button.isEnabled()
    assert not card.form.isRowVisible(card.job["partition"])
    card.scheduler.setCurrentIndex(1)
    assert card.save_button.isEnabled()  # this computer may be the login node
    assert card.form.isRowVisible(card.job["partition"])
    card.job["partition"].setText("gpu")
    card.script_lines.setPlainText("#SBATCH --mem=32G\nmodule load cuda")
    with qtbot.waitSignal(card.changed):
        card.save_button.click()
    assert not card.form.isRowVisible(card.script_lines)
    card.edit("cluster")
    assert (card.job["partition"].text(), card.scheduler.currentData()) == ("gpu", "slurm")
    assert card.script_lines.toPlainText() == "#SBATCH --mem=32G\nmodule load cuda"
    with qtbot.waitSignal(card.changed):
        card.remove("cluster")


def test_a_mistake_in_a_machine_is_said_in_its_card(qtbot, panel: Page):
    panel.machines.name.setText("a b")
    panel.machines.address.setText("lab")
    panel.machines.save()
    qtbot.waitUntil(
        lambda: "Use letters" in panel.machines.banner.text() or "use letters" in panel.machines.banner.text()
    )


def test_what_a_machine_says_of_itself_is_shown(panel: Page):
    found = MachineState({"burnish": "0.1.0"}, "/home/me/burnish", 81_000_000_000, ["cuda:0 A100, 80 GB"])
    panel.machines.show_state("lab", found)
    assert panel.machines.banner.text().startswith("lab answers: burnish 0.1.0 · cuda:0 A100, 80 GB · 81")


def test_a_tracker_gets_every_run_and_its_settings_are_kept(qtbot, panel: Page):
    panel.on_shown()
    card = panel.trackers
    qtbot.waitUntil(lambda: "mlflow" in card.checks)
    assert not card.forms["mlflow"].isVisible()
    card.checks["mlflow"].click()
    qtbot.waitUntil(card.forms["mlflow"].isVisible)
    card.forms["mlflow"].changed.emit("address", "http://localhost:5001")
    wanted = {"mlflow": {"every_run": True, "address": "http://localhost:5001"}}
    qtbot.waitUntil(lambda: spec_file.read(places.config_folder() / "trackers.yaml") == wanted)
    card.checks["mlflow"].click()
    qtbot.waitUntil(lambda: not card.forms["mlflow"].isVisible())
    assert spec_file.read(places.config_folder() / "trackers.yaml") == {"mlflow": {"address": "http://localhost:5001"}}


def test_a_trackers_mistake_stands_at_its_field(qtbot, panel: Page):
    panel.on_shown()
    card = panel.trackers
    qtbot.waitUntil(lambda: "mlflow" in card.checks)
    card.checks["mlflow"].click()
    qtbot.waitUntil(card.forms["mlflow"].isVisible)
    card.forms["mlflow"].changed.emit("address", "http://ada:secret@lab:5000")
    qtbot.waitUntil(lambda: "address" in card.forms["mlflow"].mistakes())
