"""Owns how the lines of several tokenized texts are brought beside each other, though one takes more rows than another."""

from collections.abc import Sequence


def padded(heights: Sequence[Sequence[int]]) -> list[list[int]]:
    """How many empty rows follow each line of each text, so that every line begins on the same row in all of them.

    `heights` are the rows that each line of each text takes by itself; a line without tokens takes one.
    """
    tallest = [max(line) for line in zip(*heights, strict=True)]
    return [[most - own for most, own in zip(tallest, text, strict=True)] for text in heights]


def gaps(lines: Sequence[int], spaces: Sequence[str], after: Sequence[int]) -> list[str]:
    """What stands before each token, with a line break for every row that has to be skipped.

    `lines` are the tokens' lines, `spaces` what the tokenizer leaves out before each of them, and `after` the rows to be
    left empty after each line.
    """
    made = []
    line = 0
    for own, space in zip(lines, spaces, strict=True):
        breaks = sum(1 + after[place] for place in range(line, own))
        made.append("\n" * breaks if breaks else space.replace("\n", " "))
        line = own
    return made
