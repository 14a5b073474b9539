"""Owns what a newcomer is told: the few cards of the tour, in their order."""

TOUR = (
    (
        "See it work first",
        "The demo fills this page with a small model and its data. Start it, and watch it learn within a minute.",
    ),
    (
        "Then choose your own",
        "Choose a task, your data and a model above. What the run will cost is worked out here before you start it.",
    ),
    (
        "Nothing gets lost",
        "Every run is kept here, also when this window is closed. Compare runs, resume them, take their predictions home.",
    ),
    (
        "Everything by its name",
        "Ctrl+K finds every action, page, setting and run. F1 shows all keys. You find this tour there, too.",
    ),
)
"""Title and words of each card; their controls stand in the main window's `show_tour`."""
