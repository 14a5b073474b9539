"""How a piece came about: the tree of BPE merges, or another reason why it is in the vocabulary."""

from dataclasses import dataclass

from backend.contract.messages import message
from backend.contract.tokens.vocabulary import MergeNode, PieceOrigin
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.steps.models import merge_symbols
from backend.tokenizers.vocabulary.pieces import Vocabulary, Writing, merge_pieces, type_of, vocabulary_of, writing_of

LONGEST = 200
"""Signs of a piece whose merges are looked for; longer ones are none that training makes."""


@dataclass(frozen=True)
class _Node:
    piece: str
    rank: int | None = None
    halves: "tuple[_Node, ...]" = ()


def origin_of(tokenizer: AnyTokenizer, number: int) -> PieceOrigin:
    """The origin of the piece with this id."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    by_id = backend.id_to_token if backend is not None else {n: one for one, n in tokenizer.get_vocab().items()}.get
    piece = by_id(number)
    if piece is None:
        return PieceOrigin(sentence=_sentence_of_no_piece(number, max(tokenizer.get_vocab().values(), default=-1)))
    known, writing = vocabulary_of(tokenizer), writing_of(tokenizer, [piece])
    kind = type_of(number, piece, writing, known)
    if kind not in ("special", "added", "unused"):
        if known.kind == "Unigram":
            return PieceOrigin(sentence=_sentence_of_score(known.log_probabilities, number))
        if known.kind == "BPE":
            return _origin_by_merges(piece, known, writing)
    return PieceOrigin(sentence=_sentence_of_type(known.kind, kind, piece))


def _origin_by_merges(piece: str, known: Vocabulary, writing: Writing) -> PieceOrigin:
    """The merges that make a piece from single characters, applied as the tokenizer does: lowest rank first."""
    if len(piece) > LONGEST:
        return PieceOrigin(sentence=message("Too long to analyze: more than {longest} characters.", longest=LONGEST))
    prefix, suffix = known.model.continuing_subword_prefix or "", known.model.end_of_word_suffix or ""
    symbols = _initial_characters(piece, prefix, suffix)
    nodes = [_Node(symbol) for symbol in symbols]
    for merge in merge_symbols(symbols, known.pairs, prefix)[0]:
        left, right = nodes[merge.place : merge.place + 2]
        made = _Node(merge_pieces(merge.left, merge.right, prefix), merge.rank, (left, right))
        nodes[merge.place : merge.place + 2] = [made]
    parts = [part for node in nodes for part in _parts(node, 0, writing)]
    if len(nodes) > 1:
        ends = " + ".join(writing.text(node.piece) for node in nodes)
        return PieceOrigin(
            parts=parts,
            sentence=message("No merge produces this piece: on its own it is split into {ends}.", ends=ends),
        )
    return PieceOrigin(
        parts=parts, sentence="" if len(parts) > 1 else message("A single character: no merge produces it.")
    )


def _sentence_of_score(scores: list[float], number: int) -> str:
    score = scores[number]
    return message(
        "Log-probability {score:.4f}, rank {rank:,} of {scored:,}. A text is split so that the sum over its "
        "pieces is as large as possible.",
        score=score,
        rank=sum(one > score for one in scores) + 1,
        scored=len(scores),
    )


def _sentence_of_no_piece(number: int, highest: int) -> str:
    if number < highest:
        return message("No piece has this ID, so no text maps to it; pieces with higher IDs follow.")
    return message("This row of the embedding matrix is unused: no piece has its ID. Added tokens use such rows first.")


def _sentence_of_type(kind: str, type_: str, piece: str) -> str:
    """About a piece with neither merges nor a score."""
    if type_ in ("special", "added", "unused"):
        reasons = {
            "special": message("A special token: never split, and added by the tokenizer around or between texts."),
            "added": message("An added token: never split, wherever it occurs in a text."),
            "unused": message("Reserved for a piece that may be added later."),
        }
        return reasons[type_]
    if type_ == "byte":
        return message("One byte, for anything that no other piece covers.")
    if kind == "WordPiece":
        return (
            message("It continues a word. WordPiece takes the longest matching piece, so pieces have no scores.")
            if piece.startswith("##")
            else message("It starts a word. WordPiece takes the longest matching piece, so pieces have no scores.")
        )
    return message("This tokenizer stores neither merges nor scores.")


def _initial_characters(piece: str, prefix: str, suffix: str) -> list[str]:
    """The single characters that a word starts as, each with its position marker."""
    begins = not prefix or not piece.startswith(prefix)
    plain = piece.removeprefix(prefix)
    ending = suffix if plain.endswith(suffix) and len(plain) > len(suffix) else ""
    signs = list(plain.removesuffix(ending))
    marked = [sign if begins and not place else prefix + sign for place, sign in enumerate(signs)]
    return [*marked[:-1], marked[-1] + ending] if marked else [piece]


def _parts(node: _Node, depth: int, writing: Writing) -> list[MergeNode]:
    own = MergeNode(depth, node.piece, writing.text(node.piece), node.rank)
    return [own, *(part for half in node.halves for part in _parts(half, depth + 1, writing))]
