"""What tests of the Try side do with it: choose the task, and ask one row until it is answered."""

from app.pages.predictions.interactive.try_box import TryBox


def choose_task(box: TryBox, name: str) -> None:
    """As a person chooses it in the list."""
    box.form.task.setCurrentIndex(box.form.task.findData(name))
    box.form.task.activated.emit(box.form.task.currentIndex())


def ask(qtbot, box: TryBox, **row: str) -> None:
    """Fill in a row, ask, and wait for the answer in the list."""
    box.form.fill(row)
    count = len(box.kept)
    box.ask()
    qtbot.waitUntil(lambda: len(box.kept) > count)
