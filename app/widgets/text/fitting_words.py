"""Owns which buttons of a row show their icon alone because there is no room for all words."""

from collections.abc import Callable, Mapping

from PySide6.QtWidgets import QAbstractButton


def fit_words(words: Mapping[QAbstractButton, str], lack: Callable[[], int]) -> set[QAbstractButton]:
    """Take words away in this order until nothing lacks; returns the buttons that have none.

    `lack` says how many pixels are missing with the words as they are.
    """
    for button, said in words.items():
        button.setText(said)
    wordless: set[QAbstractButton] = set()
    for button in words:
        if lack() <= 0:
            break
        button.setText("")
        wordless.add(button)
    return wordless
