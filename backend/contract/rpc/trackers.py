"""Questions about trackers: `trackers {}`, `save_tracker {name, settings}`, where settings of null forget it."""

from typing import Any

import msgspec


class TrackerList(msgspec.Struct, frozen=True):
    """The settings of every tracker that is set up, by name; which there could be is in the catalog."""

    trackers: dict[str, dict[str, Any]]
