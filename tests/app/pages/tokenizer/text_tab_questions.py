"""What the Text tab asks, caught before it reaches the helper."""

import pytest

from app.pages.tokenizer.text.text_tab import TextTab


def asked(tab: TextTab, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict]]:
    """What the tab asks from now on; nobody answers."""
    tab.tokenizer = "some"
    found: list[tuple[str, dict]] = []
    ticket = type("Ticket", (), {"cancel": lambda self: None})

    def ask(query, arguments, *_):
        found.append((query, arguments))
        return ticket()

    monkeypatch.setattr(tab._context.client, "ask", ask)
    return found
