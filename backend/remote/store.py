"""The files that an agent has received: kept by the digest of their content, and the trees that consist of them."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from backend.contract.errors import InputError
from backend.remote import protocol
from backend.remote.protocol import INCOMPLETE, PIECE
from backend.remote.tree import check_digest, check_tree

KEPT_SECONDS = 7 * 86400.0
"""How long a file that was half sent waits for the rest."""
SCRATCH = ".arriving-"
"""How the folders begin in which a run or a tree is put together."""
PIECES_TO_FLUSH = 16
"""Pieces of a copied file after which the disk is waited for: for all of a large file that could take minutes."""


def remove_old(paths: Iterable[Path]) -> None:
    """Delete those of these files and folders that nobody has changed for long."""
    for path in paths:
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


class FileStore:
    """The files and trees in an agent's folder."""

    def __init__(self, folder: Path, beat: Callable[[], None], beside: Callable[[Callable[[], None]], None]) -> None:
        """`beat` sends a sign of life if one is due; `beside` does so while it lets something slow be done."""
        self._files, self._trees = folder / "files", folder / "data"
        self._beat, self._beside = beat, beside

    def held(self, digest: str) -> int | None:
        """Bytes of an incomplete file; None if it is complete."""
        path = self._files / check_digest(digest)
        if path.exists():
            return None
        with suppress(FileNotFoundError):
            return path.with_suffix(INCOMPLETE).stat().st_size
        return 0

    def put(self, piece: protocol.PutPiece, content: bytes) -> None:
        """Store a piece. Only a refusal is answered, so that the sender need not wait after each piece."""
        path = self._files / check_digest(piece.digest)
        if path.exists():  # another connection was faster
            return
        part = path.with_suffix(INCOMPLETE)
        part.touch(0o600)
        with part.open("r+b") as file:
            file.seek(piece.offset)
            file.write(content)
            if piece.offset + len(content) < piece.total:
                return
            file.flush()
            self._beside(lambda: os.fsync(file.fileno()))  # of a large file this takes minutes
        found = hashlib.sha256()
        with part.open("rb") as file:
            while content := file.read(PIECE):
                found.update(content)
                self._beat()
        if found.hexdigest() != piece.digest:
            part.unlink()
            raise InputError("a file was damaged on its way, or changed while it was sent; try again")
        part.replace(path)

    def discard(self, files: list[str]) -> None:
        """Delete what is incomplete of these files, and those of which no tree consists."""
        for digest in files:
            path = self._files / check_digest(digest)
            path.with_suffix(INCOMPLETE).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                if path.stat().st_nlink == 1:
                    path.unlink()

    def prepare(self) -> None:
        """Make the folders, and delete what is incomplete there and nobody has come back for. Raises OSError."""
        for room in (self._files, self._trees):
            room.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove_old([*self._files.glob(f"*{INCOMPLETE}"), *self._trees.glob(f"{SCRATCH}*")])

    def build(self, tree: str, files: Mapping[str, str]) -> None:
        """The folder `tree` with these files, unless it is there."""
        folder = self._trees / check_tree(tree, files)
        if folder.exists():
            return
        with tempfile.TemporaryDirectory(dir=self._trees, prefix=SCRATCH) as scratch:
            made = Path(scratch) / "tree"
            for name, digest in files.items():
                path = made.joinpath(*name.split("/"))
                path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    path.hardlink_to(self._files / digest)
                except OSError:  # not every file system has hard links
                    self.copy(digest, path)
            made.rename(folder)

    def forget(self, digest: str) -> None:
        """Delete a file of which no tree consists."""
        (self._files / digest).unlink(missing_ok=True)

    def copy(self, digest: str, target: Path) -> None:
        """Copy a file to disk, piece by piece: the other side gives up on an agent that is silent for long."""
        with (self._files / digest).open("rb") as read, target.open("wb") as written:
            for number in count(1):
                content = read.read(PIECE)
                written.write(content)
                if not content or number % PIECES_TO_FLUSH == 0:
                    written.flush()
                    os.fsync(written.fileno())
                self._beat()
                if not content:
                    return
