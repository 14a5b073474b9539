"""Reports the progress of a trainer of the tokenizers library, which only writes it to stderr, as lines of JSON."""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from backend.contract.messages import message

Say = Callable[[str, int, int, str], None]
"""Receives the stage, the amount done, the total (0 if unknown), and the unit."""

STAGES = {
    "Tokenize words": (message("Counting the words"), "words"),
    "Count pairs": (message("Counting pairs of characters"), "words"),
    "Compute merges": (message("Learning the pieces"), "merges"),
}
"""What the library calls its work → what people read, and what it counts."""
SECONDS = 0.1
"""Between two words about the same stage; a quick trainer makes ten thousand merges a second."""
_LINE = re.compile(rb'\{"stage":"[^"\n]*","current":\d+,"total":\d+\}\r?\n?')
_CHUNK = 1 << 16


def enable_progress(trainer: Any) -> bool:
    """Make `trainer` write its progress; returns whether it can. Unigram cannot, nor tokenizers before 0.22.2."""
    if hasattr(trainer, "progress_format"):
        trainer.show_progress, trainer.progress_format = True, "json"
        return True
    state = json.loads(trainer.__getstate__())
    inner = state.get("WordPieceTrainer", {}).get("bpe_trainer", {})  # it has the setting, and no name for it in Python
    if "progress_format" not in inner:
        return False
    inner.update(show_progress=True, progress_format="JsonLines")
    trainer.__setstate__(json.dumps(state).encode())
    return True


@contextmanager
def report_progress(trainer: Any, say: Say) -> Iterator[None]:
    """Pass `trainer`'s progress to `say` meanwhile; anything else on stderr is forwarded."""
    try:
        stderr = os.dup(2)
    except OSError:  # a process without one: there is nothing to read, and a trainer that wrote would panic
        yield
        return
    if not enable_progress(trainer):
        os.close(stderr)
        yield
        return
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    listener = threading.Thread(target=_listen, args=(reading, stderr, say), daemon=True, name="trainer progress")
    listener.start()
    try:
        yield
    finally:
        os.dup2(stderr, 2)  # the last writing end closes, which ends the listener
        listener.join(1)
        os.close(stderr)


def _listen(reading: int, stderr: int, say: Say) -> None:
    rest, teller = b"", _Teller(say)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while chunk := pipe.read(_CHUNK):
            found = _LINE.findall(rest + chunk)
            for line in found[:1] + found[-1:]:
                teller.tell(json.loads(line))
            other = _LINE.sub(b"", rest + chunk)
            # What may be the beginning of such a line waits for its end.
            begin = other.rfind(b'{"stage"')
            rest = other[begin:] if begin >= 0 else b""
            if own := other[: len(other) - len(rest)]:
                os.write(stderr, own)


class _Teller:
    """Limits updates to a readable rate."""

    def __init__(self, say: Say) -> None:
        self._say, self._stage, self._told = say, "", 0.0

    def tell(self, line: dict[str, Any]) -> None:
        stage, now = line["stage"], time.monotonic()
        if stage != self._stage or now - self._told >= SECONDS:
            self._stage, self._told = stage, now
            words, unit = STAGES.get(stage, (stage, ""))
            self._say(words, line["current"], line["total"], unit)
