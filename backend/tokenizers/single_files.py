"""Opens a tokenizer from one file without a folder's configuration: vocabularies, merges, SentencePiece, tiktoken."""

import json
import os
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import MAX_VOCABULARY, open_regular
from backend.models.lean_transformers import leave_torch_out
from backend.models.model_files import check_link
from backend.models.tokenizer_files import problem_of
from backend.tokenizers import AnyTokenizer, sentencepiece_file, tiktoken_file
from backend.tokenizers.vocabulary.pieces import ALPHABET

FIELD = "model.tokenizer"
CONFIGURATION = "tokenizer_config.json"
ENDINGS = (".json", ".txt", ".model", ".spm", ".tiktoken")
_KNOWN = message(
    "a tokenizer.json, a .model, a vocab.txt, a vocab.json with a merges.txt in the same folder, or a tiktoken file"
)
_ROLES = {
    "pad_token": ("[PAD]", "<pad>", "<|pad|>"),
    "unk_token": ("[UNK]", "<unk>"),
    "cls_token": ("[CLS]",),
    "sep_token": ("[SEP]",),
    "mask_token": ("[MASK]", "<mask>"),
    "bos_token": ("<s>", "<bos>", "<|begin_of_text|>"),
    "eos_token": ("</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
}
"""What a piece of that name is for, in every tokenizer that we know."""


def belongs_to_folder(path: Path) -> bool:
    """Whether the file is part of a folder that says how to open it."""
    return path.suffix in ENDINGS and (path.parent / CONFIGURATION).is_file()


def open_file(path: Path, options: dict[str, Any]) -> AnyTokenizer:
    """A tokenizer from one file. Raises InputError in one sentence; other exceptions are the libraries' own."""
    with open_regular(path) as file:  # the libraries open it by its name
        size = os.fstat(file.fileno()).st_size
    if not 0 < size < MAX_VOCABULARY:
        raise _mistake(
            path,
            message("it is empty; download it again")
            if not size
            else message("it is too large for a tokenizer; choose {known}", known=_KNOWN),
        )
    built, note = _build(path, options)
    if not built.get_vocab_size():
        raise _mistake(path, message("this tokenizer is damaged (it has no pieces); download it again"))
    with leave_torch_out({}):
        from transformers import PreTrainedTokenizerFast  # takes a second

    roles = {role: name for role, name in _roles(built).items() if role not in options}
    rest = {name: value for name, value in options.items() if name not in ("do_lower_case", "add_prefix_space")}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=built, **roles, **rest)
    tokenizer.name_or_path = str(path)
    tokenizer._opening_note = note
    return tokenizer


def _build(path: Path, options: dict[str, Any]) -> tuple[Tokenizer, str]:
    if path.name in ("vocab.json", "merges.txt"):
        check_link(path.with_name("merges.txt" if path.name == "vocab.json" else "vocab.json"), path.parent)
        return _of_merges(path.parent), ""
    if path.suffix == ".json":
        return _read_tokenizer_json(path), ""
    if tiktoken_file.is_one(path):
        return tiktoken_file.tokenizer(path)
    if path.suffix == ".txt":
        return _word_piece(path, options)
    if path.suffix in (".model", ".spm"):
        return sentencepiece_file.tokenizer(path), sentencepiece_file.NOTE
    raise _mistake(path, message("this file is not a tokenizer; choose its folder, or {known}", known=_KNOWN))


def _read_tokenizer_json(path: Path) -> Tokenizer:
    try:
        values = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        raise _mistake(path, message("this file is damaged (it is not JSON); download it again")) from None
    if not isinstance(values, dict) or not isinstance(values.get("model"), dict):
        raise _mistake(path, message("this JSON file is not a tokenizer; choose its folder, or {known}", known=_KNOWN))
    if problem := problem_of(values):
        raise _mistake(path, message("this file is damaged ({problem}); download it again", problem=problem))
    return Tokenizer.from_str(json.dumps(values))


def _of_merges(folder: Path) -> Tokenizer:
    """BPE from vocab.json and merges.txt; how words are split is inferred from the pieces."""
    missing = next((name for name in ("vocab.json", "merges.txt") if not (folder / name).is_file()), None)
    if missing:
        raise _mistake(folder, half_message(missing))
    vocabulary, merges = models.BPE.read_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    unknown = next((name for name in _ROLES["unk_token"] if name in vocabulary), None)
    suffix = "</w>" if any(piece.endswith("</w>") for piece in vocabulary) else ""
    rest = {"unk_token": unknown, "end_of_word_suffix": suffix}
    given: dict[str, Any] = {name: value for name, value in rest.items() if value}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, **given))
    if suffix:
        made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.BPEDecoder(suffix)
    elif sum(sign in vocabulary for sign in ALPHABET) > 200:
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder, made.post_processor = decoders.ByteLevel(), processors.ByteLevel(trim_offsets=False)
    elif any(piece.startswith("▁") for piece in vocabulary):
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    else:
        made.pre_tokenizer = pre_tokenizers.Whitespace()
    _add_specials(made, vocabulary)
    return made


def _word_piece(path: Path, options: dict[str, Any]) -> tuple[Tokenizer, str]:
    """WordPiece from a vocab.txt, with BERT's steps."""
    try:
        pieces = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise _mistake(
            path, message("this text is not UTF-8, so it is not a vocabulary; choose {known}", known=_KNOWN)
        ) from None
    pieces = pieces[:-1] if pieces[-1] == "" else pieces
    pieces = [piece.removesuffix("\r") for piece in pieces]
    if "[UNK]" not in pieces:
        raise _mistake(
            path,
            message("this text is not a WordPiece vocabulary (it has no line [UNK]); choose {known}", known=_KNOWN),
        )
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    cased = any("A" <= sign <= "Z" for piece in pieces if not piece.startswith("[") for sign in piece)
    lower = bool(options.get("do_lower_case", not cased))
    made = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    _add_specials(made, vocabulary)
    if {"[CLS]", "[SEP]"} <= vocabulary.keys():
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
        )  # fmt: skip
    why = "" if "do_lower_case" in options else (message("The vocabulary has uppercase letters, so text is kept as it is; set do_lower_case to " "change this.") if cased else message("The vocabulary has no uppercase letters, so text is lowercased; set do_lower_case to " "change this."))  # fmt: skip
    return made, why


def half_message(missing: str) -> str:
    """The message for a BPE tokenizer with one file missing."""
    there = "merges.txt" if missing == "vocab.json" else "vocab.json"
    return message(
        "this tokenizer is incomplete: it has {there} but not {missing}; add {missing}",
        there=there,
        missing=missing,
    )


def _add_specials(made: Tokenizer, vocabulary: dict[str, int]) -> None:
    names = [name for names in _ROLES.values() for name in names if name in vocabulary]
    made.add_special_tokens(sorted(names, key=lambda name: vocabulary[name]))


def _roles(made: Tokenizer) -> dict[str, str]:
    special = {token.content for token in made.get_added_tokens_decoder().values() if token.special}
    found = {role: next((name for name in names if name in special), None) for role, names in _ROLES.items()}
    return {role: name for role, name in found.items() if name}


def _mistake(path: Path, reason: str) -> InputError:
    return InputError("{path}: {reason}", FIELD, path=path, reason=reason)
