"""The query for one text and one tokenizer, and its answer: tokens as columns, never an object per token.

`tokenize` takes the fields of `TokenizeQuestion`. Its answer is `Tokens` with the columns inside; with more
than `MAX_IN_JSON` tokens it is `{"arrow": PATH}`: an Arrow file, which the reader deletes. Its columns are named
as in `TokenColumns`, and the metadata of its last record batch has under `answer` the JSON of `Tokens` with empty
columns.
"""

import msgspec

from backend.contract.tokens.options import TokenizerQuestion, TokenOptions

MAX_IN_JSON = 4_000
"""More tokens than these come as an Arrow file."""
LONG_TEXT = 1_000_000
"""A longer text is tokenised block by block, with progress (`unit` is `characters`, of a file `bytes`)."""


class Message(msgspec.Struct, frozen=True):
    """One turn of a chat; `role` is usually system, user or assistant."""

    role: str
    content: str


class TokenizeQuestion(TokenizerQuestion, frozen=True, kw_only=True, omit_defaults=True):
    """Arguments of `tokenize`: exactly one of `text`, `file` and `messages`."""

    text: str | None = None
    file: str | None = None
    """A UTF-8 text file, in constant memory whatever its size; without pair, windows, padding and words."""
    messages: list[Message] | None = None
    """A chat, written out by the chat template; then offsets point into `Tokens.sources[0]`, the written text."""
    chat_template: str | None = None
    """A Jinja template in place of the tokenizer's own."""
    generation_prompt: bool = False
    """Write out what comes before the assistant's next answer."""
    pair: str | None = None
    """The second text; an empty one is a text too."""


class TokenPiece(msgspec.Struct, frozen=True, array_like=True):
    """A piece that occurs among the tokens; `TokenColumns.piece` are indices into `Tokens.pieces`."""

    id: int
    piece: str
    """As in the vocabulary: `##ing`, `Ġthe`, `▁the`, `<0xE2>`."""
    special: bool = False
    """One of the tokenizer's special tokens, added by it or written in the text."""
    unknown: bool = False
    """Stands for what the vocabulary cannot write."""
    rank: int | None = None
    """Rank of the first BPE merge that produces this piece, from 0; None if no merge does."""
    log_probability: float | None = None
    """Natural logarithm, of Unigram."""
    bytes: str = ""
    """Hexadecimal, where the vocabulary is of bytes (byte-level) or the piece is one byte (`<0xE2>`); else empty."""


class TokenColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the tokens; lists of one length. Windows follow each other."""

    piece: list[int] = []
    """Place in `Tokens.pieces`."""
    sequence: list[int] = []
    """The text it is of: 0 the first, 1 the second, −1 none (added by the tokenizer, or padding)."""
    start: list[int] = []
    end: list[int] = []
    """Characters (code points) of `sources[sequence]`; equal where it is of no text. Tokens that share a character all
    span it, and where the tokenizer takes the space before a word into the piece, its offsets say whether it counts."""
    byte_start: list[int] = []
    byte_end: list[int] = []
    """UTF-8 bytes of `sources[sequence]`, exact to the byte where a token holds part of a character."""
    partial: list[int] = []
    """1 where it begins or ends within a character: its bytes are `source.encode()[byte_start:byte_end]`, the characters that
    they are part of `source[start:end]`."""
    word: list[int] = []
    """Index of the pre-tokenizer's word, per text from 0; −1 if it belongs to none, or the tokenizer does not say."""
    type: list[int] = []
    """`token_type_ids`."""
    mask: list[int] = []
    """`attention_mask`: 0 for padding."""
    window: list[int] = []
    """From 0."""


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """`decode(encode(text))` compared with the text (without special tokens that the tokenizer added)."""

    same: bool
    sequence: int = 0
    """The first text that did not come back."""
    place: int = 0
    """The first differing character of that text."""
    text_part: str = ""
    decoded_part: str = ""
    """Some characters of both from a little before the difference on."""
    part_place: int = 0
    """Where both parts begin in the text; the difference is at `place - part_place` in them."""
    skipped: bool = False
    """Not compared: the text was too long, or cut. `same` says nothing then."""


class MessageSpan(msgspec.Struct, frozen=True):
    """Where a message is in the text that the chat template produced; `start` to `end` are characters."""

    role: str
    start: int
    end: int


class TokenTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts; those of consecutive parts can be added."""

    tokens: int = 0
    """All, padding left out."""
    padding: int = 0
    text_tokens: int = 0
    """Those of a text, tokens that windows share counted once."""
    left_out: int = 0
    """Tokens of the text that truncation cut off."""
    windows: int = 1
    characters: int = 0
    bytes: int = 0
    words: int = 0
    """What white space parts."""
    unknown: int = 0
    """Like `partial` and `byte_fallback` counted in every window."""
    partial: int = 0
    """Tokens that hold only part of a character, single bytes of byte fallback among them."""
    byte_fallback: int = 0
    """Tokens that are one byte (`<0xE2>`), since the vocabulary has no piece for the character."""

    def __add__(self, other: "TokenTotals") -> "TokenTotals":
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return TokenTotals(**sums | {"windows": max(self.windows, other.windows)})


COUNTS = TokenTotals.__struct_fields__


class Tokens(TokenTotals, frozen=True, kw_only=True):
    """Answer of `tokenize`."""

    pieces: list[TokenPiece] = []
    columns: TokenColumns = TokenColumns()
    sources: list[str] = []
    """The texts that offsets point into: one, or two with a pair; the written chat. Lone surrogates in them are U+FFFD.
    Empty for `file`, whose UTF-8 bytes (after a byte order mark) `byte_start` and `byte_end` point into."""
    file: str = ""
    file_skip: int = 0
    """Bytes of a byte order mark before the text of `file`."""
    turns: list[MessageSpan] = []
    """The turns of a chat; empty if the template does not allow them to be told apart."""
    limit: int | None = None
    """What the model reads at most; None where it does not say."""
    round_trip: RoundTrip = RoundTrip(same=True, skipped=True)
    offsets_guessed: bool = False
    """The tokenizer gives no offsets; they were found by searching for each token's text."""
    stored_truncation: str = ""
    """What the tokenizer file has stored as truncation and padding (switched off here)."""
    notes: list[str] = []
    """Sentences worth reading, for example that lone surrogates were replaced."""


class TokenizerDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `describe_tokenizer {tokenizer, options}`: what a tokenizer says about itself."""

    tokenizer_class: str
    fast: bool
    """It has a backend of the tokenizers library: offsets are exact and `tokenizer_steps` answers."""
    model: str = ""
    """`WordPiece`, `BPE`, `Unigram`, `WordLevel`; empty where the tokenizer has no backend."""
    byte_level: bool = False
    byte_fallback: bool = False
    vocabulary: int = 0
    """Pieces, added ones among them."""
    limit: int | None = None
    stored_truncation: str = ""
    stored: TokenOptions = TokenOptions()
    """The same as options, by which it can be switched on again."""
    chat_template: str = ""
    """Jinja, by which chats are written out."""
    chat_template_is_plain: bool = False
    """The tokenizer has none of its own: this one takes its place, here and in training."""
    switches: dict[str, bool] = {}
    """Options of `model.tokenizer_options` that it takes and that are on or off: `do_lower_case` → True."""
    notes: list[str] = []
