"""Other computers on which runs can be started, over ssh or as jobs of a cluster."""

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.services.backend_client import BackendClient
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.machines import FINGERPRINT, MachineList, MachineState
from backend.contract.rpc.protocol import ErrorReply, Progress

EXPLANATION = tr(
    "Train on a server that you reach with ssh or on a cluster, and watch the run here. It uses your keys and your "
    "ssh configuration, and never asks for a password."
)
SCHEDULERS = {"slurm": "Slurm", "ray": "Ray"}
JOB_FIELDS = {
    "slurm": {
        "partition": (tr("Partition"), tr("the default of the cluster")),
        "account": (tr("Account"), tr("your default")),
        "time": (tr("Time limit"), tr("4:00:00, or 2-12 for days and hours")),
        "gpus": (tr("GPUs"), tr("2, or a100:2")),
    },
    "ray": {
        "dashboard": (tr("Dashboard"), "http://head:8265"),
        "cpus": (tr("CPUs per worker"), "1"),
    },
}
"""Scheduler → setting of its jobs → title and placeholder."""


def installing_words(progress: Progress) -> str:
    """`Downloading packages: 12 of 79`."""
    words = {
        "send": tr("Sending Burnish"),
        "environment": tr("Making an environment"),
        "packages": tr("Downloading packages"),
        "install": tr("Installing packages"),
    }.get(progress.part, progress.part)
    if not progress.total:
        return tr("{words}…", words=words)
    if progress.unit == "bytes":
        total = formatting.megabytes(progress.total / 1e6)
        return tr(
            "{words}: {done} of {total}", words=words, done=formatting.megabytes(progress.done / 1e6), total=total
        )
    return tr("{words}: {done} of {total}", words=words, done=f"{progress.done:.0f}", total=f"{progress.total:.0f}")


