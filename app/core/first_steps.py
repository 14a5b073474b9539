"""Owns what a newcomer is told: the few cards of the tour, in their order."""

from app.core.i18n import tr

TOUR = (
    (
        tr("See it work first"),
        tr("The demo fills this page with a small model and its data. Start it, and watch it learn within a minute."),
    ),
    (
        tr("Then choose your own"),
        tr(
            "Choose a task, your data and a model above. What the run will cost is worked out here before you start it."
        ),
    ),
    (
        tr("Nothing gets lost"),
        tr(
            "Every run is kept here, also when this window is closed. Compare runs, resume them, "
            "take their predictions home."
        ),
    ),
    (
        tr("Everything by its name"),
        tr("Ctrl+K finds every action, page, setting and run. F1 shows all keys. You find this tour there, too."),
    ),
)
"""Title and words of each card; their controls stand in the main window's `show_tour`."""
