"""Owns the model hub: the offline switch, and who is logged in."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit

from app.core.i18n import tr
from app.pages.settings.choice_rows import check_row
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.card import Card, label, rule
from app.widgets.icon_label import IconButton, IconLabel
from backend.contract.rpc.hub_account import HubAccount
from backend.contract.rpc.queries import Mistake

NOBODY = tr("Nobody is logged in. That is needed only for private models and those with terms to accept.")


class HubCard(Card):
    """The token goes to the helper once and is kept by the hub's own library; this page forgets it at once."""

    offline_changed = Signal(bool)
    message = Signal(str, str)

    def __init__(self, context: AppContext) -> None:
        super().__init__(tr("Model hub"))
        self._context = context
        self.offline = check_row(
            self,
            tr("Work offline"),
            tr("Nothing leaves this machine: neither this window nor a run that it starts may ask the network."),
            context.preferences.offline,
            self.offline_changed.emit,
        )
        self.add(rule())
        self.icon = IconLabel("info", "muted", 16)
        self.who = label("", wrap=True, selectable=True)
        self.logout_button = IconButton(tr("Log out"), "close")
        self.logout_button.clicked.connect(self._logout)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.icon)
        row.addWidget(self.who, 1)
        row.addWidget(self.logout_button)
        self.body.addLayout(row)
        self.token = QLineEdit(placeholderText=tr("Access token of the hub"))
        self.token.setToolTip(tr("Access token from huggingface.co/settings/tokens"))
        self.token.setAccessibleName(tr("Access token of the hub"))
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.token.returnPressed.connect(self.login)
        self.token.textChanged.connect(self._show_possible)
        self.login_button = IconButton(tr("Log in"), "check")
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
        """Who is logged in; asked of the hub where the network may be used."""
        self._context.client.ask("hub_account", {}, self.show_account, self._on_mistake)

    def show_account(self, account: HubAccount) -> None:
        """Show who is logged in, and what can be done about it."""
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
        self.token.setToolTip(tr("Switch Work offline off first") if offline else "")
        self.login_button.setEnabled(not offline and bool(self.token.text().strip()))

    def login(self) -> None:
        """Hand the token over and forget it."""
        token = self.token.text().strip()
        if not token:
            return
        self.token.clear()
        self.banner.show_message("info", tr("Asking the hub whose token this is…"))
        self._context.client.ask("hub_login", {"token": token}, self._on_logged_in, self._on_mistake)

    def _on_logged_in(self, account: HubAccount) -> None:
        self.banner.clear()
        self.show_account(account)
        self.message.emit("success", tr("Logged in as {name}.", name=account.name))

    def _logout(self) -> None:
        self.logout_button.setEnabled(False)
        self._context.client.ask("hub_logout", {}, self._on_logged_out, self._on_mistake)

    def _on_logged_out(self, account: HubAccount) -> None:
        self.logout_button.setEnabled(True)
        self.banner.clear()
        self.show_account(account)
        self.message.emit("success", tr("Logged out; the token is no longer kept on this machine."))

    def _on_mistake(self, mistake: Mistake) -> None:
        self.logout_button.setEnabled(True)
        self.banner.show_message("error", mistake.message[:1].upper() + mistake.message[1:] + ".")


def _sentence(account: HubAccount) -> str:
    if not account.has_token:
        return NOBODY
    if not account.name:
        return account.note[:1].upper() + account.note[1:]
    who = f"{account.name} ({account.full_name})" if account.full_name else account.name
    groups = ", ".join(account.organisations)
    if account.from_environment:
        return tr("Logged in as {who}, by the token in the variable HF_TOKEN.", who=who)
    return (
        tr("Logged in as {who}, member of {groups}.", who=who, groups=groups)
        if groups
        else tr("Logged in as {who}.", who=who)
    )
