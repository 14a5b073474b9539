"""Which tokenizer to use, how to open it, and how it turns texts into tokens."""

import json
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

MAIN = "main"

Side = Literal["left", "right"]
Truncation = Literal["longest_first", "only_first", "only_second"]
Padding = Literal["", "longest", "max_length"]


class TokenOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """None means the tokenizer's own default."""

    special_tokens: bool = True
    """Add what the model expects around a text; of a chat the template does and this does nothing."""
    pre_split: bool = False
    """Words are what white space parts (`is_split_into_words`); offsets still point into the whole text."""
    max_length: int | None = None
    """Cut to that many tokens, special ones counted; None cuts nothing. The limit of padding `max_length` too."""
    truncation: Truncation = "longest_first"
    """Which of two texts is cut."""
    truncation_side: Side | None = None
    windows: bool = False
    """What does not fit goes into further windows, which share `stride` tokens with the one before."""
    stride: int = 0
    padding: Padding = ""
    """`longest` fills to the longest window or row, `max_length` to `max_length` (or the model's limit)."""
    padding_side: Side | None = None
    pad_to_multiple_of: int | None = None

    @property
    def plain(self) -> bool:
        """Whether there is no truncation, padding or pre-splitting."""
        return self.max_length is None and not self.padding and not self.pre_split and not self.windows


USUAL = TokenOptions()
"""As a tokenizer does by itself."""


class TokenizerQuestion(TokenOptions, frozen=True, kw_only=True, omit_defaults=True):
    """The common fields of every tokenizer query. `msgspec.to_builtins` makes its JSON."""

    tokenizer: str
    """Folder, file (tokenizer.json, .model, vocab.txt, vocab.json, merges.txt, .tiktoken), hub id, run name or folder."""
    options: dict[str, Any] = {}
    """`model.tokenizer_options`, given at construction: add_prefix_space, do_lower_case, added_tokens …; the tokenizer
    is opened anew for other values (and kept). What it takes is in `TokenizerDescription.options`."""


class TokenizerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder, file, hub id or run, and how to open it."""

    tokenizer: str
    revision: str = MAIN
    options: dict[str, Any] = {}
    """As in `model.tokenizer_options`."""


def format_name(tokenizer: str, revision: str = MAIN, options: Mapping[str, Any] | None = None) -> str:
    """The name itself if nothing else is set, otherwise a JSON object with a canonical text."""
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if not given and revision == MAIN:
        return tokenizer
    whole = {"tokenizer": tokenizer} | ({} if revision == MAIN else {"revision": revision})
    return json.dumps(whole | ({"options": given} if given else {}), sort_keys=True, ensure_ascii=False)


def parse_name(text: str) -> TokenizerName:
    """Parse what `format_name` wrote; any other text is a name."""
    if not text.startswith("{"):
        return TokenizerName(text)
    try:
        return msgspec.json.decode(text, type=TokenizerName)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):  # a name may begin like this too
        return TokenizerName(text)
