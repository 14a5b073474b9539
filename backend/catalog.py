"""The catalog of everything that can be chosen, cached on disk until Burnish or one of its libraries changes."""

import hashlib
import os
import sys
from pathlib import Path

import msgspec

from backend import registry
from backend.contract.catalog import Catalog, Device
from backend.contract.places import cache_folder
from backend.contract.resources import resource
from backend.contract.versions import installed_versions

PACKAGES = (
    "burnish", "torch", "transformers", "tokenizers", "datasets", "accelerate", "safetensors", "huggingface-hub",
    "pyarrow", "numpy", "pydantic", "PySide6-Essentials", "pyqtgraph", "jax", "flax", "optax", "orbax-checkpoint",
)  # fmt: skip
LISTED = ("contract", "metrics", "tasks", "data/sources", "engines", "adapters", "mirrors")
"""Folders of the backend whose files decide what the catalog says."""


def catalog(devices: list[Device] | None = None) -> Catalog:
    """The static catalog, with `devices` if requested; imports no framework.

    Building it imports every task and source, which takes half a second; reading the cached one is instant.
    """
    versions = installed_versions(PACKAGES)
    kept = cache_folder() / f"catalog-{_key(versions)}.json"
    found = _read(kept)
    if found is None:
        from backend import catalog_building  # loads every task and source

        found = catalog_building.build_catalog(versions)
        _keep(found, kept)
    return msgspec.structs.replace(found, devices=devices)


def _key(versions: dict[str, str]) -> str:
    backend = Path(__file__).parent
    files = [path for folder in LISTED for path in sorted((backend / folder).rglob("*.py"))]
    files += [Path(__file__), Path(registry.__file__), *sorted(resource("presets").glob("*.yaml"))]
    stats = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    return hashlib.sha256(repr((versions, sys.executable, stats, registry.installed_plugins())).encode()).hexdigest()[
        :24
    ]


def _read(path: Path) -> Catalog | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Catalog)
    except (OSError, msgspec.DecodeError):
        return None


def _keep(found: Catalog, path: Path) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("catalog-*.json"):
            old.unlink(missing_ok=True)
        beside.write_bytes(msgspec.json.encode(found))
        beside.replace(path)
    except OSError:
        return  # a cache that cannot be written costs half a second, no more
