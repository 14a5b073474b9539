"""The card of other machines on the Settings page, where a Ray cluster is described."""

from app.pages.settings.machines_card import MachinesCard
from backend.contract.machines import Machine
from backend.contract.rpc.machines import MachineList
from backend.contract.rpc.protocol import ErrorReply


def test_a_ray_cluster_is_described_by_its_dashboard(qtbot, context):
    card = MachinesCard(context.client)
    qtbot.addWidget(card)
    card.name.setText("ray")
    card.scheduler.setCurrentIndex(card.scheduler.findData("ray"))
    assert not card.save_button.isEnabled()
    assert [card.form.isRowVisible(card.job[key]) for key in ("partition", "dashboard", "cpus")] == [False, True, True]
    card.job["dashboard"].setText("http://head.invalid:8265")
    card.open_cluster.setChecked(True)
    with qtbot.waitSignal(card.changed):
        card.save_button.click()
    assert not card.open_cluster.isChecked()
    card.edit("ray")
    assert (card.job["dashboard"].text(), card.open_cluster.isChecked()) == ("http://head.invalid:8265", True)
    with qtbot.waitSignal(card.changed):
        card.remove("ray")


def test_schedulers_of_installed_packages_are_offered(qtbot, context):
    card = MachinesCard(context.client)
    qtbot.addWidget(card)
    there = {name: Machine(scheduler=name).model_dump() for name in ("kubernetes", "gone")}
    for _ in range(2):
        card.show_machines(MachineList(there, {"kubernetes": "Kubernetes"}))
    assert card.scheduler.count() == 4
    card.edit("kubernetes")
    assert card.scheduler.currentText() == "Submit runs to Kubernetes"
    assert card.form.isRowVisible(card.script_lines)
    assert card.save_button.isEnabled()
    card.edit("gone")
    assert card.scheduler.currentData() == "gone"  # saving another setting does not change it


def test_an_unknown_host_key_is_accepted_by_the_fingerprint_that_was_shown(qtbot, context, monkeypatch):
    card = MachinesCard(context.client)
    qtbot.addWidget(card)
    asked = []
    monkeypatch.setattr(context.client, "ask", lambda query, arguments, *reactions: asked.append((query, arguments)))
    fingerprint = f"SHA256:{'k' * 43}"
    card._on_failed_check(
        "lab", ErrorReply(f"no connection to lab: its host key is unknown (ssh-ed25519 {fingerprint})")
    )
    assert (card.trust_button.isHidden(), card.install_button.isHidden()) == (False, True)
    card.trust_button.click()
    assert asked == [("trust_machine", {"name": "lab", "fingerprint": fingerprint})]
    assert card.trust_button.isHidden()
    card._on_failed_check("lab", ErrorReply("no connection to lab: it does not answer"))
    assert (card.trust_button.isHidden(), card.install_button.isHidden()) == (True, False)
