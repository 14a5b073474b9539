"""Opens a tokenizer: from a folder, a file or a hub id, with its stored truncation and padding switched off."""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError, first_line, panics_as_errors
from backend.contract.messages import message
from backend.contract.places import is_offline
from backend.contract.safe_files import user_path
from backend.models.config import MAX_ROWS, config_mistake, read_checked
from backend.models.lean_transformers import leave_torch_out
from backend.models.model_files import RepeatedKeyError, check_links, parse_table, read_small, read_table_if_sound
from backend.models.remote_code import code_folder, find_remote_code
from backend.models.tokenizer_files import problem_of
from backend.tokenizers import AnyTokenizer, resolve, sentencepiece_file, single_files
from backend.tokenizers.options import apply, check, given_at_construction, switch_off_stored

FIELD = "model.tokenizer"
ELSEWHERE = message("set {field} to a folder or Hub ID that has one", field=FIELD)

BPE = {"vocab.json", "merges.txt"}
_HUB_FILES = ("*.json", "*.txt", "*.model", "*.spm", "*.tiktoken", "*.jinja", "*.py")
_JSON_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json")
_NOT_HUB_FILES = ("*.index.json", *(f"*/{pattern}" for pattern in _HUB_FILES if pattern != "*.py"))
_VOCABULARIES = (".model", ".spm", ".tiktoken")
_PICKLES = (".pkl", ".pickle", ".pt", ".bin")
_NOT_OPTIONS = {
    *("trust_remote_code", "code_revision", "revision", "subfolder", "cache_dir", "local_files_only", "force_download"),
    *("proxies", "token", "config", "auto_map", "name_or_path", "tokenizer_type", "mistral_format", "gguf_file"),
    *("tokenizer_file", "tokenizer_object", "vocab_file", "merges_file", "vocab", "merges"),
}
"""Where a tokenizer comes from and whether its code may run is decided beside the options, never by one of them."""


def open_tokenizer(name_or_path: str, revision: str = "main", options: dict[str, Any] | None = None) -> AnyTokenizer:
    """The tokenizer of a local folder, one of its files or a hub id, without its own truncation and padding.

    `options` are passed at construction, when most take effect, and checked against the class. Code that
    comes with it runs only if this user has approved it (`models.remote_code`). Raises InputError in one sentence.
    """
    wanted = options or {}
    _check_options(wanted)
    options = given_at_construction(wanted)
    path = user_path(name_or_path)
    if _is_file(path, name_or_path) and not single_files.belongs_to_folder(path):
        tokenizer = _from_file(path, options)
    else:
        there = path if path.is_dir() else path.parent if path.is_file() else None
        folder = there or _hub_folder(name_or_path, revision)
        try:
            tokenizer = _from_folder(folder, name_or_path, options)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise InputError(
                "{name_or_path} cannot be read ({why}); check its permissions, or {elsewhere}",
                FIELD,
                name_or_path=name_or_path,
                why=why,
                elsewhere=ELSEWHERE,
            ) from None
    _check_limit(tokenizer, name_or_path)
    check(tokenizer, wanted, name_or_path)
    apply(tokenizer, wanted)
    switch_off_stored(tokenizer)
    _switch_on_segments(tokenizer)
    return tokenizer


def open_named(name: str, revision: str = "main") -> AnyTokenizer:
    """The same, also for a run's name or path: opens what `naming` resolves the name to."""
    found = resolve.resolve_name(name, revision)
    return open_tokenizer(found.name_or_path, found.revision, found.options)


def opening_note(tokenizer: AnyTokenizer) -> str:
    """What was assumed on opening because the files do not say it, as a sentence; empty if nothing was."""
    return getattr(tokenizer, "_opening_note", "")


def ensure_pad_token(tokenizer: AnyTokenizer) -> int:
    """The padding id; if the tokenizer has none, that of the end of text, else 0.

    The tokenizer is unchanged: padding is identified by the attention mask, never by its id, so that a real end of text
    remains a target even if both share an id (GPT-2).
    """
    candidates = (tokenizer.pad_token_id, tokenizer.eos_token_id)
    return next((token for token in candidates if isinstance(token, int)), 0)


def fingerprint(tokenizer: AnyTokenizer) -> str:
    """A cache key that changes with anything that affects ids: vocabulary, normalisation, special tokens, options."""
    digest = _hash_vocabulary(tokenizer)
    for part in _identity(tokenizer):
        digest.update(b"\0" + part.encode())
    return digest.hexdigest()[:32]


