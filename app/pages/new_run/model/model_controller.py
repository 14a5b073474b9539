"""Controls the model section: the list to choose from, the download, and what the draft requires of a model."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.core import formatting
from app.core.draft.device_choice import selected_devices
from app.core.draft.draft import Draft
from app.core.i18n import tr
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.model.download import ModelDownload
from app.pages.new_run.model.model_chooser import ModelChooser
from app.pages.new_run.model.model_section import ModelSection
from app.services.context import AppContext
from backend.contract.catalog import Catalog, Device
from backend.contract.rpc.models import DownloadedModel
from backend.contract.rpc.plan import DeviceList


class ModelController(QObject):
    """Connects the section with the list and the download, which are created on first use."""

    def __init__(
        self, context: AppContext, draft: Draft, section: ModelSection, checks: DraftChecks, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._context, self._draft, self._section, self._checks = context, draft, section, checks
        self._catalog: Catalog | None = None
        self._devices: list[Device] = []
        self._window = parent
        self.download = ModelDownload(context.client, self)
        self.chooser: ModelChooser | None = None
        section.use_download(self.download)
        section.list_requested.connect(self.open)
        section.download_requested.connect(self._on_download_requested)
        checks.devices_found.connect(self._on_devices)
        checks.changed.connect(section.look_again)
        self.download.finished.connect(self._on_downloaded)

    def set_catalog(self, catalog: Catalog) -> None:
        """Set the catalog's tasks and engines."""
        self._catalog = catalog
        if self.chooser is not None:
            self.chooser.set_tasks(catalog.tasks)

    def unfinished(self) -> str:
        """What closing the window would stop, as a sentence."""
        return self.download.unfinished()

    def open(self, fitting: bool = False) -> None:
        """Show the list; `fitting` leaves out what does not fit the run."""
        if self.chooser is None:
            self.chooser = ModelChooser(self._context.client, self.download, self._filter, self._window)
            self.chooser.chosen.connect(self._section.choose)
            self.chooser.set_tasks(self._catalog.tasks if self._catalog else [])
        current = str(self._draft.get("model.name_or_path") or "")
        self.chooser.open_on(current, self._context.preferences.recent_models, self._subtitle(), fitting=fitting)

    def _filter(self) -> Mapping[str, Any]:
        return model_filter(self._draft, self._devices)

    def _subtitle(self) -> str:
        """The run that each model is judged for."""
        name, engine = self._draft.get("task.type"), self._draft.get("hardware.engine", "torch")
        tasks = {one.name: one.title for one in self._catalog.tasks} if self._catalog else {}
        engines = {one.name: one.title for one in self._catalog.engines} if self._catalog else {}
        any_task = tr("any task")
        run = tr("{name} with {engine}", name=tasks.get(str(name), any_task), engine=engines.get(engine, engine))
        free = free_mb(self._draft, self._devices)
        if not free:
            return tr("Compatibility is shown for {run}", run=run)
        return tr(
            "Compatibility is shown for {run} and {free} of free memory", run=run, free=formatting.megabytes(free)
        )

    def _on_devices(self, found: DeviceList) -> None:
        self._devices = found.devices

    def _on_download_requested(self) -> None:
        self.download.start(
            str(self._draft.get("model.name_or_path")), str(self._draft.get("model.revision") or "main")
        )

    def _on_downloaded(self, found: DownloadedModel) -> None:
        """Choose it if the user was waiting for it; another selection or choice is kept."""
        if self.chooser is not None and self.chooser.isVisible():
            marked = self.chooser.list.current()
            self.chooser.refresh()
            if marked is not None and marked.name == found.name:
                self._section.choose(found.name)
                self.chooser.accept()
        if self._draft.get("model.name_or_path") == found.name:
            self._checks.model_changed()


def model_filter(draft: Draft, devices: Sequence[Device]) -> dict[str, Any]:
    """The `needs` of a query about models."""
    return {
        "task": str(draft.get("task.type") or ""),
        "engine": str(draft.get("hardware.engine", "torch")),
        "optimizer": str(draft.get("training.optimizer", "adamw")),
        "partly": bool(draft.get("adapter") or draft.get("model.frozen")),
        "from_scratch": draft.get("model.initialise") == "from_config",
        "free_mb": free_mb(draft, devices),
    }


def free_mb(draft: Draft, devices: Sequence[Device]) -> float:
    """Free memory of the run's devices, at most their limit; 0 if none was queried yet."""
    free = min((one.free_mb for one in selected_devices(draft, devices)), default=0.0)
    limit = draft.get("hardware.memory_limit")
    return min(free, limit * 1000) if isinstance(limit, int | float) and free else free
