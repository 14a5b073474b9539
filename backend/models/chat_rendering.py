"""Renders chat templates, which are untrusted, in a separate process with a time and a memory limit per chat.

The process starts with the first chat, serves all later ones, and ends with this process or when a limit is hit.
"""

import atexit
import contextlib
import faulthandler
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from backend.contract.messages import message
from backend.contract.processes import python_command
from backend.contract.tokens.chat_template import STUMBLES, line_of, reason_of

SECONDS = 5.0
"""The longest that one chat may take; its prefixes add a little each."""
SECONDS_PER_PREFIX = 0.05
MEMORY = 1 << 30
"""Bytes beyond what the process has at its start. Only Linux knows such a limit; the others have the two above and below."""
MAX_CHARACTERS = 2_000_000
"""The longest text that a template may write of one chat: three novels, and more than any model reads."""

_REQUEST = 4_000_000
"""Characters of messages that are sent at once."""
_TIME_IS_UP = 1
"""The exit code of faulthandler."""
_OUT_OF_MEMORY = 4


@dataclass(frozen=True)
class RenderRequest:
    """One chat to render, and the prefixes to render: a number of messages, and whether a generation prompt follows."""

    messages: Sequence[Mapping[str, str]]
    prompt: bool = False
    prefixes: Sequence[tuple[int, bool]] = ()


@dataclass(frozen=True)
class RenderedChat:
    """A chat as text; `ends` says where each prefix ends in it, None if the template renders it differently."""

    text: str
    ends: tuple[int | None, ...]


class TemplateRefusal(Exception):
    """The template rejects a chat or hits a limit; `position` is the chat's index in the request."""

    def __init__(self, position: int, reason: str, line: int | None = None, is_syntax: bool = False) -> None:
        super().__init__(reason)
        self.position, self.reason, self.line, self.is_syntax = position, reason, line, is_syntax


class Renderer:
    """The client side of the process, which is started when needed."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._inherited: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def render(
        self, template: str, special_tokens: Mapping[str, Any], chats: Sequence[RenderRequest]
    ) -> list[RenderedChat]:
        """The texts of the chats, in order. Raises TemplateRefusal for the first that fails."""
        head = {"template": template, "special_tokens": dict(special_tokens)}
        found: list[RenderedChat] = []
        with self._lock:
            for part in _split_requests(chats):
                requests = [[list(one.messages), one.prompt, list(one.prefixes)] for one in part]
                found += self._request(json.dumps(head | {"chats": requests}, default=str), len(part), len(found))
        return found

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        assert process.stdin
        assert process.stdout
        process.kill()
        process.wait()
        with contextlib.suppress(OSError):  # it ended before it had read all
            process.stdin.close()
        process.stdout.close()

    def _request(self, request: str, count: int, before: int) -> Iterator[RenderedChat]:
        process = self._ensure_started()
        assert process.stdin
        assert process.stdout
        try:
            _write(process.stdin, request)
            for number in range(before, before + count):
                line = process.stdout.readline()
                if not line.endswith(b"\n"):
                    raise TemplateRefusal(number, self._explain_exit(process.wait()))
                reply = json.loads(line)
                if "reason" in reply:
                    raise TemplateRefusal(number, reply["reason"], reply["line"], reply["is_syntax"])
                yield RenderedChat(reply["text"], tuple(reply["ends"]))
        except TemplateRefusal:
            raise  # with a refusal it ends what it has to say, or itself
        except BaseException:
            self.close()  # its answers would be mistaken for those to the next request
            raise

    def _ensure_started(self) -> "subprocess.Popen[bytes]":
        if self._process is not None and self._owner != os.getpid():
            self._inherited.append(self._process)  # a fork has it too, but the parent alone may talk to it
            self._process = None
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._owner = os.getpid()
            self._process = subprocess.Popen(
                python_command(__name__, str(self._seconds)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # what interrupts this process is for this process to answer
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # whose threads would take address space
            )
        return self._process

    def _explain_exit(self, code: int) -> str:
        if code == _TIME_IS_UP:
            return message("it did not finish within {seconds:g} seconds", seconds=self._seconds)
        if code == _OUT_OF_MEMORY:
            return message("it needs more than {memory} GB of memory", memory=MEMORY >> 30)
        return message("the process that renders it exited with code {code}", code=code)


_renderer = Renderer()
atexit.register(_renderer.close)


def render(template: str, special_tokens: Mapping[str, Any], chats: Sequence[RenderRequest]) -> list[RenderedChat]:
    """The texts of the chats, in order, by this process's renderer. Raises TemplateRefusal for the first failure."""
    return _renderer.render(template, special_tokens, chats)


