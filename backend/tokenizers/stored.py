"""Owns what a tokenizer's file has stored as truncation and padding: switched off on opening, and remembered."""

from typing import TYPE_CHECKING, Any

from backend.contract.tokens.options import TokenOptions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def truncation(tokenizer: "PreTrainedTokenizerBase") -> str:
    """What the tokenizer's file had stored as truncation and padding, as a sentence; empty where it had nothing."""
    return getattr(tokenizer, "_stored_truncation", "")


def options(tokenizer: "PreTrainedTokenizerBase") -> TokenOptions:
    """The same as options, by which it can be switched on again."""
    return getattr(tokenizer, "_stored_options", TokenOptions())


def switch_off(tokenizer: "PreTrainedTokenizerBase") -> None:
    """Nothing is cut or filled unless asked for; what was stored is remembered."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return
    tokenizer._stored_options = _as_options(backend.truncation, backend.padding)  # type: ignore[attr-defined]
    tokenizer._stored_truncation = _told(backend.truncation, backend.padding)  # type: ignore[attr-defined]
    backend.no_truncation()
    backend.no_padding()
    for name in ("max_length", "stride", "truncation_strategy", "pad_to_multiple_of"):
        tokenizer.init_kwargs.pop(name, None)  # taken from there, and would be saved with the model


def _as_options(truncation: dict[str, Any] | None, padding: dict[str, Any] | None) -> TokenOptions:
    """Both as a backend tells them, as options that have the same effect."""
    found: dict[str, Any] = {}
    if padding:
        length = padding.get("length")
        found = {"padding": "max_length" if length else "longest", "max_length": length or None}
        found |= {"padding_side": padding["direction"], "pad_to_multiple_of": padding.get("pad_to_multiple_of") or None}
    if truncation:
        found |= {"max_length": truncation["max_length"], "truncation": truncation["strategy"]}
        found["truncation_side"] = truncation["direction"]
    return TokenOptions(**found)


def _told(truncation: dict[str, Any] | None, padding: dict[str, Any] | None) -> str:
    """Both as a sentence."""
    found = [f"truncation to {truncation['max_length']} tokens"] if truncation else []
    if padding:
        length = padding.get("length")
        found.append(f"padding to {length} tokens" if length else "padding to the longest row")
    return f"The tokenizer's file has stored {' and '.join(found)}; this is switched off." if found else ""
