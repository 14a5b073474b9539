"""The card of other machines on the Settings page, where a Ray cluster is described."""

from app.pages.settings.machines_card import MachinesCard


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
