"""Files that go to another computer: a tree is a folder's relative names and the digests of the files' contents.

A tree's own name is a digest of both, so that the same data is the same folder there, and is never sent twice.
"""

import hashlib
import json
import re
from collections.abc import Mapping

from backend.contract.errors import InputError
from backend.contract.safe_files import is_file_name

_DIGEST = re.compile(r"[0-9a-f]{64}")


def tree_name(files: Mapping[str, str]) -> str:
    """The name of the folder that holds these files."""
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()[:32]


def check_digest(digest: str) -> str:
    """The digest. Raises InputError if it is not one, but perhaps a path."""
    if not _DIGEST.fullmatch(digest):
        raise InputError("{digest} is not a SHA-256 digest", digest=repr(digest))
    return digest


def check_files(files: Mapping[str, str]) -> None:
    """Raises InputError if one of the files would lie outside the folder, or has no digest."""
    for path, digest in files.items():
        check_digest(digest)
        if not all(map(is_file_name, path.split("/"))):
            raise InputError("{path} is not a name inside a folder", path=repr(path))


def check_tree(name: str, files: Mapping[str, str]) -> str:
    """The tree's name. Raises InputError if it is not that of these files, or if one would lie outside the folder."""
    check_files(files)
    if name != tree_name(files):
        raise InputError("a folder of data has another name than its content says; update Burnish")
    return name
