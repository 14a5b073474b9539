"""Other computers on which runs can be started over ssh."""

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.services.backend_client import BackendClient
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.machines import MachineList, MachineState
from backend.contract.rpc.protocol import ErrorReply

EXPLANATION = tr(
    "Train on a server that you reach with ssh, and watch the run here. Burnish must be installed there. "
    "It uses your keys and your ssh configuration, and never asks for a password."
)


class MachinesCard(Card):
    """One line per machine, and a form for a new one."""

    message = Signal(str, str)
    changed = Signal()
    """The machines are no longer the same."""

    def __init__(self, client: BackendClient) -> None:
        super().__init__(tr("Other machines"))
        self._client = client
        self._machines: dict[str, dict[str, object]] = {}
        self.add(label(EXPLANATION, "faint", wrap=True))
        self.lines = QVBoxLayout()
        self.lines.setSpacing(6)
        self.body.addLayout(self.lines)
        self.banner = Banner()
        self.add(self.banner)
        self.name = QLineEdit(placeholderText=tr("lab"))
        self.address = QLineEdit(placeholderText=tr("user@host, or a Host of your ssh configuration"))
        self.folder = QLineEdit(placeholderText=tr("burnish (in the home folder)"))
        self.setup = QLineEdit(placeholderText=tr("source ~/venv/bin/activate"))
        self.setup.setToolTip(tr("Shell commands that make burnish available there"))
        form = QFormLayout()
        form.setHorizontalSpacing(12)
        for title, field in (
            (tr("Name"), self.name),
            (tr("Address"), self.address),
            (tr("Folder"), self.folder),
            (tr("Set up"), self.setup),
        ):
            field.setAccessibleName(title)
            field.textChanged.connect(self._show_possible)
            field.returnPressed.connect(self.save)
            form.addRow(title, field)
        self.body.addLayout(form)
        self.save_button = IconButton(tr("Add machine"), "plus", clicked=self.save)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.save_button)
        self.body.addLayout(row)
        self._show_possible()

    def ask(self) -> None:
        """Look which machines are described."""
        self._client.ask("machines", {}, self.show_machines, self._on_mistake)

    def show_machines(self, answer: MachineList) -> None:
        """Show a line for each."""
        self._machines = answer.machines
        while (item := self.lines.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for name in answer.machines:
            self.lines.addWidget(self._line(name))
        self._show_possible()

    def _line(self, name: str) -> QWidget:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(label(name, "strong"))
        row.addWidget(ElidedLabel(str(self._machines[name]["address"]), "muted"), 1)
        check = IconButton(tr("Check"), "refresh", clicked=partial(self.check, name))
        check.setAccessibleName(tr("Check {name}", name=name))
        row.addWidget(check)
        for icon, words, act in (
            ("settings", tr("Change {name}", name=name), self.edit),
            ("trash", tr("Remove {name}", name=name), self.remove),
        ):
            button = IconToolButton(icon, words)
            button.clicked.connect(partial(act, name))
            row.addWidget(button)
        return line

    def edit(self, name: str) -> None:
        """Put the machine's settings into the form."""
        self.name.setText(name)
        for key, field in (("address", self.address), ("folder", self.folder), ("setup", self.setup)):
            field.setText(str(self._machines[name][key]))
        self.address.setFocus()

    def save(self) -> None:
        """Add the machine of the form, or change the one with that name."""
        if not self.save_button.isEnabled():
            return
        name = self.name.text().strip()
        given = {"address": self.address, "folder": self.folder, "setup": self.setup}
        settings = {key: field.text().strip() for key, field in given.items() if field.text().strip()}
        kept = {key: value for key, value in self._machines.get(name, {}).items() if key not in given}
        self._client.ask(
            "save_machine", {"name": name, "settings": {**kept, **settings}}, partial(self._on_saved, name), self._on_mistake
        )  # fmt: skip

    def remove(self, name: str) -> None:
        """Forget a machine; its files stay there."""
        self._client.ask("remove_machine", {"name": name}, partial(self._on_removed, name), self._on_mistake)

    def check(self, name: str) -> None:
        """Connect, and show what is there."""
        self.banner.show_message("info", tr("Connecting to {name}…", name=name))
        self._client.ask("check_machine", {"name": name}, partial(self.show_state, name), self._on_mistake)

    def _on_saved(self, name: str, answer: MachineList) -> None:
        for field in (self.name, self.address, self.folder, self.setup):
            field.clear()
        self.show_machines(answer)
        self.changed.emit()
        self.check(name)

    def _on_removed(self, name: str, answer: MachineList) -> None:
        self.show_machines(answer)
        self.changed.emit()
        self.message.emit("success", tr("{name} is removed. Its files and runs stay there.", name=name))

    def show_state(self, name: str, found: MachineState) -> None:
        """Show what a machine that answers says of itself."""
        parts = [
            ", ".join(f"{package} {version}" for package, version in found.versions.items()),
            *found.devices,
            tr("{size} free in {folder}", size=formatting.megabytes(found.free_bytes / 1e6), folder=found.folder),
            found.note,
        ]
        self.banner.show_message(
            "success", tr("{name} answers: {parts}.", name=name, parts=" · ".join(filter(None, parts)))
        )

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.banner.show_message("error", formatting.sentence(mistake.message, mistake.field))

    def _show_possible(self) -> None:
        name = self.name.text().strip()
        self.save_button.setText(tr("Save machine") if name in self._machines else tr("Add machine"))
        self.save_button.setEnabled(bool(name and self.address.text().strip()))
