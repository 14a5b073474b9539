"""Owns how the one style sheet of the window is filled with colours and pictures."""

from string import Template

from backend.contract.resources import resource


def style_sheet(tokens: dict[str, str], dark: bool) -> str:
    """`resources/theme/burnish.qss` with every `$name` replaced; an unknown name raises KeyError."""
    template = Template(resource("theme", "burnish.qss").read_text(encoding="utf-8"))
    pictures = resource("theme", "dark" if dark else "light").as_posix()
    return template.substitute(tokens, pictures=pictures)
