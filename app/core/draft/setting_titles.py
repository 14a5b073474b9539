"""Says sentences of the backend in the window's words: titles of fields for keys of a spec, and buttons for commands."""

import re
from collections.abc import Iterable

from app.core.draft.draft_settings import Setting, value_words
from app.core.i18n import grouped, thin, tr
from backend.contract.run.fixes import Mend

_titles: dict[str, str] = {}
_KEY = re.compile(
    r"(?<![\w./=-])(?:task|model|data|training|evaluation|adapter|hardware)(?:\.[a-z]\w*)+(?![\w/=-]|\.\w)"
)
_COMMANDS = (
    (re.compile(r":\sburnish\strain\s\S[^;]*?spec\.yaml\b"), tr(" with “Duplicate”")),
    (re.compile(r"\bburnish\sreport\s\S+"), tr("“Copy report”")),
)
"""A command that a sentence names → what does the same in the window."""
_COUNTED = "|".join(
    map(re.escape, (tr("tokens"), tr("rows"), tr("steps"), tr("characters"), tr("or less"), tr("or more")))
)
_COUNT = re.compile(
    rf"(?<![\w.,/-])\d{{4,}}(?= (?:tokens|positions|rows|steps|characters|or (?:less|more)|{_COUNTED})\b)"
)


def learn(settings: Iterable[Setting]) -> None:
    """Call these settings by their titles from now on."""
    _titles.update((setting.key, setting.title) for setting in settings)


def in_titles(text: str) -> str:
    """A sentence with the titles of settings and buttons in the place of keys and commands, and thin spaces in great counts."""
    for command, words in _COMMANDS:
        text = command.sub(lambda _, words=words: words, text)
    named = _KEY.sub(lambda found: _quoted(found.group()), text)
    return thin(_COUNT.sub(lambda found: grouped(int(found.group())), named))


def _quoted(key: str) -> str:
    return tr("“{title}”", title=_titles[key]) if key in _titles else key


def mend_words(mend: Mend) -> str:
    """What the button says that takes a way out of a failure: `Start again with Learning rate 5e-5`."""
    if mend.convert_weights:
        return tr("Convert the weights once and start again")
    if not mend.changes:
        return tr("Try again")
    settings = ", ".join(f"{_mended(key)} {value_words(value)}" for key, value in mend.changes.items())
    return (
        tr("Resume with {settings}", settings=settings)
        if mend.resume
        else tr("Start again with {settings}", settings=settings)
    )


def _mended(key: str) -> str:
    return _titles.get(key, key.rpartition(".")[2])
