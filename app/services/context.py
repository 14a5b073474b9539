"""The services and preferences of one window, passed to every page."""

from dataclasses import dataclass

from PySide6.QtCore import QObject

from app.core import preferences as preferences_file
from app.core.preferences import Preferences
from app.core.runs.run_library import RunLibrary
from app.services.backend_client import BackendClient
from app.services.job import Jobs
from app.services.library_watcher import LibraryWatcher


@dataclass(frozen=True)
class AppContext:
    """The object that panels share; they only communicate through the main window's signals."""

    client: BackendClient
    library: RunLibrary
    jobs: Jobs
    preferences: Preferences
    library_watcher: LibraryWatcher

    @classmethod
    def create(cls, preferences: Preferences | None = None, parent: QObject | None = None) -> "AppContext":
        """Create a new window's services; nothing is started before it is needed."""
        preferences = preferences or preferences_file.load()
        library = RunLibrary(preferences.runs_path())
        return cls(
            client=BackendClient(preferences.environment, parent),
            library=library,
            jobs=Jobs(preferences.environment, parent),
            preferences=preferences,
            library_watcher=LibraryWatcher(library, parent),
        )

    def close(self) -> None:
        """End what belongs to the window; runs continue."""
        self.library_watcher.stop()
        self.jobs.close()
        self.client.close()
