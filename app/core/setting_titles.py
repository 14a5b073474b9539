"""Replaces the keys of settings and the commands in a message by their titles on screen."""

import re
from collections.abc import Iterable
from typing import Protocol

from app.core.i18n import group_digits, thin, tr


class SettingTitle(Protocol):
    """A setting's names."""

    @property
    def key(self) -> str: ...

    @property
    def title(self) -> str: ...


_COMMANDS = (
    (re.compile(r":\sburnish\strain\s\S[^;]*?spec\.yaml\b"), tr(" with “Duplicate”")),
    (re.compile(r"\bburnish\sreport\s\S+"), tr("“Copy report”")),
)
"""A command that a sentence names → what does the same in the window."""
_titles: dict[str, str] = {}
_KEY = re.compile(
    r"(?<![\w./=-])(?:task|model|data|training|evaluation|adapter|hardware)(?:\.[a-z]\w*)+(?![\w/=-]|\.\w)"
)
_COUNTED = "|".join(
    map(re.escape, (tr("tokens"), tr("rows"), tr("steps"), tr("characters"), tr("or less"), tr("or more")))
)
_COUNT = re.compile(
    rf"(?<![\w.,/-])\d{{4,}}(?= (?:tokens|positions|rows|steps|characters|or (?:less|more)|{_COUNTED})\b)"
)


def learn_titles(settings: Iterable[SettingTitle]) -> None:
    """Use these settings' titles from now on."""
    _titles.update((setting.key, setting.title) for setting in settings)


def in_titles(text: str) -> str:
    """A sentence with titles instead of the keys of settings and commands, and thin spaces in large counts."""
    for command, words in _COMMANDS:
        text = command.sub(lambda _, words=words: words, text)
    named = _KEY.sub(lambda found: _quote(found.group()), text)
    return thin(_COUNT.sub(lambda found: group_digits(int(found.group())), named))


def _quote(key: str) -> str:
    return tr("“{title}”", title=_titles[key]) if key in _titles else key


def title_of_key(key: str) -> str:
    """A key's title on screen; the last part of a key without one."""
    return _titles.get(key, key.rpartition(".")[2])
