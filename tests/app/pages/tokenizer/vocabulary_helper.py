"""A small real helper process for the Vocabulary and Compare tabs: real answers about a vocabulary of nine pieces."""

import json
import sys
from pathlib import Path

import msgspec
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.rpc import protocol
from backend.contract.rpc.data import DataPreview
from backend.contract.tokens.batches import Decoded, DecodedRow, PiecesAsText
from backend.contract.tokens.comparison import (
    ComparedToken,
    DataComparison,
    LanguageCounts,
    TextComparison,
    TextCounts,
)
from backend.contract.tokens.vocabulary import MergeNode, PieceCounts, PieceOrigin
from backend.helper.queries import vocabulary
from backend.tokenizers.vocabulary.tables import VocabularyTables

PIECES = ["<s>", "a", "b", "Ġ", "ab", "Ġab", "=", "c", "[unused0]"]
TEXTS = ["<s>", "a", "b", " ", "ab", " ab", "=", "c", "[unused0]"]
MERGES = [("a", "b"), ("Ġ", "ab")]
TYPES = ["special", "byte", "byte", "byte", "normal", "normal", "byte", "byte", "unused"]


def load() -> None:
    """What the answers need, so that forks have it; pyarrow loads pandas with its first array."""
    import pandas  # noqa: F401

    from backend.data import csv_file  # noqa: F401
    from backend.tokenizers.vocabulary import search  # noqa: F401


def tables(with_merges: bool) -> VocabularyTables:
    """Nine pieces, with two merges or none."""
    columns = {
        "id": pa.array(range(9), pa.int32()),
        "piece": PIECES,
        "text": TEXTS,
        "bytes": [text.encode().hex(" ").upper() for text in TEXTS],
        "length": pa.array(map(len, TEXTS), pa.int32()),
        "type": TYPES,
        "script": ["Latin" if any(sign.isalpha() for sign in text) else "" for text in TEXTS],
    }
    if not with_merges:
        return VocabularyTables("WordPiece", pa.table(columns), None, 0)
    columns["rank"] = pa.array([None, None, None, None, 0, 1, None, None, None], pa.int32())
    merges = pa.table(
        {
            "rank": pa.array([0, 1], pa.int32()),
            "left": ["a", "Ġ"],
            "right": ["b", "ab"],
            "result": ["ab", "Ġab"],
            "text": ["ab", " ab"],
            "id": pa.array([4, 5], pa.int32()),
        }
    )
    return VocabularyTables("byte-level BPE", pa.table(columns), merges, 2)


def counted(arguments: dict) -> PieceCounts | None:
    """Piece 5 most often; of a column `never` it never comes."""
    if arguments["column"] == "never":
        return None
    import numpy as np

    path = Path(arguments["folder"]) / "frequency.npy"
    np.save(path, np.array([0, 1, 2, 3, 4, 50, 6, 7, 0]))
    return PieceCounts(path=str(path), used=7)


def decoded(ids: list[int]) -> DecodedRow:
    """One list of ids."""
    pieces = [PIECES[number] if number < len(PIECES) else "" for number in ids]
    missing = [place for place, number in enumerate(ids) if number >= len(PIECES)]
    return DecodedRow(text="", with_special="", without_special="", cleaned="", pieces=pieces, missing=missing)


def compared(arguments: dict) -> TextComparison:
    """Every tokenizer but the first cuts each line into single letters."""
    tokens, counts = [], []
    for number, name in enumerate(arguments["tokenizers"]):
        place = own = 0
        for line, text in enumerate(arguments["text"].split("\n")):
            pieces = [text] if number == 0 and text else list(text)
            for piece in pieces:
                tokens.append(
                    ComparedToken(number, line, 5, piece, piece, place, place + len(piece), False, len(text) > 1)
                )
                place += len(piece)
                own += 1
            place += 1
        counts.append(TextCounts(tokenizer=name, tokens=own, special=0, unknown=number, differing=own))
    text = arguments["text"]
    return TextComparison(
        tokens=tokens,
        counts=counts,
        lines=text.count("\n") + 1,
        characters=len(text),
        words=len(text.split()),
        places=1,
    )


def compared_data(arguments: dict) -> DataComparison | None:
    """Two languages; of a column `never` it never comes."""
    if arguments["column"] == "never":
        return None
    n = len(arguments["tokenizers"])
    total = LanguageCounts(
        language="", rows=4, words=8, characters=40, bytes=40, tokens=[10 * (i + 1) for i in range(n)], unknown=[0] * n
    )
    english = msgspec.structs.replace(total, language="en", rows=3)
    return DataComparison(
        tokenizers=arguments["tokenizers"],
        column=arguments["column"],
        language_column=arguments["language_column"] or "",
        total=total,
        languages=[english] if arguments["language_column"] else [],
        spreads=[None] * n,
        bins=[0, 5, 10],
        histograms=[[1, 3]] * n,
    )


def answered(request: protocol.Request) -> object:
    """The answer to one question."""
    arguments = request.arguments
    match request.query:
        case "vocabulary" if "nowhere" in arguments["tokenizer"]:
            raise InputError("nowhere: it has no tokenizer; choose another")
        case "vocabulary" if "never" in arguments["tokenizer"]:
            return None
        case "vocabulary":
            return vocabulary.fill(Path(arguments["folder"]), tables("gpt2" in arguments["tokenizer"]))
        case "piece_origin" if arguments["id"] == 5:
            tree = [(0, "Ġab", 1), (1, "Ġ", None), (1, "ab", 0), (2, "a", None), (2, "b", None)]
            return PieceOrigin(
                parts=[MergeNode(depth, piece, TEXTS[PIECES.index(piece)], rank) for depth, piece, rank in tree]
            )
        case "piece_origin":
            return PieceOrigin(sentence="A special token" if arguments["id"] == 0 else "A single character")
        case "decode":
            return Decoded([decoded(row) for row in arguments["ids"]])
        case "pieces_to_text":
            ids = [PIECES.index(piece) if piece in PIECES else -1 for piece in arguments["pieces"]]
            return PiecesAsText(text="", ids=ids, unknown=[place for place, number in enumerate(ids) if number < 0])
        case "count_pieces":
            return counted(arguments)
        case "compare_text" if any("nowhere" in name for name in arguments["tokenizers"]):
            raise InputError("nowhere: it has no tokenizer; choose another")
        case "compare_text":
            return compared(arguments)
        case "compare_data":
            return compared_data(arguments)
        case "preview_data" if "nowhere" in arguments["data"]["train"]:
            raise InputError("data.train: there is no such file; choose another")
        case "preview_data":
            rows = [["1", "long words", "en", ""]]
            return DataPreview(columns=["id", "text", "lang", "never"], rows=rows, row_count=1, guessed_columns={})
    query = next(one for one in vocabulary.QUERIES if one.name == request.query)
    return query.answer(arguments, lambda progress: None)


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        request = protocol.Request(**json.loads(line))
        if request.query == "cancel":
            continue
        try:
            answer = answered(request)
        except InputError as error:
            reply = protocol.Reply(request.id, error=protocol.ErrorReply(str(error), error.field))
        else:
            if answer is None:
                continue
            reply = protocol.Reply(request.id, answer=answer)
        sys.stdout.write(msgspec.json.encode(reply).decode() + "\n")
        sys.stdout.flush()
