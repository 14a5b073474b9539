"""What a spec needs of this computer's files, and the same spec as the other computer reads it."""

import glob
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path
from typing import Any

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.safe_files import check_inside, open_regular
from backend.contract.spec import RunSpec
from backend.data.data_files import pattern_files
from backend.remote.protocol import Report
from backend.remote.tree import tree_name

_OF_TRAINING = ("checkpoint-*", "*.pt", "*.pth", "training_args.bin", "events.out.tfevents.*")
"""What Trainer leaves in a model's folder, and no model needs."""


@dataclass(frozen=True)
class _Tree:
    """The files behind one path of a spec: relative name → file, and the path inside the tree that the spec will name."""

    files: dict[str, Path]
    path: str


@dataclass
class Upload:
    """The files of a spec by digest, the trees that they form, and the values of the spec that change with them."""

    files: dict[str, Path] = field(default_factory=dict)
    trees: dict[str, dict[str, str]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    """Dotted key → path relative to the folder of all trees, or a list of them."""

    def sizes(self) -> dict[str, int]:
        """Digest → bytes."""
        return {digest: path.stat().st_size for digest, path in self.files.items()}

    def values_there(self, folder: str) -> dict[str, Any]:
        """The values with the absolute paths of the other computer, whose trees are in `folder`."""

        def there(value: Any) -> Any:
            return [there(one) for one in value] if isinstance(value, list) else f"{folder}/{value}"

        return {key: there(value) for key, value in self.values.items()}


def prepare_upload(spec: RunSpec, report: Report) -> Upload:
    """Find and hash everything that a resolved spec names on this computer. Raises InputError."""
    paths, trees = _find_all(spec)
    digests = hash_files(
        {path for several in trees.values() for tree in several for path in tree.files.values()}, report
    )
    upload = Upload()
    for key, several in trees.items():
        sent = [_add(upload, tree, digests) for tree in several]
        upload.values[key] = sent if isinstance(paths[key], list) else sent[0]
    return upload


def path_keys(spec: RunSpec) -> list[str]:
    """The dotted keys by which a resolved spec names files of this computer."""
    return [key for key, value in _spec_paths(spec.model_dump()).items() if _is_local(key, value)]


def require_files(spec: RunSpec) -> None:
    """Raise InputError if something that the spec names is not on this computer."""
    _find_all(spec)


def _find_all(spec: RunSpec) -> tuple[dict[str, Any], dict[str, list[_Tree]]]:
    paths = {key: value for key, value in _spec_paths(spec.model_dump()).items() if _is_local(key, value)}
    has_pairs = spec.data.source == "parallel"
    return paths, {
        key: [_find(path, key, has_pairs=has_pairs) for path in _listed(value)] for key, value in paths.items()
    }


def _add(upload: Upload, tree: _Tree, digests: dict[Path, str]) -> str:
    """Add the files of a tree to what is sent; returns the path that the spec will name."""
    content = {name: digests[path] for name, path in tree.files.items()}
    upload.trees[tree_name(content)] = content
    upload.files.update({digests[path]: path for path in tree.files.values()})
    return f"{tree_name(content)}/{tree.path}"


def restore_local(text: str, before: Mapping[str, Any]) -> str:
    """The other computer's resolved spec, but with the data and the model of the spec `before`. Raises InputError.

    A stranger there could otherwise name any file of this computer, which would be sent with the next run.
    """
    try:
        there = spec_file.parse(text)
        model = {f"model.{name}": before["model"][name] for name in ("name_or_path", "tokenizer")}
        data = dict(before["data"])
        if "columns" in there["data"]:  # they are found there, and name no file
            data["columns"] = there["data"]["columns"]
        return spec_file.dump(spec_file.set_values(there, {**model, "data": data}))
    except (KeyError, TypeError, AttributeError):  # one of them is no spec
        raise InputError(
            "the other computer sent something unknown ({error}); update Burnish there", error="spec.yaml"
        ) from None


def _spec_paths(values: dict[str, Any]) -> dict[str, Any]:
    """Dotted key → value of everything by which a resolved spec names data and model. Raises InputError."""
    data = values["data"]
    source = registry.find("source", data["source"], "data.source")
    model = {f"model.{name}": values["model"][name] for name in ("name_or_path", "tokenizer")}
    return model | {f"data.{name}": data[name] for name in source.path_fields if name in data}


def _is_local(key: str, value: Any) -> bool:
    if key.startswith("model."):
        return bool(value) and Path(value).exists()  # else a name on the hub, which the other computer downloads itself
    return isinstance(value, str | list) and bool(value)


def _listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


def _find(text: str, key: str, *, has_pairs: bool) -> _Tree:
    path = Path(text)
    if has_pairs and key.startswith("data.") and (files := _pair_files(path)):
        return _Tree(files, path.name)
    if path.is_dir():
        # Under its own name, by which a run there calls its model.
        left_out = _OF_TRAINING if key.startswith("model.") else ()
        inside = [one for one in sorted(path.rglob("*")) if _is_sent(one, path, left_out)]
        if not inside:
            raise InputError("{key}: {path} contains no files", key, key=key, path=path)
        return _Tree({one.relative_to(path.parent).as_posix(): one for one in inside}, path.name)
    if path.exists():
        return _Tree({path.name: path}, path.name)
    if not glob.has_magic(text):
        raise InputError("{key}: {path} does not exist", key, key=key, path=path)
    base = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    files = {one.relative_to(base).as_posix(): one for one in pattern_files(text)}
    return _Tree(files, path.relative_to(base).as_posix())


def _pair_files(path: Path) -> dict[str, Path]:
    """The files of a pair that is given by its prefix or one of its files; none for a folder."""
    if path.is_dir():
        return {}
    prefix = Path(path.name.removesuffix(".gz")).stem if path.exists() else path.name
    return {one.name: one for one in path.parent.glob(f"{glob.escape(prefix)}.*") if one.is_file()}


def _is_sent(path: Path, folder: Path, left_out: tuple[str, ...]) -> bool:
    parts = path.relative_to(folder).parts
    if not path.is_file() or any(fnmatch(part, one) for part in parts for one in (".*", *left_out)):
        return False
    check_inside(path, folder)  # a stranger's folder could hold a link to the user's other files
    return True


def hash_files(paths: set[Path], report: Report) -> dict[Path, str]:
    """The digest of each file's content. Raises OSError, or InputError for what is not a regular file."""
    total, done, found = sum(path.stat().st_size for path in paths), 0, {}
    for path in sorted(paths):
        digest = hashlib.sha256()
        with open_regular(path) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                done += len(piece)
                report(done, total, "bytes")
        found[path] = digest.hexdigest()
    return found
