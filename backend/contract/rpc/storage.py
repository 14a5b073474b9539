"""Answers about the disk space that Burnish uses: `storage` and `clear_cache`."""

import msgspec


class StorageItem(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of item in a folder; sizes are bytes on disk."""

    name: str
    title: str
    size: int
    note: str = ""
    """What taking it away costs, as a sentence."""


class StorageUse(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `storage {}`: what is in the runs folder, the cache folder and the hub library's cache."""

    runs: int
    """How many."""
    runs_size: int
    cache_size: int
    hub_folder: str
    hub_size: int
    free: int
    """On the disk of the cache folder."""
    parts: list[StorageItem]
    """The parts of the cache folder that `clear_cache {parts: [name, …]}` can remove."""


class ClearedCache(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `clear_cache`: bytes freed, and bytes kept because an active run may read them."""

    freed: int
    kept: int = 0
    kept_for: list[str] = []
    """Names of those runs."""
    failed: list[str] = []
    """What could not be taken away, a sentence each."""
