"""Scores the trivial rules that a trained model must beat: most common label, word tag or span, n-grams, copying."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

Tokens = Sequence[int]
Score = Callable[[str, Sequence[str]], float]
_ROWS_TO_CHOOSE = 200


def commonest_label(train: Sequence[str], test: Sequence[str]) -> float:
    """Accuracy of the label that the training rows bear most often."""
    label, _ = Counter(train).most_common(1)[0]
    return sum(one == label for one in test) / len(test)


def majority_tagger(
    words: Iterable[Sequence[str]], tags: Iterable[Sequence[str]]
) -> Callable[[Sequence[str]], list[str]]:
    """A tagger that gives every word its commonest tag of training, and O to a word that it never saw."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence, its_tags in zip(words, tags, strict=True):
        for word, tag in zip(sentence, its_tags, strict=True):
            seen[word.lower()][tag] += 1
    best = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
    return lambda sentence: [best.get(word.lower(), "O") for word in sentence]


def constant_span(
    train: Sequence[tuple[str, Sequence[str]]],
    test: Sequence[tuple[str, Sequence[str]]],
    score: Score,
    longest: int = 20,
) -> float:
    """The best rule "words a to b of the context", chosen on `train` (context, answers), as its mean score on `test`.

    Some hundred evenly spaced training rows suffice to choose.
    """
    rules = [(first, count) for first in range(longest) for count in range(1, longest + 1)]
    some = train[:: max(1, len(train) // _ROWS_TO_CHOOSE)]
    best = max(rules, key=lambda rule: _mean_of_rule(rule, some, score))
    return _mean_of_rule(best, test, score)


def _mean_of_rule(rule: tuple[int, int], rows: Sequence[tuple[str, Sequence[str]]], score: Score) -> float:
    first, count = rule
    spans = (" ".join(context.split()[first : first + count]) for context, _ in rows)
    return sum(score(span, answers) for span, (_, answers) in zip(spans, rows, strict=True)) / len(rows)


class KneserNey:
    """An interpolated n-gram model with one absolute discount per order (Chen and Goodman 1999, equations 24 to 27)."""

    def __init__(self, tokens: Tokens, vocabulary: int, order: int = 3) -> None:
        self._order, self._vocabulary = order, vocabulary
        self._counts = [Counter(_grams(tokens, size)) for size in range(1, order + 1)]
        for size in range(order - 1, 0, -1):  # below the highest order a gram counts the different words before it
            self._counts[size - 1] = Counter(gram[1:] for gram in self._counts[size])
        self._totals = [_by_context(counts, sum) for counts in self._counts]
        self._followers = [_by_context(counts, len) for counts in self._counts]
        self._discounts = [_discount(counts) for counts in self._counts]

    def perplexity(self, tokens: Tokens) -> float:
        """exp of the mean negative log-probability of every token but the first."""
        losses = [
            -math.log(self.probability(tokens[max(0, place - self._order + 1) : place], tokens[place]))
            for place in range(1, len(tokens))
        ]
        return math.exp(sum(losses) / len(losses))

    def probability(self, context: Tokens, token: int) -> float:
        """Of one token after its context, whose last `order - 1` tokens count."""
        known = 1.0 / self._vocabulary
        for size in range(1, min(len(context), self._order - 1) + 2):
            before = tuple(context[len(context) - size + 1 :]) if size > 1 else ()
            total = self._totals[size - 1].get(before, 0)
            if not total:
                continue
            discount = self._discounts[size - 1]
            own = max(0.0, self._counts[size - 1].get((*before, token), 0) - discount)
            known = own / total + discount * self._followers[size - 1][before] / total * known
        return known


def _grams(tokens: Tokens, size: int) -> Iterable[tuple[int, ...]]:
    return zip(*(tokens[start:] for start in range(size)), strict=False)


def _by_context(counts: Counter[tuple[int, ...]], fold: Callable[[list[int]], int]) -> dict[tuple[int, ...], int]:
    lists: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for gram, count in counts.items():
        lists[gram[:-1]].append(count)
    return {context: fold(found) for context, found in lists.items()}


def _discount(counts: Counter[tuple[int, ...]]) -> float:
    once, twice = (sum(count == number for count in counts.values()) for number in (1, 2))
    return once / (once + 2 * twice) if once else 0.5
