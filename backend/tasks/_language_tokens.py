"""Owns the language tokens of mBART, NLLB, M2M100 and their like: set while texts are tokenised, and put back after."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backend.contract.errors import InputError


def has_language_tokens(tokenizer: Any) -> bool:
    """Whether the tokenizer marks source and target with a language."""
    return hasattr(tokenizer, "set_tgt_lang_special_tokens")


@contextmanager
def languages(tokenizer: Any, source: str | None, target: str | None) -> Iterator[list[int]]:
    """The tokenizer with these languages inside the block; gives the tokens that an answer begins with.

    None leaves a tokenizer without language tokens as it is. Raises InputError for a language that it does not know,
    for one that is missing, and for one that nothing can be done with.
    """
    if not has_language_tokens(tokenizer):
        _refuse(source, target)
        yield []
        return
    _check(tokenizer, "source_language", source)
    _check(tokenizer, "target_language", target)
    before = tokenizer.src_lang, tokenizer.tgt_lang
    try:
        tokenizer.tgt_lang, tokenizer.src_lang = target, source  # the source's last: it sets the special tokens
        # The first mBART has the language at the labels' end, from where its shift takes it to the beginning.
        yield [token for token in tokenizer(text_target="")["input_ids"] if token != tokenizer.eos_token_id]
    finally:
        tokenizer.tgt_lang, tokenizer.src_lang = before[1], before[0]


def _refuse(source: str | None, target: str | None) -> None:
    name = "source_language" if source else "target_language"
    if source or target:
        raise InputError(
            f"task.{name}: this model's tokenizer has no language tokens; leave it empty and say the direction by "
            "task.prefix, if the model reads one",
            f"task.{name}",
        )


def _check(tokenizer: Any, name: str, language: str | None) -> None:
    known = _known(tokenizer)
    if language in known:
        return
    field = f"task.{name}"
    listed = f"{', '.join(known[:8])}{' …' if len(known) > 8 else ''}"
    if not language:
        raise InputError(f"{field}: this model marks every text with its language; name one of {listed}", field)
    raise InputError(f"{field}: the model's tokenizer knows no language {language!r}; it knows {listed}", field)


def _known(tokenizer: Any) -> list[str]:
    """The languages by the names under which they are set."""
    for name in ("lang_code_to_token", "lang_code_to_id"):  # M2M100, mBART-50
        if codes := getattr(tokenizer, name, None):
            return sorted(codes)
    ordinary = {str(token) for token in tokenizer.special_tokens_map.values() if not isinstance(token, list)}
    return sorted(token for token in tokenizer.all_special_tokens if token not in ordinary)
