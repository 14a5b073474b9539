"""Owns opening and saving the draft as a file: the dialogs, and what is said when it does not go."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core import formatting
from app.core.backend_sentences import told
from app.core.draft.draft import Draft
from app.core.draft.draft_file import PATTERNS, open_draft, save_draft
from app.core.i18n import tr
from backend.contract.catalog import Catalog
from backend.contract.errors import InputError


class Filing(QObject):
    """`page` is what the dialogs stand over."""

    opened = Signal(object)
    """A Draft that begins with a file."""
    message = Signal(str, str)

    def __init__(self, draft: Draft, page: QWidget) -> None:
        super().__init__(page)
        self._draft, self._page = draft, page
        self._folder = ""

    def ask_open(self, catalog: Catalog) -> None:
        """Let a person choose a spec."""
        path, _ = QFileDialog.getOpenFileName(self._page, tr("Open a spec"), self._folder, PATTERNS)
        if path:
            self.open(Path(path), catalog)

    def open(self, path: Path, catalog: Catalog) -> None:
        """Read a spec, saying what in it could not be used."""
        self._folder = str(path.parent)
        try:
            found = open_draft(path, catalog)
        except InputError as error:
            self.message.emit(
                "error",
                tr(
                    "{error}. Nothing was changed; mend the file or open another.",
                    error=formatting.sentence(told(str(error))),
                ),
            )
            return
        self.opened.emit(found.draft)
        if found.notes:
            self.message.emit("warning", " ".join(found.notes))
        else:
            self.message.emit("success", tr("Opened {name}.", name=path.name))

    def ask_save(self) -> None:
        """Let a person choose where; the file that the draft began with is offered first."""
        name = "".join(
            letter if letter.isalnum() or letter in "._-" else "-" for letter in str(self._draft.get("name"))
        )
        offered = self._draft.file or Path(self._folder or Path.home()) / f"{name.strip('-.') or 'run'}.yaml"
        path, _ = QFileDialog.getSaveFileName(self._page, tr("Save as a spec"), str(offered), PATTERNS)
        if path:
            self.save(Path(path if Path(path).suffix else f"{path}.yaml"))

    def save(self, path: Path) -> None:
        """Write the draft; the copied command names the file from now on."""
        self._folder = str(path.parent)
        try:
            save_draft(self._draft, path)
        except OSError as error:
            self.message.emit(
                "error",
                tr(
                    "{name} could not be saved: {strerror}. Choose another folder.",
                    name=path.name,
                    strerror=error.strerror,
                ),
            )
            return
        self.message.emit(
            "success", tr("Saved {name}. On a terminal it starts with: burnish train {name}", name=path.name)
        )