def _split_requests(chats: Sequence[RenderRequest]) -> Iterator[Sequence[RenderRequest]]:
    start = size = 0
    for number, chat in enumerate(chats):
        length = sum(len(part) for message in chat.messages for part in message.values())
        if size and size + length > _REQUEST:
            yield chats[start:number]
            start, size = number, 0
        size += length
    if chats[start:]:
        yield chats[start:]


def _write(pipe: IO[bytes], request: str) -> None:
    try:
        pipe.write(request.encode("ascii") + b"\n")
        pipe.flush()
    except OSError:
        return  # it has ended; reading says why


def _serve(seconds: float) -> None:
    """Runs in the child process: answers requests until there are no more."""
    render = _load_renderer()  # loads what the limits are to leave out
    _limit_memory()
    with Path(os.devnull).open("w") as nowhere:
        for line in sys.stdin.buffer:
            try:
                _answer_all(line, render, seconds, nowhere)
            except MemoryError:
                os._exit(_OUT_OF_MEMORY)


def _load_renderer() -> Any:
    """transformers' template renderer, without the rest of the package.

    Importing the package scans all its models, which takes three times as long as everything else here, so
    empty packages replace it. torch takes seconds and address space. No template needs either.
    """
    sys.modules["torch"] = None  # type: ignore[assignment]
    found = importlib.util.find_spec("transformers")
    assert found
    assert found.submodule_search_locations
    for name in ("transformers", "transformers.utils"):
        sys.modules[name] = package = ModuleType(name)
        package.__path__ = [str(Path(place, *name.split(".")[1:])) for place in found.submodule_search_locations]
    try:
        from transformers.utils.chat_template_utils import render_jinja_template
    except (ImportError, AttributeError):  # a version of transformers whose renderer needs what the packages hold
        for name in [name for name in sys.modules if name.split(".")[0] == "transformers"]:
            del sys.modules[name]
        from transformers.utils.chat_template_utils import render_jinja_template
    return render_jinja_template


def _answer_all(line: bytes, render_template: Any, seconds: float, nowhere: IO[str]) -> None:
    request = json.loads(line)
    until = 0.0
    for messages, prompt, prefixes in request["chats"]:
        limit = time.monotonic() + seconds + SECONDS_PER_PREFIX * len(prefixes)
        if limit > until + 0.1 * seconds:  # each time a thread is started, which takes as long as many a chat
            until = limit
            faulthandler.dump_traceback_later(
                until - time.monotonic(), exit=True, file=nowhere
            )  # ends loops in C code too
        answer = _answer(request, messages, prompt, prefixes, render_template)
        sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n")
        sys.stdout.buffer.flush()
        if "reason" in answer:
            break
    faulthandler.cancel_dump_traceback_later()


def _answer(
    request: dict[str, Any],
    messages: list[dict[str, str]],
    prompt: bool,
    prefixes: list[tuple[int, bool]],
    render: Any,
) -> dict[str, Any]:
    from jinja2 import TemplateError, TemplateSyntaxError

    def text_of(part: list[dict[str, str]], prompt: bool) -> str:
        if not part:
            raise ValueError(message("it cannot be rendered without any messages"))
        found = render(
            [part], chat_template=request["template"], add_generation_prompt=prompt, **request["special_tokens"]
        )[0][0]
        if len(found) > MAX_CHARACTERS:
            raise ValueError(
                message("it writes more than {max_characters:,} characters", max_characters=MAX_CHARACTERS)
            )
        return str(found)

    try:
        text = text_of(messages, prompt)
        ends: list[int | None] = []
        for number, before_prompt in prefixes:
            part = text_of(messages[:number], before_prompt)
            ends.append(len(part) if text.startswith(part) else None)
    except (TemplateError, *STUMBLES) as error:
        return {"reason": reason_of(error), "line": line_of(error), "is_syntax": isinstance(error, TemplateSyntaxError)}
    return {"text": text, "ends": ends}


def _limit_memory() -> None:
    size = Path("/proc/self/statm")
    if not size.exists():
        return
    import resource

    most = int(size.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") + MEMORY
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
