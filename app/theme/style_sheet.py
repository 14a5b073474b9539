"""Owns how the one style sheet of the window is filled with colours and pictures."""

import re
from string import Template

from backend.contract.resources import resource

_GROWS = re.compile(r"\b(font-size|min-height|max-height|min-width|max-width): (\d\d+)px")
"""What follows the text size; a single digit is a line or a bar."""


def style_sheet(tokens: dict[str, str], dark: bool, scale: float = 1.0) -> str:
    """`resources/theme/burnish.qss` with every `$name` replaced; an unknown name raises KeyError. `scale` is the text's."""
    template = Template(resource("theme", "burnish.qss").read_text(encoding="utf-8"))
    pictures = resource("theme", "dark" if dark else "light").as_posix()
    filled = template.substitute(tokens, pictures=pictures)
    if scale == 1.0:
        return filled
    return _GROWS.sub(lambda found: f"{found[1]}: {round(int(found[2]) * scale)}px", filled)
