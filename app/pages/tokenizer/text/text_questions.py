"""Owns which question follows from what is written on the side for one text, and from its options."""

from typing import Any

from app.core.i18n import tr
from app.core.text import text_options, text_parts
from app.core.text.text_options import TextOptions
from app.core.text.typed_ids import Written
from app.pages.tokenizer.text.text_input import CHAT, FILE, PAIR, TEXT, WORDS, TextInput
from app.widgets.text.editor_text import text_of


def about_text(source: TextInput, options: TextOptions, tokenizer: str) -> dict[str, Any]:
    """Arguments of `tokenize`."""
    mode = source.mode()
    if mode == FILE:
        given = {"file": str(source.path)} if source.pasted is None else {"text": source.pasted}
        return options.whole_question(tokenizer, **given)
    if mode == CHAT:
        messages = text_options.messages_of(source.chat.messages())
        prompt = source.chat.generation_prompt.isChecked()
        return options.question(tokenizer, messages=messages, generation_prompt=prompt)
    if mode == WORDS:
        return options.question(tokenizer, text=text_of(source.words), pre_split=True)
    pair = text_of(source.second) if mode == PAIR else None
    return options.question(tokenizer, text=text_of(source.text), pair=pair)


def about_steps(source: TextInput, options: TextOptions, tokenizer: str, part: int | None) -> dict[str, Any] | None:
    """Arguments of `tokenizer_steps`, of all that is written or of a part of it; None where it has no steps."""
    if source.mode() not in (TEXT, PAIR, WORDS, CHAT):
        return None
    asked = about_text(source, TextOptions(
        special_tokens=options.special_tokens, construction=options.construction, chat_template=options.chat_template
    ), tokenizer)  # fmt: skip
    return asked if part is None else {**asked, "part": part}


def parts_of(source: TextInput) -> tuple[str, list[str]]:
    """What stands for all that is written (empty where there is no such thing), and its parts, in words."""
    mode = source.mode()
    if mode == CHAT:
        return tr("The whole chat"), text_parts.of_messages(source.chat.messages())
    if mode == WORDS:
        return tr("All words"), text_parts.of_words(text_of(source.words))
    return "", text_parts.TEXTS if mode == PAIR else []


def about_written(written: Written, options: TextOptions, tokenizer: str) -> dict[str, Any]:
    """Arguments of `decode` or of `pieces_to_text`."""
    question = {"tokenizer": tokenizer, "options": options.construction}
    if written.ids:
        return {**question, "ids": written.ids}
    return {**question, "pieces": [piece for row in written.pieces for piece in row]}
