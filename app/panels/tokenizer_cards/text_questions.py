"""Owns which question follows from what is written on the side for one text, and from its options."""

from typing import Any

from app.core import text_options
from app.core.text_options import TextOptions
from app.core.written_ids import Written
from app.panels.tokenizer_cards.text_input import CHAT, FILE, PAIR, TEXT, WORDS, TextInput


def about_text(source: TextInput, options: TextOptions, tokenizer: str) -> dict[str, Any]:
    """Arguments of `tokenize`."""
    mode = source.mode()
    if mode == FILE:
        return options.file_question(tokenizer, str(source.path))
    if mode == CHAT:
        messages = text_options.messages_of(source.chat.messages())
        prompt = source.chat.generation_prompt.isChecked()
        return options.question(tokenizer, messages=messages, generation_prompt=prompt)
    if mode == WORDS:
        return options.question(tokenizer, text=source.words.toPlainText(), pre_split=True)
    pair = source.second.toPlainText() if mode == PAIR else None
    return options.question(tokenizer, text=source.text.toPlainText(), pair=pair)


def about_steps(source: TextInput, options: TextOptions, tokenizer: str) -> dict[str, Any] | None:
    """Arguments of `tokenizer_steps`; None where they are not told of what is written."""
    mode = source.mode()
    if mode not in (TEXT, PAIR):
        return None
    question = {
        "tokenizer": tokenizer,
        "text": source.text.toPlainText(),
        "options": options.construction,
        "special_tokens": options.special_tokens,
    }
    return {**question, "pair": source.second.toPlainText()} if mode == PAIR else question


def about_written(written: Written, options: TextOptions, tokenizer: str) -> dict[str, Any]:
    """Arguments of `decode` or of `pieces_to_text`."""
    question = {"tokenizer": tokenizer, "options": options.construction}
    if written.ids:
        return {**question, "ids": written.ids}
    return {**question, "pieces": [piece for row in written.pieces for piece in row]}
