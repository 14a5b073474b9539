"""Owns the form of what was chosen elsewhere, an optimizer or an adapter; without settings it is not there."""

from collections.abc import Collection, Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core import json_schema
from app.widgets.card import label
from app.widgets.forms.schema_form import SchemaForm


class OptionsForm(QWidget):
    """`prefix` is where in the spec the settings stand, for example `adapter`."""

    changed = Signal(str, object)
    mistakes_changed = Signal()

    def __init__(self, prefix: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.prefix, self._chosen = prefix, ""
        self.form: SchemaForm | None = None
        self._title = label("", "faint", wrap=True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self._title)
        self.hide()

    def show_choice(self, name: str, settings: Mapping[str, Any] | None, values: Mapping[str, Any]) -> None:
        """The settings of what is chosen, with the values that a draft has for them."""
        wanted = name if settings else ""
        if wanted != self._chosen:
            self._chosen = wanted
            self._build(json_schema.without(json_schema.resolved(dict(settings or {})), {"type"}))
        if self.form is not None:
            self.form.show_values(values)
        self.setVisible(self.form is not None)

    def _build(self, settings: dict[str, Any]) -> None:
        before, self.form = self.form, None
        if before is not None:
            before.hide()
            self._column.removeWidget(before)
            before.deleteLater()
            if before.mistakes():
                self.mistakes_changed.emit()  # they are gone with it
        if not settings.get("properties"):
            return
        self._title.setText(str(settings.get("description") or ""))
        self.form = SchemaForm(settings, prefix=self.prefix)
        self.form.changed.connect(self.changed)
        self.form.mistakes_changed.connect(self.mistakes_changed)
        self._column.addWidget(self.form)

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Show the settings of these keys alone, and nothing where there is none; None shows all again."""
        if self.form is None:
            return
        self.form.show_matches(keys or (), alone=keys is not None)
        self.setVisible(keys is None or not set(keys).isdisjoint(self.form.keys()))

    def forms(self) -> list[SchemaForm]:
        """The form, if there is one."""
        return [] if self.form is None else [self.form]
