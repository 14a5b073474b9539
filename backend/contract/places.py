"""Owns where Burnish keeps things outside a run folder: runs, caches, preferences."""

import os
from pathlib import Path

import platformdirs


def runs_folder() -> Path:
    """All runs; `BURNISH_RUNS` overrides the user's data folder."""
    override = os.environ.get("BURNISH_RUNS")
    return (
        Path(override).expanduser().absolute()
        if override
        else Path(platformdirs.user_data_dir("burnish", False)) / "runs"
    )


def cache_folder() -> Path:
    """Tables, tokenised features and converted weights, all of which can be made again; `BURNISH_CACHE` overrides."""
    override = os.environ.get("BURNISH_CACHE")
    return Path(override).expanduser().absolute() if override else Path(platformdirs.user_cache_dir("burnish", False))


def config_folder() -> Path:
    """The user's preferences; `BURNISH_CONFIG` overrides."""
    override = os.environ.get("BURNISH_CONFIG")
    return Path(override).expanduser().absolute() if override else Path(platformdirs.user_config_dir("burnish", False))


def own_presets_folder() -> Path:
    """The user's own presets."""
    return config_folder() / "presets"


def is_offline() -> bool:
    """Whether the hub library was told to stay offline."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}
