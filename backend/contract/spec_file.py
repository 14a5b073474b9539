"""Reads and writes a spec as YAML 1.2 text, and applies dotted `--set key=value` changes."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, SafeConstructor
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import MAX_SPEC, MB, read_regular, read_unlinked
from backend.contract.safe_text import join_surrogates
from backend.contract.spec_include import KEY as INCLUDE
from backend.contract.spec_include import read_with_includes

MAX_NODES = 50_000
"""Keys and values, including those that aliases repeat: nine lines of aliases can expand to a billion."""
MAX_LEVELS = 100
"""How deep mappings and lists may be nested. The reader calls itself for each level."""
LONGEST_NUMBER = 40
"""Characters. Sums with whole numbers of 300 digits and more end in an error, and no setting has a tenth of that."""
LONGEST_KEPT = 20_000
"""Characters of a text whose values are kept, should it be parsed again."""
_TAGS = {
    f"tag:yaml.org,2002:{kind}"
    for kind in ["map", "seq", "str", "null", "bool", "int", "float", "merge", "value", "timestamp"]
}
"""YAML 1.2's core schema, merge keys, and the dates of YAML 1.1, which stay text."""
_UNFIT = (ValueError, LookupError, TypeError, OverflowError, AttributeError)
"""How the library says that a value does not go with its tag, such as `!!int many`, or an escape with no character."""


class _TooMuch(MarkedYAMLError):
    """The text would need more time or memory than a spec should."""


class _Composer(Composer):
    """Counts the nodes that it composes, so that the constructor never exceeds the limits."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False
        self._level = self._count = 0
        self._sizes: dict[int, tuple[int, int]] = {}  # of each finished node: nodes and levels, aliases resolved

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The next node. Raises _TooMuch if it exceeds a limit."""
        mark = self.parser.peek_event().start_mark
        is_alias = self.parser.check_event(AliasEvent)
        self._level += 1
        self._count += 1
        _refuse_beyond(self._count, self._level, mark)
        node = super().compose_node(parent, index)
        self._level -= 1
        if is_alias and id(node) not in self._sizes:
            raise _TooMuch(problem=message("an alias refers to the value that contains it"), problem_mark=mark)
        if not is_alias:
            self._sizes[id(node)] = self._size_of(node, mark)
        _refuse_beyond(*self._sizes[id(node)], mark)
        return node

    def _size_of(self, node: Any, mark: Any) -> tuple[int, int]:
        if node.tag not in _TAGS:
            raise MarkedYAMLError(problem=message("the tag {tag} is not allowed in settings", tag=repr(node.tag.removeprefix('tag:yaml.org,2002:'))), problem_mark=mark)  # fmt: skip
        if isinstance(node, ScalarNode):
            return 1, 1
        inner = [part for pair in node.value for part in pair] if isinstance(node, MappingNode) else node.value
        if isinstance(node, MappingNode) and not all(isinstance(key, ScalarNode) for key, _ in node.value):
            raise MarkedYAMLError(problem=message("a key is a single word, not a list or a mapping"), problem_mark=mark)
        sizes = [self._sizes[id(part)] for part in inner]
        return 1 + sum(count for count, _ in sizes), 1 + max((levels for _, levels in sizes), default=0)


def _refuse_beyond(count: int, levels: int, mark: Any) -> None:
    if count > MAX_NODES:
        raise _TooMuch(problem=message("it has more than {max_nodes:,} keys and values; use a shorter one", max_nodes=MAX_NODES), problem_mark=mark)  # fmt: skip
    if levels > MAX_LEVELS:
        raise _TooMuch(problem=message("it is nested more than {max_levels} levels deep; use a flatter one", max_levels=MAX_LEVELS), problem_mark=mark)  # fmt: skip


class _Constructor(SafeConstructor):
    """The values of YAML 1.2's core schema, which has no dates: `2026-11-21` is text."""

    def construct_scalar(self, node: Any) -> Any:
        """The text of a scalar, with surrogate pairs as JSON writes them joined into one character."""
        text = super().construct_scalar(node)
        if node.tag.endswith((":int", ":float")) and len(text) > LONGEST_NUMBER:
            raise _TooMuch(
                problem=message("a number of {text:,} characters is too long", text=len(text)),
                problem_mark=node.start_mark,
            )
        try:
            return join_surrogates(text)
        except ValueError as error:
            raise _TooMuch(problem=str(error), problem_mark=node.start_mark) from None


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer, yaml.Constructor = _Composer, _Constructor
    return yaml


@lru_cache(maxsize=64)
def _load_once(text: str) -> Any:
    """The values of a text, kept: the reader takes 0.2 ms for each, and a run or plan reads the same specs and presets again."""
    return _yaml().load(text)


