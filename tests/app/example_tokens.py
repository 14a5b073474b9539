"""Builds answers to `tokenize` as the helper gives them, small enough to read."""

from backend.contract.tokens.tokens import TokenColumns, TokenPiece, Tokens


def answer(source: str, rows: list[tuple], pieces: list[TokenPiece], **other: object) -> Tokens:
    """Rows are (piece, sequence, start, end[, window[, mask]]); bytes, words and types follow from them."""
    places = [0]
    for letter in source:
        places.append(places[-1] + len(letter.encode()))
    whole = [(*row, *(0, 1)[len(row) - 4 :]) for row in rows]
    partial = [any(other is not row and other[1] >= 0 and other[2:5] == row[2:5] for other in whole) for row in whole]
    columns = TokenColumns(
        piece=[row[0] for row in whole],
        sequence=[row[1] for row in whole],
        start=[row[2] for row in whole],
        end=[row[3] for row in whole],
        byte_start=[places[row[2]] for row in whole],
        byte_end=[places[row[3]] for row in whole],
        partial=partial,
        word=[-1 if row[1] < 0 else number for number, row in enumerate(whole)],
        type=[0] * len(whole),
        mask=[row[5] for row in whole],
        window=[row[4] for row in whole],
    )
    return Tokens(
        pieces=pieces,
        columns=columns,
        sources=[source],
        tokens=sum(row[5] for row in whole),
        text_tokens=sum(row[1] >= 0 for row in whole),
        characters=len(source),
        words=len(source.split()),
        **other,  # type: ignore[arg-type]
    )


CLS, SEP, PAD = (TokenPiece(*one, special=True) for one in ((101, "[CLS]"), (102, "[SEP]"), (0, "[PAD]")))
HELLO = answer(
    "Hello world",
    [(0, -1, 0, 0), (2, 0, 0, 5), (3, 0, 6, 11), (1, -1, 0, 0)],
    [CLS, SEP, TokenPiece(7592, "hello"), TokenPiece(2088, "world")],
    limit=512,
)