def files_fingerprint(name_or_path: str) -> str:
    """Changes with any file that a folder's tokenizer is opened from, without opening it, which takes seconds.

    Empty if more than these files matters: for a hub id, a single file, or one whose code needs approval.
    """
    folder = user_path(name_or_path)
    if not folder.is_dir() or find_remote_code(folder) is not None:
        return ""
    names = [path.name for path in _files(folder) if any(path.match(pattern) for pattern in _HUB_FILES)]
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0".encode() + hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


# Opening


def _check_options(options: dict[str, Any]) -> None:
    if name := next((name for name in options if name in _NOT_OPTIONS), None):
        raise InputError(
            "model.tokenizer_options: {name} is not a tokenizer option; to use another tokenizer, set {field}",
            "model.tokenizer_options",
            name=repr(name),
            field=FIELD,
        )


def _from_file(path: Path, options: dict[str, Any]) -> AnyTokenizer:
    if path.suffix in _PICKLES:
        raise InputError(
            "{path}: pickled tokenizers are never opened; {elsewhere}", FIELD, path=path, elsewhere=ELSEWHERE
        )
    return _open(lambda: single_files.open_file(path, options), path.parent, str(path), options)


def _is_file(path: Path, name: str) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long for a path, or holds NUL
        raise InputError(
            "{name} is not a folder, file or Hub ID; check the name", FIELD, name=repr(name[:80])
        ) from None


def _from_folder(folder: Path, name: str, options: dict[str, Any]) -> AnyTokenizer:
    check_links(folder)
    _check_json(folder)
    if alone := _only_file(folder):
        return _from_file(alone, options)
    config = read_checked(folder)  # transformers reads the model's configuration first, whatever stands in it
    code = _code_folder(folder)
    ignored = _ignored_files(folder, name)

    def build() -> AnyTokenizer:
        with leave_torch_out(config) if code is None else nullcontext():  # its code may need torch
            from transformers import AutoTokenizer  # takes a second

            return AutoTokenizer.from_pretrained(
                str(code or folder), local_files_only=True, trust_remote_code=code is not None, **ignored, **options
            )

    tokenizer = _open(build, folder, name, options)
    tokenizer.name_or_path = str(folder)
    if not _has_vocabulary(folder, type(tokenizer).vocab_files_names.values()):
        raise _no_tokenizer(folder, name)  # transformers builds one of a handful of special tokens instead of failing
    names = {file.name for file in _files(folder)}
    if "merges.txt" in type(tokenizer).vocab_files_names.values() and _is_half(names):
        # transformers guesses the merges of a vocabulary without, and takes merges without a vocabulary for nothing
        raise _half(name, names)
    return tokenizer


def _ignored_files(folder: Path, name: str) -> dict[str, None]:
    """The keys of tokenizer_config.json that name a file, to pass as None so that the folder's own file is used.

    Some refer to a file on the computer that saved the tokenizer, and others could refer to any file on this one.
    """
    stored = read_table_if_sound(folder / "tokenizer_config.json")
    several = stored.get("fast_tokenizer_files") or []
    if not isinstance(several, list) or not all(
        isinstance(one, str) and not set("/\\\0") & set(one) for one in several
    ):
        raise InputError(
            "{name}: its tokenizer_config.json refers to files that are not in the folder; {elsewhere}",
            FIELD,
            name=name,
            elsewhere=ELSEWHERE,
        )
    return {key: None for key in stored if key.endswith("_file")}


def _only_file(folder: Path) -> Path | None:
    """The vocabulary of a folder without a configuration that says how to open it."""
    names = {file.name for file in _files(folder)}
    if names & {"config.json", "tokenizer_config.json", "tokenizer.json"}:
        return None
    found = [name for name in ("vocab.txt", "vocab.json", "merges.txt") if name in names]
    found += sorted(name for name in names if name.endswith(_VOCABULARIES))
    return folder / found[0] if found else None


def _is_half(names: set[str]) -> bool:
    whole = "tokenizer.json" in names or any(name.endswith(_VOCABULARIES) for name in names)
    return not whole and len(BPE & names) == 1


