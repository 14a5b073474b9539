"""How a piece came about: the tree of BPE merges, or another reason why it is in the vocabulary."""

from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa

from backend.contract.messages import message
from backend.contract.tokens.vocabulary import MergeNode, PieceOrigin
from backend.tokenizers.vocabulary.pieces import merge_pieces

LONGEST = 200
"""Signs of a piece whose merges are looked for; longer ones are none that training makes."""


@dataclass(frozen=True)
class _Node:
    piece: str
    rank: int | None = None
    halves: "tuple[_Node, ...]" = ()


@dataclass(frozen=True)
class Merges:
    """The merges of a BPE model, for lookup."""

    ranks: dict[tuple[str, str], int]
    texts: dict[str, str] = field(default_factory=dict)
    """What pieces represent."""
    suffix: str = ""
    """What the last sign of a word bears."""
    prefix: str = ""
    """What every sign but a word's first bears."""


def merges_of(pieces: pa.Table, merges: pa.Table) -> Merges:
    """Built once per vocabulary; 256,000 merges take a third of a second."""
    pairs = list(zip(merges["left"].to_pylist(), merges["right"].to_pylist(), strict=True))
    ranks: dict[tuple[str, str], int] = {}
    for rank, pair in enumerate(pairs):
        ranks.setdefault(pair, rank)
    pieces = pieces.filter(pieces["piece"].is_valid())
    texts = dict(zip(pieces["piece"].to_pylist(), pieces["text"].to_pylist(), strict=True))
    suffix = "</w>" if any(piece.endswith("</w>") for piece in texts) else ""
    return Merges(ranks, texts, suffix, _prefix(pairs, merges["result"].to_pylist()))


def origin_by_merges(piece: str, merges: Merges) -> PieceOrigin:
    """The merges that make a piece from single characters, applied as the tokenizer does: lowest rank first."""
    if len(piece) > LONGEST:
        return PieceOrigin(sentence=message("Too long to analyze: more than {longest} characters.", longest=LONGEST))
    nodes = [_Node(sign) for sign in _initial_characters(piece, merges)]
    while len(nodes) > 1:
        ranked = [(merges.ranks.get((left.piece, right.piece)), at) for at, (left, right) in enumerate(pairwise(nodes))]
        known = [(rank, at) for rank, at in ranked if rank is not None]
        if not known:
            break
        rank, at = min(known)
        left, right = nodes[at : at + 2]
        nodes[at : at + 2] = [_Node(merge_pieces(left.piece, right.piece, merges.prefix), rank, (left, right))]
    parts = [part for node in nodes for part in _parts(node, 0, merges.texts)]
    if len(nodes) > 1:
        ends = " + ".join(merges.texts.get(node.piece, node.piece) for node in nodes)
        return PieceOrigin(
            parts=parts,
            sentence=message("No merge produces this piece: on its own it is split into {ends}.", ends=ends),
        )
    return PieceOrigin(
        parts=parts, sentence="" if len(parts) > 1 else message("A single character: no merge produces it.")
    )


def origin_by_score(score: float, rank: int, scored: int) -> PieceOrigin:
    """The origin of a Unigram piece, the `rank`th most likely of all."""
    return PieceOrigin(
        sentence=message(
            "Log-probability {score:.4f}, rank {rank:,} of {scored:,}. A text is split so that the sum over its "
            "pieces is as large as possible.",
            score=score,
            rank=rank,
            scored=scored,
        )
    )


def origin_of_no_piece(number: int, highest: int) -> PieceOrigin:
    """The origin of an id without a piece; `highest` is the last id with one."""
    if number < highest:
        return PieceOrigin(
            sentence=message("No piece has this ID, so no text maps to it; pieces with higher IDs follow.")
        )
    return PieceOrigin(
        sentence=message(
            "This row of the embedding matrix is unused: no piece has its ID. Added tokens use such rows first."
        )
    )


def origin_of_type(kind: str, type_: str, piece: str) -> PieceOrigin:
    """The origin of a piece with neither merges nor a score."""
    if type_ in ("special", "added", "unused"):
        reasons = {
            "special": message("A special token: never split, and added by the tokenizer around or between texts."),
            "added": message("An added token: never split, wherever it occurs in a text."),
            "unused": message("Reserved for a piece that may be added later."),
        }
        return PieceOrigin(sentence=reasons[type_])
    if type_ == "byte":
        return PieceOrigin(sentence=message("One byte, for anything that no other piece covers."))
    if kind == "WordPiece":
        return PieceOrigin(
            sentence=message(
                "It continues a word. WordPiece takes the longest matching piece, so pieces have no scores."
            )
            if piece.startswith("##")
            else message("It starts a word. WordPiece takes the longest matching piece, so pieces have no scores.")
        )
    return PieceOrigin(sentence=message("This tokenizer stores neither merges nor scores."))


def _prefix(pairs: list[tuple[str, str]], made: list[str]) -> str:
    """The prefix that the right part of a merge loses."""
    lost = ((right, len(left) + len(right) - len(one)) for (left, right), one in zip(pairs, made, strict=True))
    return next((right[:size] for right, size in lost if size), "")


def _initial_characters(piece: str, merges: Merges) -> list[str]:
    """The single characters that a word starts as, each with its position marker."""
    begins = not merges.prefix or not piece.startswith(merges.prefix)
    plain = piece.removeprefix(merges.prefix)
    ending = merges.suffix if plain.endswith(merges.suffix) and len(plain) > len(merges.suffix) else ""
    signs = list(plain.removesuffix(ending))
    marked = [sign if begins and not place else merges.prefix + sign for place, sign in enumerate(signs)]
    return [*marked[:-1], marked[-1] + ending] if marked else [piece]


def _parts(node: _Node, depth: int, texts: dict[str, str]) -> list[MergeNode]:
    own = MergeNode(depth, node.piece, texts.get(node.piece, node.piece), node.rank)
    return [own, *(part for half in node.halves for part in _parts(half, depth + 1, texts))]
