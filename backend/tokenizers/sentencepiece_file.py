"""Opens a SentencePiece model file with its own normaliser, as a tokenizer with offsets."""

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import MAX_VOCABULARY
from backend.models.model_files import read_small
from backend.models.tokenizer_files import problem_of_charsmap

NOTE = message(
    "A SentencePiece file does not specify which special tokens a model expects around a text, so none are added."
)
_UNIGRAM, _BPE = 1, 2
_NORMAL, _UNKNOWN, _CONTROL, _USER = 1, 2, 3, 4
"""Kinds of models and pieces in `sentencepiece_model.proto`."""


def tokenizer(path: Path) -> Tokenizer:
    """A tokenizer that gives exactly sentencepiece's pieces. Raises InputError."""
    stored = _read_model(path)
    _check_normaliser(stored, path)
    trainer, rules = stored.trainer_spec, stored.normalizer_spec
    pieces = [(one.piece, one.score) for one in stored.pieces]
    unknown = next((number for number, one in enumerate(stored.pieces) if one.type == _UNKNOWN), 0)
    if trainer.model_type == _BPE:
        vocabulary = {piece: number for number, (piece, _) in enumerate(pieces)}
        model: Any = models.BPE(
            vocab=vocabulary, merges=_merges(stored, vocabulary), unk_token=pieces[unknown][0], fuse_unk=True,
            byte_fallback=trainer.byte_fallback,
        )  # fmt: skip
    elif trainer.model_type == _UNIGRAM:
        model = models.Unigram(vocab=pieces, unk_id=unknown, byte_fallback=trainer.byte_fallback)
    else:
        raise InputError(
            "{path}: this SentencePiece model splits text into words or characters, which Burnish "
            "does not support; use a BPE or Unigram model",
            "model.tokenizer",
            path=path,
        )
    made = Tokenizer(model)
    steps = [normalizers.Precompiled(rules.precompiled_charsmap)] if rules.precompiled_charsmap else []
    if rules.remove_extra_whitespaces:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    if steps:
        made.normalizer = normalizers.Sequence(steps)
    scheme = "always" if rules.add_dummy_prefix else "never"
    split = trainer.split_by_whitespace
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    back = decoders.Metaspace(prepend_scheme=scheme, split=split)
    made.decoder = decoders.Sequence([decoders.ByteFallback(), back]) if trainer.byte_fallback else back
    _add_pieces(made, stored)
    return made


def check(path: Path) -> None:
    """Raises InputError if a file's normaliser would crash a library that opens it.

    Other problems are reported when the file is used: it may be of another kind, or unused.
    """
    try:
        stored = _read_model(path)
    except InputError:
        return
    _check_normaliser(stored, path)


def _check_normaliser(stored: Any, path: Path) -> None:
    charsmap = stored.normalizer_spec.precompiled_charsmap
    if charsmap and (problem := problem_of_charsmap(charsmap)):
        raise InputError(
            "{path}: its normalizer {problem}; download it again", "model.tokenizer", path=path, problem=problem
        )


def _read_model(path: Path) -> Any:
    try:
        from google.protobuf.message import DecodeError  # these are optional packages
        from sentencepiece import sentencepiece_model_pb2
    except ImportError:
        raise InputError(
            "{path}: its tokenizer requires sentencepiece; install it with: pip install sentencepiece protobuf",
            "model.tokenizer",
            path=path,
        ) from None
    stored = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    try:
        stored.ParseFromString(read_small(path, MAX_VOCABULARY) or b"")
    except DecodeError:
        raise _damaged_error(path) from None
    if not stored.pieces:
        raise _damaged_error(path)
    return stored


def _damaged_error(path: Path) -> InputError:
    return InputError(
        "{path}: this file is not a SentencePiece model, or it is damaged; download it again",
        "model.tokenizer",
        path=path,
    )


def _merges(stored: Any, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Every pair of pieces that makes a piece, in SentencePiece's merge order."""
    found = []
    for number, one in enumerate(stored.pieces):
        if one.type != _NORMAL:
            continue
        for place in range(1, len(one.piece)):
            left, right = one.piece[:place], one.piece[place:]
            if left in vocabulary and right in vocabulary:
                found.append((-one.score, number, vocabulary[left], vocabulary[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]


def _add_pieces(made: Tokenizer, stored: Any) -> None:
    special = [one.piece for one in stored.pieces if one.type in (_UNKNOWN, _CONTROL)]
    made.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in special])
    own = [one.piece for one in stored.pieces if one.type == _USER]
    made.add_tokens([AddedToken(piece, normalized=False) for piece in own])
