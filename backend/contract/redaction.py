"""Removes secrets (Hub tokens, credentials in URLs) from what is shown or stored (stdlib only)."""

import os
import re
from contextlib import suppress
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.safe_files import read_regular

MAX_TOKEN = 10_000
TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
HIDDEN = "[hub token]"
HIDDEN_IN_URL = "[hidden]"
_LOOKS_LIKE_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{10,}\b")
_NAMED_IN_URL = re.compile(r"(?<=://)[^/\s?#'\"<>]+@")
_ASKED_BY_URL = re.compile(r"(://[^\s?#'\"<>]+\?)[^\s#'\"<>]+")


def redact(text: str) -> str:
    """`text` without this user's hub token, anything like a token, and names, passwords and queries in URLs."""
    text = _ASKED_BY_URL.sub(rf"\1{HIDDEN_IN_URL}", _NAMED_IN_URL.sub(f"{HIDDEN_IN_URL}@", text))
    for token in _tokens():
        text = text.replace(token, HIDDEN)
    return _LOOKS_LIKE_TOKEN.sub(HIDDEN, text)


def token_file() -> Path:
    """Where the hub library stores the token of the logged-in user."""
    return Path(os.environ.get("HF_TOKEN_PATH") or _hub_home() / "token").expanduser()


def _tokens() -> list[str]:
    words = [os.environ.get(name, "") for name in TOKEN_VARIABLES]
    with suppress(OSError, InputError):  # not signed in, the file is another user's, or not a file
        words.append(read_regular(token_file(), MAX_TOKEN).decode("utf-8", "replace"))
    return [word.strip() for word in words if len(word.strip()) >= 8]


def _hub_home() -> Path:
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface"
