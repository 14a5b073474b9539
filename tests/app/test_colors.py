"""The colours of both themes: enough contrast to be read, and apart for eyes that see two colours instead of three."""

from itertools import combinations

import pytest
from PySide6.QtGui import QColor

from app import theme
from app.theme.palette import DARK, LIGHT
from app.widgets.pill import KINDS
from app.widgets.plots.confusion_matrix import tint

TEXT, CONTROL = 4.5, 3.0
"""Contrast that WCAG 2.2 asks of text (1.4.3) and of what a control is known by (1.4.11)."""
SURFACES = ("window", "sidebar", "card", "card_alternate", "field", "hover", "selection")
INKS = ("text", "muted", "faint", "accent_text", "success", "warning", "danger")
SIGNALS = ("success", "warning", "danger")
DISABLED = 2.0
"""What cannot be used has no measure in WCAG; it must not vanish all the same."""
CURVES = ("plot_1", "plot_2", "plot_3", "plot_4", "plot_5")
GROUNDS = tuple(f"token_{number}" for number in range(6))
PAIRS = (
    *((f"{name}", f"{name}_soft") for name in (*SIGNALS, "info")),
    *(("text", f"{name}_soft") for name in (*SIGNALS, "info", "accent")),
    *(("token_text", ground) for ground in GROUNDS),
    *(("token_special_text", ground) for ground in GROUNDS),
    ("accent_text", "accent_soft"),
    ("muted", "divider"),
    ("muted", "hover_sidebar"),
    ("on_accent", "accent"),
    ("on_accent", "accent_hover"),
    ("on_accent", "accent_pressed"),
    ("tooltip_text", "tooltip"),
    ("token_special_text", "token_special"),
)
EYES = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "without red cones": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "without green cones": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
"""Linear RGB as it is seen, by Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of Color
Vision Deficiency, IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009, severity 1.0."""

themes = pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
eyes = pytest.mark.parametrize("eye", EYES)


def linear(color: str) -> list[float]:
    """`#rrggbb` without sRGB's curve."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    """As WCAG defines it, from 1 to 21."""
    lights = [
        0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in (linear(color) for color in (one, other))
    ]
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def lab(rgb: list[float]) -> tuple[float, float, float]:
    """CIE L*a*b* under D65 of linear sRGB."""
    red, green, blue = (min(1.0, max(0.0, part)) for part in rgb)
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str, eye: str) -> float:
    """CIE 1976 colour difference as that eye sees it; from 2 on it is noticed."""
    seen = [
        lab([sum(part * share for part, share in zip(linear(color), row, strict=True)) for row in EYES[eye]])
        for color in (one, other)
    ]
    return sum((a - b) ** 2 for a, b in zip(*seen, strict=True)) ** 0.5


def test_both_themes_have_the_same_names():
    assert list(LIGHT) == list(DARK)


@themes
@pytest.mark.parametrize("ink", INKS)
def test_text_is_read_on_every_surface(tokens: dict[str, str], ink: str):
    found = {surface: contrast(tokens[ink], tokens[surface]) for surface in SURFACES}
    assert min(found.values()) >= TEXT, found


@themes
@pytest.mark.parametrize("pair", PAIRS, ids=" on ".join)
def test_text_is_read_on_its_own_ground(tokens: dict[str, str], pair: tuple[str, str]):
    assert contrast(tokens[pair[0]], tokens[pair[1]]) >= TEXT


@themes
def test_the_focus_is_seen_on_every_surface(tokens: dict[str, str]):
    grounds = (*SURFACES, *GROUNDS, "hover_sidebar", "accent_soft", "warning_soft", "token_special")
    found = {ground: contrast(tokens["focus"], tokens[ground]) for ground in grounds}
    assert min(found.values()) >= CONTROL, found
    assert contrast(tokens["focus_on_accent"], tokens["accent"]) >= CONTROL


@themes
@pytest.mark.parametrize("name", ["accent", *SIGNALS])
def test_a_bar_stands_out_of_its_track(tokens: dict[str, str], name: str):
    assert contrast(tokens[name], tokens["track"]) >= CONTROL


@themes
@pytest.mark.parametrize("ground", ["window", "card", "field", "field_disabled"])
def test_what_is_disabled_can_still_be_seen(tokens: dict[str, str], ground: str):
    assert contrast(tokens["disabled"], tokens[ground]) >= DISABLED


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("name", ["success", "danger"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_numbers_of_the_confusion_matrix_are_read(qapp, look: str, name: str, share: float):
    theme.apply(qapp, look)
    cell = tint(name, share)
    parts = zip(cell.getRgb()[:3], theme.color("card_alternate").getRgb()[:3], strict=True)
    mixed = [round(cell.alphaF() * over + (1 - cell.alphaF()) * under) for over, under in parts]
    ground = QColor(*mixed).name()
    found = contrast(theme.hex_color("text"), ground)
    theme.apply(qapp, "light")
    assert found >= TEXT, ground


def test_every_pill_can_be_read():
    assert set(KINDS.values()) <= {*PAIRS}


@themes
@pytest.mark.parametrize("name", ["accent", "info", "control", "scrollbar", *SIGNALS, *CURVES])
def test_controls_and_curves_stand_out(tokens: dict[str, str], name: str):
    found = {surface: contrast(tokens[name], tokens[surface]) for surface in ("window", "card", "field")}
    assert min(found.values()) >= CONTROL, found


@themes
@eyes
@pytest.mark.parametrize(("names", "least"), [(SIGNALS, 15), (CURVES, 20)], ids=["signals", "curves"])
def test_colours_that_mean_something_stay_apart(tokens: dict[str, str], eye: str, names: tuple[str, ...], least: float):
    found = {pair: distance(tokens[pair[0]], tokens[pair[1]], eye) for pair in combinations(names, 2)}
    assert min(found.values()) >= least, found


@themes
@eyes
def test_neighbouring_tokens_differ(tokens: dict[str, str], eye: str):
    neighbours = zip(GROUNDS, (*GROUNDS[1:], GROUNDS[0]), strict=True)
    found = {pair: distance(tokens[pair[0]], tokens[pair[1]], eye) for pair in neighbours}
    assert min(found.values()) >= 8, found


def test_measures_agree_with_published_values():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert lab(linear("#ff0000")) == pytest.approx((53.24, 80.09, 67.20), abs=0.05)
    assert distance("#ff0000", "#ff0000", "without red cones") == 0