def parse(text: str, name: str = "spec") -> Any:
    """The plain values of YAML 1.2 text (`3e-5` is a number, `yes` is text, JSON is valid). Raises InputError."""
    if len(text) > MAX_SPEC:
        raise InputError(
            "{name} is too large ({text:,.0f} MB; at most {max_spec:,.0f} MB)",
            name=name,
            text=len(text) / MB,
            max_spec=MAX_SPEC / MB,
        )
    try:
        return deepcopy(_load_once(text)) if len(text) <= LONGEST_KEPT else _yaml().load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = message(" line {line}", line=mark.line + 1) if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        if isinstance(error, _TooMuch):
            raise InputError("{name}{place}: {problem}", name=name, place=place, problem=problem) from None
        raise InputError(
            "{name}{place} is not valid YAML: {problem}", name=name, place=place, problem=problem
        ) from None
    except _UNFIT as error:
        raise InputError(
            "{name} is not valid YAML: a value does not match its tag or escape ({error})", name=name, error=error
        ) from None


def lines(text: str) -> dict[str, int]:
    """Dotted key → its line, from 1; empty if the text is not a YAML mapping."""
    try:
        node = _yaml().compose(text)
    except (YAMLError, *_UNFIT):
        return {}
    return dict(_lines(node, ""))


def _lines(node: Any, prefix: str) -> Iterator[tuple[str, int]]:
    if not isinstance(node, MappingNode):
        return
    for key, value in node.value:
        yield f"{prefix}{key.value}", key.start_mark.line + 1
        yield from _lines(value, f"{prefix}{key.value}.")


def read(path: Path) -> dict[str, Any]:
    """The mapping in a spec file with includes. Raises InputError if one is missing, unreadable or not a mapping."""
    return read_with_includes(path, lambda file: _mapping(read_text(file), file))


def read_run(path: Path) -> dict[str, Any]:
    """The mapping in a run folder's spec file, which may be untrusted: `spec.yaml`, or one kept beside it.

    These files are written whole, so an include or a link could only be an attempt to read the user's other files.
    Raises InputError.
    """
    values = _mapping(_text(path, read_unlinked), path)
    if INCLUDE in values:
        raise InputError(
            "{path} includes another file, which a run's spec must not do; remove {include} from it, "
            "or use another run",
            INCLUDE,
            path=path,
            include=INCLUDE,
        )
    return values


def read_text(path: Path) -> str:
    """The text of a spec file. Raises InputError if it is missing, unreadable or too large."""
    return _text(path, read_regular)


def _text(path: Path, read: Callable[[Path, int], bytes]) -> str:
    try:
        if path.is_dir():
            raise InputError("{path} is a folder; choose a spec file", path=path)
        return read(path, MAX_SPEC).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("{path}: there is no such spec file", path=path) from None
    except UnicodeDecodeError:
        raise InputError("{path}: this spec file is not UTF-8; save it as UTF-8", path=path) from None
    except OSError as error:
        raise InputError(
            "{path}: this spec file cannot be read: {strerror}", path=path, strerror=error.strerror or error
        ) from None


def _mapping(text: str, path: Path) -> dict[str, Any]:
    values = parse(text, str(path))
    if not isinstance(values, dict):
        raise InputError("{path}: a spec is a mapping of sections such as task, model and data", path=path)
    return values


def dump(values: dict[str, Any]) -> str:
    """Plain values as YAML 1.2 text, in the given order."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = 4096
    stream = StringIO()
    yaml.dump(values, stream)
    return stream.getvalue()


def apply_changes(values: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    """A copy of `values` with every `dotted.key=VALUE` applied; VALUE is YAML 1.2. Raises InputError."""
    parsed: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key.strip():
            raise InputError(
                "--set {change}: write it as KEY=VALUE, for example training.learning_rate=3e-5", change=repr(change)
            )
        parsed[key.strip()] = parse(text, message("--set {key}", key=key))
    return set_values(values, parsed)


def set_values(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `values` with every value put at its dotted key. Raises InputError."""
    result = _copy(values)
    for key, value in changes.items():
        _set(result, key.split("."), value, key)
    return result


def _set(values: dict[str, Any], names: list[str], value: Any, key: str) -> None:
    for name in names[:-1]:
        inner = values.get(name)
        if inner is None:
            inner = values[name] = {}
        if not isinstance(inner, dict):
            raise InputError("{key}: {name} is a single value and has no settings of its own", key, key=key, name=name)
        values = inner
    values[names[-1]] = value


def _copy(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in values.items()}