def _open(build: Callable[[], AnyTokenizer], folder: Path, name: str, options: dict[str, Any]) -> AnyTokenizer:
    try:
        with panics_as_errors():
            tokenizer = build()
        largest = max(tokenizer.get_vocab().values(), default=0)
    except InputError:
        raise
    except Exception as error:  # that is what the Rust parser raises; transformers and sentencepiece add their kinds
        raise config_mistake(folder, error) or _mistake(folder, name, error, options) from None
    if not 0 <= largest < MAX_ROWS:  # a model would get a row for every id up to it
        raise InputError(
            "{name}: its tokenizer has a token with the ID {largest:,}, but no model has more than "
            "{max_rows:,} rows; {elsewhere}",
            FIELD,
            name=name,
            largest=largest,
            max_rows=MAX_ROWS,
            elsewhere=ELSEWHERE,
        )
    return tokenizer


def _has_sentencepiece() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("sentencepiece", "google.protobuf"))


def _mistake(folder: Path, name: str, error: Exception, options: dict[str, Any]) -> InputError:
    if not _has_vocabulary(folder, ()):
        return _no_tokenizer(folder, name)
    if _is_half(names := {file.name for file in _files(folder)}):
        return _half(name, names)
    reason = first_line(error)[:200]
    if ("sentencepiece" in str(error) or "protobuf" in str(error)) and not _has_sentencepiece():
        return InputError(
            "{name}: its tokenizer requires sentencepiece; install it with: pip install sentencepiece protobuf",
            FIELD,
            name=name,
        )
    if isinstance(error, TypeError) and options:
        return InputError(
            "model.tokenizer_options: the tokenizer of {name} does not accept these options: {reason}",
            "model.tokenizer_options",
            name=name,
            reason=reason,
        )
    return InputError(
        "{name}: its tokenizer cannot be opened ({reason}); {elsewhere}",
        FIELD,
        name=name,
        reason=reason,
        elsewhere=ELSEWHERE,
    )


def _no_tokenizer(folder: Path, name: str) -> InputError:
    pickles = [file.name for file in _files(folder) if file.suffix in _PICKLES[:2]]
    if pickles:
        return InputError(
            "{name}: its tokenizer is only available as a pickle ({pickles}), which is never opened; {elsewhere}",
            FIELD,
            name=name,
            pickles=pickles[0],
            elsewhere=ELSEWHERE,
        )
    return InputError(
        "{name}: it has no tokenizer (no tokenizer.json and no vocabulary); {elsewhere}",
        FIELD,
        name=name,
        elsewhere=ELSEWHERE,
    )


_SOUND: set[tuple[bool, bytes]] = set()
"""Hashes of the files that were found sound: to parse a vocabulary takes ten times as long as to hash it."""


def _check_json(folder: Path) -> None:
    for path in {*(folder / file for file in _JSON_FILES), *folder.glob("tokenizer.*.json")}:
        if not path.is_file():
            continue
        is_whole = path.name.startswith("tokenizer.")
        content = read_small(path) or b""
        key = (is_whole, hashlib.sha256(content).digest())
        if key in _SOUND:
            continue
        try:
            stored = parse_table(content, path, unique=is_whole)
        except RepeatedKeyError:
            raise
        except InputError:  # whatever is no object is damaged
            stored = None
        if why := problem_of(stored, is_whole=is_whole):
            raise InputError(
                "{path}: this file is damaged ({why}); download it again, or {elsewhere}",
                FIELD,
                path=path,
                why=why,
                elsewhere=ELSEWHERE,
            )
        _SOUND.add(key)
    for path in (*folder.glob("*.model"), *folder.glob("*.spm")):
        sentencepiece_file.check(path)


def _check_limit(tokenizer: AnyTokenizer, name: str) -> None:
    limit: object = tokenizer.model_max_length
    if not isinstance(limit, int | float):
        raise InputError(
            "{name}: model_max_length in its tokenizer_config.json is {limit}, not a number; correct it there",
            FIELD,
            name=name,
            limit=repr(limit),
        )


def _code_folder(folder: Path) -> Path | None:
    """The copy of the folder from which its code runs. Raises InputError if the tokenizer needs unapproved code."""
    if code := code_folder(folder, model=False, tokenizer=True):
        return code
    of_model = find_remote_code(folder, tokenizer=False)  # its configuration may say which tokenizer it has
    return code_folder(folder) if of_model is not None and of_model.is_agreed else None


