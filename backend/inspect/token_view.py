"""The tokens of one feature and their role in training, taken from the arrays that the engine receives."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backend.contract.heads import IGNORE, Head
from backend.contract.messages import message
from backend.contract.rpc.training_data import ExampleStart, Kind, TokenSequence
from backend.data.batches import BEGINS_WITH_LAST, decoder_inputs
from backend.engines.engine import Batch
from backend.inspect.batch_preview import BatchPreview
from backend.models.config import decoder_start_token
from backend.models.inspection import read_config
from backend.tokenizers.vocabulary.pieces import vocabulary_of

MAX_TOKENS = 6000
"""Of a sequence that are shown; all are in the arrays."""


class PieceTexts:
    """The text of each id; each distinct one is looked up once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[int, str] = {}
        self.special = frozenset(tokenizer.all_special_ids)

    def texts(self, ids: Sequence[int] | np.ndarray) -> list[str]:
        """The text of each token by itself; a partial character is shown as its piece."""
        return [self._text(int(one)) for one in ids]

    def decode(self, ids: np.ndarray) -> str:
        """The text of consecutive tokens, without special ones."""
        found = self._tokenizer.decode([int(one) for one in ids], skip_special_tokens=True)
        return " ".join(str(found).split())

    def _text(self, token: int) -> str:
        if token not in self._known:
            self._known[token] = self._read(token)
        return self._known[token]

    def _read(self, token: int) -> str:
        if not 0 <= token < len(self._tokenizer):
            return f"⟨{token}⟩"
        piece = str(self._tokenizer.convert_ids_to_tokens(token))
        if token in self.special:
            return piece
        if piece.startswith("▁"):
            return piece.replace("▁", " ")
        text = str(self._tokenizer.decode([token], clean_up_tokenization_spaces=False))
        return piece if "\ufffd" in text or not text or piece.startswith("##") else text


def sequences(preview: BatchPreview, feature: int, arrays: Batch) -> list[TokenSequence]:
    """The token lists that the model reads for one feature; for text to text also the decoder's input and targets."""
    pieces, head = PieceTexts(preview.session.tokenizer), preview.session.task.head
    ids = arrays["input_ids"]
    if ids.ndim == 2:
        return [_choice(preview, pieces, arrays, number) for number in range(len(ids))]
    labels = _labels(preview, pieces, arrays)
    own = TokenSequence(
        title=message("Source (input_ids)") if head is Head.SEQ2SEQ_LM else message("Input (input_ids)"),
        ids=ids[:MAX_TOKENS].tolist(),
        texts=pieces.texts(ids[:MAX_TOKENS]),
        kinds=_kinds(preview, pieces, arrays)[:MAX_TOKENS],
        labels=labels[:MAX_TOKENS],
        borders=_borders(preview, feature, arrays),
        length=len(ids),
    )
    return [own, *_decoder(preview, pieces, arrays)]


def _choice(preview: BatchPreview, pieces: PieceTexts, arrays: Batch, number: int) -> TokenSequence:
    one = {name: values[number] for name, values in arrays.items() if values.ndim == 2}
    ids = one["input_ids"][:MAX_TOKENS]
    right = int(arrays["labels"]) == number
    return TokenSequence(
        title=(
            message("Choice {number} · correct", number=number + 1)
            if right
            else message("Choice {number}", number=number + 1)
        ),
        ids=ids.tolist(),
        texts=pieces.texts(ids),
        kinds=_input_kinds(preview, pieces, one)[:MAX_TOKENS],
        labels=[""] * len(ids),
        length=len(one["input_ids"]),
    )


def _input_kinds(preview: BatchPreview, pieces: PieceTexts, arrays: Batch) -> list[Kind]:
    """The kind of each input token."""
    unknown = vocabulary_of(preview.session.tokenizer).unknown
    types = arrays.get("token_type_ids", np.zeros_like(arrays["input_ids"]))
    found: list[Kind] = []
    for token, seen, kind in zip(arrays["input_ids"].tolist(), arrays["attention_mask"], types, strict=True):
        if not seen:
            found.append("padding")
        elif token == unknown:
            found.append("unknown")
        elif token in pieces.special:
            found.append("special")
        else:
            found.append("second" if kind == 1 else "token")
    return found