class MachinesCard(Card):
    """One line per machine, and a form for a new one."""

    message = Signal(str, str)
    changed = Signal()
    """The machines are no longer the same."""

    def __init__(self, client: BackendClient) -> None:
        super().__init__(tr("Other machines"))
        self._client = client
        self._machines: dict[str, dict[str, object]] = {}
        self._schedulers = dict(SCHEDULERS)
        self._checked = ""
        """The machine on which Burnish would be installed, or whose host key would be accepted."""
        self._fingerprint = ""
        self.add(label(EXPLANATION, "faint", wrap=True))
        self.lines = QVBoxLayout()
        self.lines.setSpacing(6)
        self.body.addLayout(self.lines)
        self.banner = Banner()
        self.install_button = IconButton("", "download", "quiet", clicked=self._on_install)
        self.install_button.hide()
        self.banner.buttons.addWidget(self.install_button)
        self.trust_button = IconButton(tr("Accept this host key"), "check", "quiet", clicked=self._on_trust)
        self.trust_button.hide()
        self.banner.buttons.addWidget(self.trust_button)
        self.add(self.banner)
        self.name = QLineEdit(placeholderText=tr("lab"))
        self.address = QLineEdit(placeholderText=tr("user@host, or a Host of your ssh configuration"))
        self.folder = QLineEdit(placeholderText=tr("burnish (in the home folder)"))
        self.setup = QLineEdit(placeholderText=tr("source ~/venv/bin/activate"))
        self.setup.setToolTip(tr("Shell commands that make burnish available there"))
        schedulers = [
            (tr("Start runs directly"), ""),
            (tr("Submit runs to Slurm"), "slurm"),
            (tr("Submit runs to Ray"), "ray"),
        ]
        self.scheduler = QuietComboBox(name=tr("Scheduler"), items=schedulers)
        titles = {key: title for fields in JOB_FIELDS.values() for key, (title, _) in fields.items()}
        self.job = {
            key: QLineEdit(placeholderText=hint) for fields in JOB_FIELDS.values() for key, (_, hint) in fields.items()
        }
        self.open_cluster = QCheckBox(tr("Allow a public address without a token or https"))
        self.script_lines = QPlainTextEdit(placeholderText="#SBATCH --mem=32G", tabChangesFocus=True)
        self.script_lines.setAccessibleName(tr("Extra lines"))
        self.script_lines.setToolTip(tr("More lines of the batch script: options of Slurm, or shell commands"))
        self.script_lines.setFixedHeight(3 * self.fontMetrics().lineSpacing() + 16)
        self.form = QFormLayout()
        self.form.setHorizontalSpacing(12)
        for title, field in (
            (tr("Name"), self.name),
            (tr("Address"), self.address),
            (tr("Folder"), self.folder),
            (tr("Set up"), self.setup),
            (tr("Scheduler"), self.scheduler),
            *((titles[key], field) for key, field in self.job.items()),
            (tr("Extra lines"), self.script_lines),
            (tr("Open cluster"), self.open_cluster),
        ):
            if isinstance(field, QLineEdit):
                field.setAccessibleName(title)
                field.textChanged.connect(self._show_possible)
                field.returnPressed.connect(self.save)
            self.form.addRow(title, field)
        self.scheduler.currentIndexChanged.connect(self._show_possible)
        self.body.addLayout(self.form)
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
        self._add_launchers(answer.launchers)
        while (item := self.lines.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for name in answer.machines:
            self.lines.addWidget(self._line(name))
        self._show_possible()

    def _add_launchers(self, launchers: dict[str, str]) -> None:
        """Offer the schedulers that installed packages add."""
        for key, title in launchers.items():
            self._schedulers[key] = title
            if self.scheduler.findData(key) < 0:
                self.scheduler.addItem(tr("Submit runs to {title}", title=title), key)

    def _line(self, name: str) -> QWidget:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(label(name, "strong"))
        address, scheduler = self._machines[name]["address"], self._machines[name]["scheduler"]
        place = self._machines[name].get("dashboard") or address or tr("this computer")
        parts = [str(place), self._schedulers.get(str(scheduler), str(scheduler))]
        row.addWidget(ElidedLabel(" · ".join(filter(None, parts)), "muted"), 1)
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
        for key, field in self._text_fields().items():
            field.setText(str(self._machines[name][key]))
        self.script_lines.setPlainText(str(self._machines[name]["script_lines"]))
        self.open_cluster.setChecked(bool(self._machines[name]["open_cluster"]))
        scheduler = str(self._machines[name]["scheduler"])
        if self.scheduler.findData(scheduler) < 0:  # its package is not installed here
            self._add_launchers({scheduler: scheduler})
        self.scheduler.setCurrentIndex(self.scheduler.findData(scheduler))
        self.address.setFocus()

    def _text_fields(self) -> dict[str, QLineEdit]:
        """Setting → its field, but for the name and those that have more than a line."""
        return {"address": self.address, "folder": self.folder, "setup": self.setup, **self.job}

    def save(self) -> None:
        """Add the machine of the form, or change the one with that name."""
        if not self.save_button.isEnabled():
            return
        name = self.name.text().strip()
        given: dict[str, str] = {key: field.text().strip() for key, field in self._text_fields().items()}
        given |= {"scheduler": self.scheduler.currentData(), "script_lines": self.script_lines.toPlainText().strip()}
        settings: dict[str, object] = {key: value for key, value in given.items() if value}
        given["open_cluster"] = ""
        if self.open_cluster.isChecked() and given["scheduler"] == "ray":
            settings["open_cluster"] = True
        kept = {key: value for key, value in self._machines.get(name, {}).items() if key not in given}
        self._client.ask(
            "save_machine", {"name": name, "settings": {**kept, **settings}}, partial(self._on_saved, name), self._on_mistake
        )  # fmt: skip

    def remove(self, name: str) -> None:
        """Forget a machine; its files stay there."""
        self._client.ask("remove_machine", {"name": name}, partial(self._on_removed, name), self._on_mistake)

    def check(self, name: str) -> None:
        """Connect, and show what is there."""
        self._show_message("info", tr("Connecting to {name}…", name=name))
        self._client.ask(
            "check_machine", {"name": name}, partial(self.show_state, name), partial(self._on_failed_check, name)
        )

    def _on_failed_check(self, name: str, mistake: ErrorReply) -> None:
        self._on_mistake(mistake)
        self._checked = name
        if key := FINGERPRINT.search(mistake.message):
            self._fingerprint = key[0]
            self.trust_button.show()
            return
        self.install_button.setText(tr("Install Burnish on {name}", name=name))
        self.install_button.setToolTip(tr("Copy this version there, and download the packages that it needs"))
        self.install_button.show()

    def _on_trust(self) -> None:
        name = self._checked
        self._show_message("info", tr("Connecting to {name}…", name=name))
        self._client.ask(
            "trust_machine",
            {"name": name, "fingerprint": self._fingerprint},
            partial(self.show_state, name),
            partial(self._on_failed_check, name),
        )

    def _on_install(self) -> None:
        name = self._checked
        self._show_message("info", tr("Connecting to {name}…", name=name))
        self._client.ask(
            "install_machine",
            {"name": name},
            partial(self._on_installed, name),
            partial(self._on_failed_check, name),
            lambda progress: self._show_message("info", installing_words(progress)),
        )

    def _on_installed(self, name: str, found: MachineState) -> None:
        self.ask()
        self.show_state(name, found)

    def _show_message(self, kind: str, words: str) -> None:
        for button in (self.install_button, self.trust_button):
            button.hide()
        self.banner.show_message(kind, words)

    def _on_saved(self, name: str, answer: MachineList) -> None:
        for field in (self.name, *self._text_fields().values(), self.script_lines):
            field.clear()
        self.scheduler.setCurrentIndex(0)
        self.open_cluster.setChecked(False)
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
            *(tr("partition {partition}", partition=partition) for partition in found.partitions),
            tr("{size} free in {folder}", size=formatting.megabytes(found.free_bytes / 1e6), folder=found.folder),
            found.note,
        ]
        self._show_message("success", tr("{name} answers: {parts}.", name=name, parts=" · ".join(filter(None, parts))))

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._show_message("error", formatting.sentence(mistake.message, mistake.field))

    def _show_possible(self) -> None:
        name = self.name.text().strip()
        self.save_button.setText(tr("Save machine") if name in self._machines else tr("Add machine"))
        scheduler = self.scheduler.currentData()
        for each, fields in JOB_FIELDS.items():
            for key in fields:
                self.form.setRowVisible(self.job[key], scheduler == each)
        self.form.setRowVisible(self.script_lines, scheduler not in ("", "ray"))
        self.form.setRowVisible(self.open_cluster, scheduler == "ray")
        place = self.job["dashboard"] if scheduler == "ray" else self.address
        self.save_button.setEnabled(bool(name and (scheduler not in ("", "ray") or place.text().strip())))
