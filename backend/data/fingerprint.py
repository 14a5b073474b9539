"""Fingerprints of values and files, and the random generators seeded from them."""

import hashlib
import json
from pathlib import Path

import numpy as np

from backend.contract.safe_files import open_regular

_BLOCK = 1 << 20


def fingerprint(*parts: object) -> str:
    """32 hex digits that change with any of these plain JSON values. Raises TypeError for other values."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def file_fingerprint(path: Path) -> str:
    """32 hex digits that change with any byte of the file, whatever its name or modification time."""
    digest = hashlib.blake2b(digest_size=16)
    with open_regular(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def generator(*parts: object) -> np.random.Generator:
    """A generator seeded only by these plain JSON values."""
    return np.random.default_rng(int(fingerprint(*parts), 16))