def _kinds(preview: BatchPreview, pieces: PieceTexts, arrays: Batch) -> list[Kind]:
    """The kind of each token and, if the head has a label per token, of its label."""
    head, found = preview.session.task.head, _input_kinds(preview, pieces, arrays)
    seen = arrays["attention_mask"].astype(bool)
    if "start_positions" in arrays:
        start, end = int(arrays["start_positions"]), int(arrays["end_positions"])
        for place in range(start, end + 1) if start != IGNORE else ():
            found[place] = "answer"
        return found
    if head not in (Head.CAUSAL_LM, Head.MASKED_LM, Head.TOKEN_CLASSIFICATION) or "labels" not in arrays:
        return found
    labels = arrays["labels"]
    outside = _outside_label(preview)
    for place in np.flatnonzero(seen).tolist():
        if labels[place] == IGNORE or (head is Head.CAUSAL_LM and place == 0):
            # Of hidden words the others are context, and no less seen for having no label.
            found[place] = found[place] if head is Head.MASKED_LM else "ignored"
        elif head is Head.TOKEN_CLASSIFICATION:
            found[place] = "token" if labels[place] == outside else "label"
        else:
            found[place] = "hidden" if head is Head.MASKED_LM else "target"
    return found


def _outside_label(preview: BatchPreview) -> int:
    """The id of the outside label, -1 if there is none."""
    names, outside = preview.session.facts.get("labels") or [], preview.session.facts.get("outside", "O")
    return names.index(outside) if preview.session.facts.get("scheme") != "none" and outside in names else -1


def _labels(preview: BatchPreview, pieces: PieceTexts, arrays: Batch) -> list[str]:
    """The label shown below each token."""
    head, length = preview.session.task.head, len(arrays["input_ids"])
    if head not in (Head.TOKEN_CLASSIFICATION, Head.MASKED_LM) or "labels" not in arrays:
        return [""] * length
    labels = arrays["labels"]
    if head is Head.TOKEN_CLASSIFICATION:
        names = preview.session.facts["labels"]
        return ["" if one == IGNORE else str(names[int(one)]) for one in labels]
    return ["" if one == IGNORE else text for one, text in zip(labels, _or_empty(pieces, labels), strict=True)]


def _or_empty(pieces: PieceTexts, labels: np.ndarray) -> list[str]:
    return pieces.texts(np.where(labels == IGNORE, 0, labels))


def _decoder(preview: BatchPreview, pieces: PieceTexts, arrays: Batch) -> list[TokenSequence]:
    """The decoder's input and, below each token, the next target."""
    if preview.session.task.head is not Head.SEQ2SEQ_LM or "labels" not in arrays:
        return []
    labels = arrays["labels"]
    given = decoder_inputs(labels[None], _start(preview), preview.session.pad_token_id)[0]
    pieces_or_empty = _or_empty(pieces, labels)
    kinds: list[Kind] = ["padding" if label == IGNORE else "target" for label in labels.tolist()]
    return [
        TokenSequence(
            title=message("Decoder (decoder_input_ids, with the labels below)"),
            ids=given[:MAX_TOKENS].tolist(),
            texts=pieces.texts(given[:MAX_TOKENS]),
            kinds=kinds[:MAX_TOKENS],
            labels=[
                str(IGNORE) if label == IGNORE else text
                for label, text in zip(labels[:MAX_TOKENS].tolist(), pieces_or_empty, strict=False)
            ],
            length=len(labels),
        )
    ]


def _start(preview: BatchPreview) -> int | None:
    config = read_config(preview.model.folder)
    if config.get("model_type") in BEGINS_WITH_LAST:
        return None
    return decoder_start_token(
        config.get("model_type"), config.get("decoder_start_token_id"), preview.session.pad_token_id
    )


def _borders(preview: BatchPreview, feature: int, arrays: Batch) -> list[ExampleStart]:
    """Where another row starts in a block, or another example in a packed feature; empty if there is only one."""
    if "segment" in arrays:
        segment = arrays["segment"]
        changes = np.flatnonzero(np.diff(segment, prepend=0))
        found = [
            ExampleStart(int(place), message("example {segment}", segment=int(segment[place])))
            for place in changes
            if segment[place]
        ]
    elif "spans_row" in preview.features.lists:
        rows, lengths = (
            preview.features.lists[name].take(np.array([feature]))[0] for name in ("spans_row", "spans_length")
        )
        starts = np.cumsum(lengths) - lengths
        found = [
            ExampleStart(int(place), preview.rows.place(int(row))) for place, row in zip(starts, rows, strict=True)
        ]
    else:
        found = []
    visible = [border for border in found if border.place < min(MAX_TOKENS, len(arrays["input_ids"]))]
    return visible if len(visible) > 1 or (visible and "segment" in arrays) else []
