"""Finds which Unicode scripts a text is written in, for many short texts at once."""

import sys
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

_FREQUENT_FIRST = (
    "Latin Han Cyrillic Arabic Hangul Hiragana Katakana Devanagari Greek Hebrew Thai Bengali Tamil Sinhala Georgian "
    "Armenian Telugu Kannada Malayalam Gujarati Gurmukhi Oriya Myanmar Khmer Lao Ethiopic Tibetan Mongolian Thaana "
    "Syriac Cherokee Canadian_Aboriginal Bopomofo Braille Coptic Gothic Runic Tifinagh Yi Adlam Ahom "
    "Anatolian_Hieroglyphs Avestan Balinese Bamum Bassa_Vah Batak Bhaiksuki Brahmi Buginese Buhid Carian "
    "Caucasian_Albanian Chakma Cham Chorasmian Cuneiform Cypriot Cypro_Minoan Deseret Dives_Akuru Dogra Duployan "
    "Egyptian_Hieroglyphs Elbasan Elymaic Glagolitic Grantha Gunjala_Gondi Hanifi_Rohingya Hanunoo Hatran "
    "Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kawi Kayah_Li Kharoshthi "
    "Khitan_Small_Script Khojki Khudawadi Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Mandaic "
    "Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs "
    "Miao Modi Mro Multani Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham "
    "Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian "
    "Old_Turkic Old_Uyghur Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi "
    "Rejang Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sogdian Sora_Sompeng Soyombo Sundanese "
    "Syloti_Nagri Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tangsa Tangut Tirhuta Toto Ugaritic Vai Vithkuqi "
    "Wancho Warang_Citi Yezidi Zanabazar_Square"
)
NAMES = _FREQUENT_FIRST.split()
"""Of https://www.unicode.org/Public/UNIDATA/Scripts.txt, the frequent ones first; digits, signs and emoji have none."""
_NONE = 255
_SURROGATES = range(0xD800, 0xE000)


def scripts_of(texts: Sequence[str]) -> list[str]:
    """The scripts of each text, comma-separated; empty if there are none."""
    lengths = np.fromiter((len(text) for text in texts), np.int64, len(texts))
    signs = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = _table(signs)[signs]
    rows = np.repeat(np.arange(len(texts)), lengths)
    known = codes != _NONE
    pairs = _distinct(np.sort(_distinct(rows[known] * 256 + codes[known])))
    found = np.full(len(texts), "", dtype=object)
    first = np.diff(pairs // 256, prepend=-1) != 0
    found[pairs[first] // 256] = np.array(NAMES, dtype=object)[pairs[first] % 256]
    for pair in pairs[~first].tolist():
        found[pair // 256] += f", {NAMES[pair % 256]}"
    return found.tolist()


def _distinct(numbers: np.ndarray) -> np.ndarray:
    """The values without adjacent duplicates; numpy's `unique` takes ten times as long here."""
    return numbers[np.diff(numbers, prepend=-1) != 0]


def count_scripts(scripts: pa.ChunkedArray) -> dict[str, int]:
    """How many texts contain letters of each script, most frequent first; `scripts` as from `scripts_of`."""
    totals: dict[str, int] = {}
    for each in compute.value_counts(scripts).to_pylist():
        for name in filter(None, each["values"].split(", ")):
            totals[name] = totals.get(name, 0) + each["counts"]
    return dict(sorted(totals.items(), key=lambda one: (-one[1], one[0])))


def _table(signs: np.ndarray) -> np.ndarray:
    """Code point → index of its script, for those that occur."""
    occurs = np.zeros(sys.maxunicode + 1, dtype=bool)
    occurs[signs] = True
    distinct = np.flatnonzero(occurs)
    table = np.full(len(occurs), _NONE, np.uint8)
    table[distinct] = _codes(distinct)
    return table


def _codes(signs: np.ndarray) -> np.ndarray:
    """The index in NAMES of each code point's script, or _NONE."""
    codes = np.full(len(signs), _NONE, np.uint8)
    letters = [chr(sign) if sign not in _SURROGATES else " " for sign in signs.tolist()]
    left = np.arange(len(signs))
    for code, name in enumerate(_known_names()):
        if not len(left):
            break
        if not name:
            continue
        hits = _matches([letters[place] for place in left.tolist()], name)
        codes[left[hits]] = code
        left = left[~hits]
    return codes


def _matches(letters: list[str], name: str) -> np.ndarray:
    options = compute.MatchSubstringOptions(rf"^\p{{{name}}}")
    hits = compute.call_function("match_substring_regex", [pa.array(letters, pa.string())], options)
    return hits.to_numpy(zero_copy_only=False)


@lru_cache(1)
def _known_names() -> tuple[str, ...]:
    """NAMES, with an empty entry for each script newer than the regular expressions' tables."""
    return tuple(name if _is_known(name) else "" for name in NAMES)


def _is_known(name: str) -> bool:
    try:
        _matches(["a"], name)
    except pa.ArrowInvalid:
        return False
    return True
