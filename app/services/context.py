"""The services and preferences of one window, which every page is given."""

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
    """The one bundle that panels share; they know each other only through the signals of the main window."""

    client: BackendClient
    library: RunLibrary
    jobs: Jobs
    preferences: Preferences
    library_watcher: LibraryWatcher

    @classmethod
    def create(cls, preferences: Preferences | None = None, parent: QObject | None = None) -> "AppContext":
        """The services of a new window; nothing is started before it is needed."""
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
        """End what belongs to the window; runs go on."""
        self.library_watcher.stop()
        self.jobs.close()
        self.client.close()
