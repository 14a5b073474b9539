"""The model hub: the offline switch, who is signed in, and which models may run their own code."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.card import Card, label, rule
from app.widgets.icon_label import IconButton, IconLabel
from app.widgets.text.elided_label import ElidedLabel
from backend.contract import consents
from backend.contract.errors import InputError
from backend.contract.rpc.models import HubAccount
from backend.contract.rpc.protocol import ErrorReply

NO_CONSENTS = tr(
    "You have not approved any custom code. Burnish asks you once for each version of a model that needs it."
)
COMMIT_CHARACTERS = 12
"""Signs of a commit."""

INDENT = 26
"""Pixels from a check box to its words."""

NOBODY = tr("Not signed in. Only needed for private or gated models.")


class HubCard(Card):
    """The token goes to the helper once and is stored by the hub's own library; this page does not keep it."""

    offline_changed = Signal(bool)
    message = Signal(str, str)

    def __init__(self, context: AppContext) -> None:
        super().__init__(tr("Hugging Face Hub"))
        self._context = context
        self.offline = check_row(
            self,
            tr("Work offline"),
            tr("Burnish and the runs it starts do not use the network."),
            context.preferences.offline,
            self.offline_changed.emit,
        )
        self.add(rule())
        self.icon = IconLabel("info", "muted", 16)
        self.who = label("", wrap=True, selectable=True)
        self.logout_button = IconButton(tr("Sign out"), "close")
        self.logout_button.clicked.connect(self._logout)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.icon)
        row.addWidget(self.who, 1)
        row.addWidget(self.logout_button)
        self.body.addLayout(row)
        self.token = QLineEdit(placeholderText=tr("Hub access token"))
        self.token.setToolTip(tr("Access token from huggingface.co/settings/tokens"))
        self.token.setAccessibleName(tr("Hub access token"))
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.token.returnPressed.connect(self.login)
        self.token.textChanged.connect(self._show_possible)
        self.login_button = IconButton(tr("Sign in"), "check")
        self.login_button.clicked.connect(self.login)
        entry = QHBoxLayout()
        entry.setSpacing(8)
        entry.addWidget(self.token, 1)
        entry.addWidget(self.login_button)
        self.body.addLayout(entry)
        self.banner = Banner()
        self.add(self.banner)
        self.show_account(HubAccount())

    def ask_account(self) -> None:
        """Query who is logged in, from the hub if the network may be used."""
        self._context.client.ask("hub_account", {}, self.show_account, self._on_mistake)

    def show_account(self, account: HubAccount) -> None:
        """Show who is logged in, and the possible actions."""
        self._account = account
        self.icon.set_icon("check" if account.name else "info", "success" if account.name else "muted")
        self.who.setText(_sentence(account))
        self.logout_button.setVisible(account.has_token and not account.from_environment)
        for widget in (self.token, self.login_button):
            widget.setVisible(not account.has_token)
        self._show_possible()

    def _show_possible(self) -> None:
        offline = self._context.preferences.offline
        self.token.setEnabled(not offline)
        self.token.setToolTip(tr("Turn off “Work offline” first") if offline else "")
        self.login_button.setEnabled(not offline and bool(self.token.text().strip()))

    def login(self) -> None:
        """Pass the token on without keeping it."""
        token = self.token.text().strip()
        if not token:
            return
        self.token.clear()
        self.banner.show_message("info", tr("Signing in…"))
        self._context.client.ask("hub_login", {"token": token}, self._on_logged_in, self._on_mistake)

    def _on_logged_in(self, account: HubAccount) -> None:
        self.banner.clear()
        self.show_account(account)
        self.message.emit("success", tr("Signed in as {name}.", name=account.name))

    def _logout(self) -> None:
        self.logout_button.setEnabled(False)
        self._context.client.ask("hub_logout", {}, self._on_logged_out, self._on_mistake)

    def _on_logged_out(self, account: HubAccount) -> None:
        self.logout_button.setEnabled(True)
        self.banner.clear()
        self.show_account(account)
        self.message.emit("success", tr("Signed out. The token was removed from this computer."))

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.logout_button.setEnabled(True)
        self.banner.show_message("error", f"{mistake.message[:1].upper()}{mistake.message[1:]}.")


def _sentence(account: HubAccount) -> str:
    if not account.has_token:
        return NOBODY
    if not account.name:
        return account.note[:1].upper() + account.note[1:]
    who = f"{account.name} ({account.full_name})" if account.full_name else account.name
    groups = ", ".join(account.organisations)
    if account.from_environment:
        return tr("Signed in as {who} with the token in HF_TOKEN.", who=who)
    return (
        tr("Signed in as {who}, member of {groups}.", who=who, groups=groups)
        if groups
        else tr("Signed in as {who}.", who=who)
    )


def check_row(card: Card, title: str, reason: str, checked: bool, changed: Callable[[bool], object]) -> QCheckBox:
    """A check box in a card, with an explanation below it."""
    box = QCheckBox(title)
    box.setChecked(checked)
    box.setAccessibleDescription(reason)
    box.toggled.connect(changed)
    why = label(reason, "faint", wrap=True)
    why.setContentsMargins(INDENT, 0, 0, 0)
    holder = QVBoxLayout()
    holder.setSpacing(0)
    holder.addWidget(box)
    holder.addWidget(why)
    card.body.addLayout(holder)
    return box


class ConsentsCard(Card):
    """One line per repository and commit."""

    message = Signal(str, str)

    def __init__(self) -> None:
        super().__init__(tr("Custom model code"))
        self.lines = QVBoxLayout()
        self.lines.setSpacing(6)
        self.none = label(NO_CONSENTS, "faint", wrap=True)
        self.add(self.none)
        self.body.addLayout(self.lines)
        self.show_consents()

    def show_consents(self) -> None:
        """Read the consents again; another page may have added some."""
        while (item := self.lines.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        agreed = consents.read()
        for one in agreed:
            self.lines.addWidget(self._line(one.name, one.version))
        self.none.setVisible(not agreed)

    def _line(self, repository: str, commit: str) -> QWidget:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(ElidedLabel(repository, "strong", Qt.TextElideMode.ElideMiddle), 1)
        version = label(commit[:COMMIT_CHARACTERS], "mono")
        version.setToolTip(tr("Version {commit}", commit=commit))
        row.addWidget(version)
        withdraw = IconButton(tr("Revoke"), "close")
        withdraw.setAccessibleName(tr("Revoke approval for {repository}", repository=repository))
        withdraw.clicked.connect(lambda: self.withdraw(repository, commit))
        row.addWidget(withdraw)
        return line

    def withdraw(self, repository: str, commit: str) -> None:
        """Withdraw the consent; an active run continues."""
        try:
            consents.withdraw(repository, commit)
        except InputError as error:
            self.message.emit("error", translate_message(str(error)))
            return
        self.show_consents()
        self.message.emit(
            "success", tr("Burnish will ask before it runs the code of {repository} again.", repository=repository)
        )
