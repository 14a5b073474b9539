"""Owns one group of settings under a heading that folds: how many are changed, and the way back for all of them."""

from collections.abc import Collection, Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.pages.new_run.options_form import OptionsForm
from app.widgets.card import label, rule
from app.widgets.forms.schema_form import SchemaForm


class SettingsGroup(QWidget):
    """The form is made when it is first opened; `extra` stands below it."""

    changed = Signal(str, object)
    mistakes_changed = Signal()
    opened = Signal()
    reset_asked = Signal(list)
    """Keys whose defaults shall hold again."""

    def __init__(
        self, name: str, title: str, schema: Mapping[str, Any], extra: OptionsForm | None = None,
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.name, self._schema, self._extra = name, schema, extra
        self.keys = {f"{name}.{field}" for field in schema.get("properties", {})}
        self.form: SchemaForm | None = None
        self._values: Mapping[str, Any] = {}
        self._usual: Mapping[str, Any] = {}
        self._changed_keys: list[str] = []
        self.fold = QToolButton()
        self.fold.setText(title)
        self.fold.setCheckable(True)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        theme.role(self.fold, "fold")
        self.fold.toggled.connect(self.set_open)
        self.count = label("", "faint")
        self.reset = QPushButton(tr("Reset"))
        theme.role(self.reset, "small")
        self.reset.setAccessibleName(tr("Reset the settings of {title}", title=title))
        self.reset.clicked.connect(lambda: self.reset_asked.emit(self._changed_keys))
        self._place()
        self.apply_theme()
        self.show_changed([])

    def _place(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.fold)
        head.addStretch(1)
        head.addWidget(self.count)
        head.addWidget(self.reset)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addWidget(rule())
        self._column.addLayout(head)
        if self._extra is not None:
            self._column.addWidget(self._extra)

    def has(self, key: str) -> bool:
        """Whether a setting stands here, or in what stands below."""
        return key in self.keys or (self._extra is not None and key.startswith(f"{self._extra.prefix}."))

    def is_open(self) -> bool:
        """Whether the fields are shown."""
        return self.fold.isChecked()

    def set_open(self, wanted: bool) -> None:
        """Show the fields or fold them away."""
        self.fold.setChecked(wanted)
        if wanted and self.form is None:
            self._build()
        if self.form is not None:
            self.form.setVisible(wanted)
        self.apply_theme()
        self.opened.emit()

    def _build(self) -> None:
        self.form = SchemaForm(self._schema, prefix=self.name)
        self.form.set_usual(self._usual)
        self.form.show_values(self._values)
        self.form.changed.connect(self.changed)
        self.form.mistakes_changed.connect(self.mistakes_changed)
        self._column.insertWidget(2, self.form)

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show these values, now or when it is opened."""
        self._values = values
        if self.form is not None:
            self.form.show_values(values)

    def set_usual(self, values: Mapping[str, Any]) -> None:
        """Defaults that come before those of the schema."""
        self._usual = values
        if self.form is not None:
            self.form.set_usual(values)

    def show_changed(self, keys: Collection[str]) -> None:
        """These are not their defaults; those of other groups mean nothing here."""
        self._changed_keys = [key for key in keys if key in self.keys]
        number = len(self._changed_keys)
        self.count.setText(tr("{number} changed", number=number) if number else "")
        self.reset.setVisible(bool(number))

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Open with the fields of these keys alone; None shows the whole group again."""
        if keys is None:
            self.show()
            if self.form is not None:
                self.form.show_matches((), alone=False)
            return
        own = {key for key in keys if self.has(key)}
        if own:
            self.set_open(True)
        if self.form is not None:
            self.form.show_matches(own, alone=True)
        self.setVisible(bool(own))

    def apply_theme(self) -> None:
        """The fold's arrow in the present colour."""
        name = "chevron-down" if self.is_open() else "chevron-right"
        self.fold.setIcon(theme.icon(name, "muted", 14))
