"""The colours of the window, light and dark, and the Qt palette and style sheet made from them."""

import re
from string import Template

from PySide6.QtGui import QColor, QPalette

from backend.contract.resources import resource

LIGHT: dict[str, str] = {
    "window": "#f6f7f9",
    "sidebar": "#eff0f4",
    "card": "#ffffff",
    "card_alternate": "#f7f8fa",
    "field": "#ffffff",
    "field_disabled": "#f3f4f7",
    "border": "#dde1e8",
    "border_strong": "#c3c9d5",
    "control": "#848da0",
    "divider": "#eaecf1",
    "track": "#dde1e8",
    "text": "#14161c",
    "muted": "#525969",
    "faint": "#5b6274",
    "disabled": "#a3a9b8",
    "accent": "#4f46e5",
    "accent_hover": "#4338ca",
    "accent_pressed": "#3730a3",
    "accent_text": "#4f46e5",
    "accent_soft": "#e7e6fb",
    "on_accent": "#ffffff",
    "focus": "#4f46e5",
    "focus_on_accent": "#0d0a24",
    "selection": "#e0e0fb",
    "hover": "#f0f1f6",
    "hover_sidebar": "#e5e7ee",
    "success": "#00704b",
    "success_soft": "#dcf5e5",
    "warning": "#a5480a",
    "warning_soft": "#fdeed8",
    "danger": "#a01023",
    "danger_soft": "#fde5e5",
    "info": "#1d5fd0",
    "info_soft": "#e0ecfd",
    "tooltip": "#1d2029",
    "tooltip_text": "#f4f5f8",
    "scrollbar": "#848da0",
    "scrollbar_hover": "#6f788c",
    "plot_1": "#4f46e5",
    "plot_1_raw": "#b8b4f6",
    "plot_2": "#d96c06",
    "plot_2_raw": "#f3c79d",
    "plot_3": "#00998d",
    "plot_3_raw": "#99d6d1",
    "plot_4": "#c9045b",
    "plot_4_raw": "#ea9bbd",
    "plot_5": "#0878b8",
    "plot_5_raw": "#a2cfe8",
    "plot_axis": "#c9cfda",
    "plot_grid": "#eceff4",
    "token_0": "#dbe8fd",
    "token_1": "#fde58a",
    "token_2": "#cdf7e2",
    "token_3": "#fbcfe6",
    "token_4": "#e8d8fd",
    "token_5": "#fed6aa",
    "token_text": "#14161c",
    "token_special": "#e4e7ed",
    "token_special_text": "#4f5667",
}
DARK: dict[str, str] = {
    "window": "#0e1116",
    "sidebar": "#14171d",
    "card": "#161a21",
    "card_alternate": "#12161c",
    "field": "#1b2029",
    "field_disabled": "#171b22",
    "border": "#2a303b",
    "border_strong": "#404858",
    "control": "#687287",
    "divider": "#222832",
    "track": "#242a34",
    "text": "#e7eaf0",
    "muted": "#a3acbe",
    "faint": "#99a2b7",
    "disabled": "#5d6576",
    "accent": "#5f62ea",
    "accent_hover": "#6366ee",
    "accent_pressed": "#4b4ed6",
    "accent_text": "#8f93fb",
    "accent_soft": "#262a4d",
    "on_accent": "#ffffff",
    "focus": "#8f93fb",
    "focus_on_accent": "#ffffff",
    "selection": "#2a2e56",
    "hover": "#1e232c",
    "hover_sidebar": "#1d222b",
    "success": "#2adb9a",
    "success_soft": "#14301f",
    "warning": "#f4a94a",
    "warning_soft": "#36260f",
    "danger": "#f86e66",
    "danger_soft": "#3a1a1c",
    "info": "#6aa8fb",
    "info_soft": "#152a47",
    "tooltip": "#e7eaf0",
    "tooltip_text": "#14161c",
    "scrollbar": "#656e80",
    "scrollbar_hover": "#7a8498",
    "plot_1": "#8f93fb",
    "plot_1_raw": "#45498c",
    "plot_2": "#f59e42",
    "plot_2_raw": "#74502b",
    "plot_3": "#43d69d",
    "plot_3_raw": "#1f644f",
    "plot_4": "#ea69b2",
    "plot_4_raw": "#743c5b",
    "plot_5": "#79ccfb",
    "plot_5_raw": "#3a6179",
    "plot_axis": "#343b48",
    "plot_grid": "#1f252e",
    "token_0": "#213a5e",
    "token_1": "#544614",
    "token_2": "#104a35",
    "token_3": "#582743",
    "token_4": "#402a63",
    "token_5": "#5a3716",
    "token_text": "#eceef4",
    "token_special": "#2b313c",
    "token_special_text": "#b6bdcc",
}
_ROLES = {
    QPalette.ColorRole.Window: "window",
    QPalette.ColorRole.WindowText: "text",
    QPalette.ColorRole.Base: "card",
    QPalette.ColorRole.AlternateBase: "card_alternate",
    QPalette.ColorRole.Text: "text",
    QPalette.ColorRole.PlaceholderText: "faint",
    QPalette.ColorRole.Button: "card",
    QPalette.ColorRole.ButtonText: "text",
    QPalette.ColorRole.BrightText: "danger",
    QPalette.ColorRole.Highlight: "selection",
    QPalette.ColorRole.HighlightedText: "text",
    QPalette.ColorRole.ToolTipBase: "tooltip",
    QPalette.ColorRole.ToolTipText: "tooltip_text",
    QPalette.ColorRole.Link: "accent_text",
    QPalette.ColorRole.Light: "card",
    QPalette.ColorRole.Midlight: "hover",
    QPalette.ColorRole.Mid: "border",
    QPalette.ColorRole.Dark: "border_strong",
}


def palette_of(tokens: dict[str, str]) -> QPalette:
    """Every colour role from the tokens; text of disabled widgets is grey."""
    palette = QPalette()
    for role, name in _ROLES.items():
        palette.setColor(role, QColor(tokens[name]))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(tokens["disabled"]))
    return palette


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