def _has_vocabulary(folder: Path, expected: Iterable[str]) -> bool:
    names = {"tokenizer.json", "vocab.txt", "vocab.json", *(name for name in expected if name)}
    if any(file.name in names or file.suffix in _VOCABULARIES for file in _files(folder)):
        return True
    # Byte and character tokenizers (ByT5, CANINE) need no vocabulary; their class says so by naming no file.
    return not list(expected) and bool(read_table_if_sound(folder / "tokenizer_config.json").get("tokenizer_class"))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def _hub_folder(name: str, revision: str) -> Path:
    """The cached copy of a hub repository's small files, downloaded if missing and the network may be used."""
    from huggingface_hub import errors, snapshot_download  # slow to import, and not needed for a local folder

    from backend.data.hub_answers import check_content, check_revision, install_limits
    from backend.models import hub_errors

    install_limits()
    check_revision(revision)

    try:
        folder = Path(
            snapshot_download(
                name,
                revision=revision,
                local_files_only=is_offline(),
                allow_patterns=list(_HUB_FILES),
                ignore_patterns=list(_NOT_HUB_FILES),
            )
        )
        check_content(folder, _HUB_FILES)
        return folder
    except InputError:
        raise
    except errors.HFValidationError:
        raise InputError(
            "{name}: there is no such folder, and this is not a Hub ID either; check the path", FIELD, name=name
        ) from None
    except (errors.RevisionNotFoundError, errors.RepositoryNotFoundError) as error:
        raise hub_errors.model_mistake(name, revision, error, FIELD) from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError):
        way_out = message("turn off offline mode") if is_offline() else message("check the network")
        raise InputError(
            "{name}: there is no such folder, it is not in the Hub cache and the Hub was not contacted; "
            "check the path, or {way_out}",
            FIELD,
            name=name,
            way_out=way_out,
        ) from None
    except (*hub_errors.ERRORS, *hub_errors.MALFORMED, AssertionError) as error:
        raise hub_errors.search_mistake(error) from None


# What a file has stored


def _switch_on_segments(tokenizer: AnyTokenizer) -> None:
    """Return the segments of these models, which transformers 5 drops although they were trained with them."""
    kinds = ("AlbertTokenizer", "BigBirdTokenizer", "FunnelTokenizer", "XLNetTokenizer")
    if type(tokenizer).__name__.startswith(kinds) and "token_type_ids" not in tokenizer.model_input_names:
        tokenizer.model_input_names = [*tokenizer.model_input_names, "token_type_ids"]
        # Saved with the model:
        tokenizer.init_kwargs["model_input_names"] = tokenizer.model_input_names


# Identity


_HASHED: dict[bytes, Any] = {}
"""Hashes by those of a backend as it is written: to put a vocabulary in order takes ten times as long as to write it."""


def _hash_vocabulary(tokenizer: AnyTokenizer) -> Any:
    """A hash of the class and its vocabulary, to be continued by `_identity`; what it is made of never changes, either."""
    digest = hashlib.sha256(type(tokenizer).__name__.encode())
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        parts = (
            json.dumps(tokenizer.get_vocab(), sort_keys=True),
            _content(getattr(tokenizer, "vocab_file", None)),
            json.dumps({name: repr(value) for name, value in tokenizer.init_kwargs.items() if _counts(name)}),
        )
        digest.update(b"".join(b"\0" + part.encode() for part in parts))
        return digest
    written = backend.to_str()
    key = digest.digest() + hashlib.sha256(written.encode()).digest()
    if key not in _HASHED:
        values = json.loads(written)
        values.update(truncation=None, padding=None)  # the options of the last call
        digest.update(b"\0" + json.dumps(values, sort_keys=True).encode())
        _HASHED[key] = digest
    return _HASHED[key].copy()


def _identity(tokenizer: AnyTokenizer) -> Iterator[str]:
    """What the IDs depend on beside it. The order of the rows is drawn from this text, so its form never changes."""
    yield json.dumps({name: str(token) for name, token in tokenizer.special_tokens_map.items()}, sort_keys=True)
    yield repr((tokenizer.padding_side, tokenizer.truncation_side, tokenizer.model_max_length))
    yield repr((tokenizer.model_input_names, tokenizer.split_special_tokens))
    if tokenizer.chat_template:  # chats become ids by it
        yield repr(tokenizer.chat_template)


def _content(path: str | None) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path and Path(path).is_file() else ""


def _counts(name: str) -> bool:
    return not name.endswith(("_file", "name_or_path")) and name not in ("is_local", "local_files_only")


def _half(name: str, names: set[str]) -> InputError:
    problem = single_files.half_message(next(iter(BPE - names)))
    return InputError("{name}: {problem}; or {elsewhere}", FIELD, name=name, problem=problem, elsewhere=ELSEWHERE)
