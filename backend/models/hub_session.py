"""Owns how patiently the hub is asked: whoever looks at a list is told at once, whatever the hub library would wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from huggingface_hub import get_session
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]
from huggingface_hub.utils import hf_raise_for_status

from backend.data.hub_answers import guard
from backend.models.hub_mistakes import Unanswered

SECONDS = 12.0


@contextmanager
def asked_once(seconds: float = SECONDS) -> Iterator[None]:
    """Within it the hub library asks once and waits so long; by itself it asks six times and waits for ever.

    Raises Unanswered where nothing answers, and the hub library's own error for a bad status.
    """
    guard()
    session: Any = get_session()
    ask = session.request

    def once(*given: Any, **options: Any) -> Any:
        try:
            response = ask(*given, **{**options, "timeout": seconds})
        except HTTPError as error:
            raise Unanswered(error) from None
        hf_raise_for_status(response)
        return response

    session.request = once
    try:
        yield
    finally:
        del session.request
