"""What no font can draw is told by name; which fonts there are is the machine's."""

from app.widgets.text import glyphs


def test_what_everybody_has_is_drawn(styled):
    assert glyphs.missing_glyphs("The naïve fox, ĝis revido – привет") == ""


def test_what_cannot_be_seen_is_no_box(styled):
    assert glyphs.missing_glyphs("\u200b\u200d\ufe0f \n\x00\u00a0") == ""


def test_a_box_is_told_by_the_name_of_its_character(styled, monkeypatch):
    monkeypatch.setattr(glyphs, "is_drawn", lambda letter: letter.isascii())
    assert glyphs.missing_glyphs("a漢漢") == (
        "No installed font has U+6F22 CJK UNIFIED IDEOGRAPH-6F22, so it appears as a box."
    )
    assert glyphs.missing_glyphs("漢字かな").endswith("U+304B HIRAGANA LETTER KA and 1 more, so they appear as boxes.")


def test_the_box_of_a_font_is_known(styled):
    assert not glyphs._is_in_a_font("\U0003fffd")
    assert glyphs._is_in_a_font("\u0301")
