"""The scripts that characters are of, by the words that their names begin with: ``tf.strings.unicode_script``.

The numbers are ICU's, ``UScriptCode``.  Characters of several scripts, such as digits and punctuation, are common;
marks that take the script of what they stand upon are inherited.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np

from hybridflow.compat.adapters.values import operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.types import TensorType
from hybridflow.ragged import Ragged
from hybridflow.strings.host import step

_COMMON, _INHERITED, _KATAKANA, _LATIN, _UNKNOWN, _INVALID = 0, 1, 22, 25, 103, -1
_WORDS = """
2 arabic, rumi; 3 armenian; 4 bengali; 5 bopomofo; 6 cherokee; 7 coptic; 8 cyrillic; 9 deseret; 10 devanagari;
11 ethiopic; 12 georgian; 13 gothic; 14 greek; 15 gujarati; 16 gurmukhi; 17 cjk, hangzhou, kangxi, vietnamese;
18 hangul, korean; 19 hebrew; 20 hentaigana, hiragana; 21 kannada; 22 katakana; 23 khmer; 24 lao; 25 latin,
roman; 26 malayalam; 27 mongolian; 28 myanmar; 29 ogham; 30 old italic; 31 oriya; 32 runic; 33 sinhala; 34
syriac; 35 tamil; 36 telugu; 37 thaana; 38 thai; 39 tibetan; 40 canadian syllabics; 41 yi; 42 tagalog; 43
hanunoo; 44 buhid; 45 tagbanwa; 46 braille; 47 cypriot; 48 limbu; 49 linear b; 50 osmanya; 51 shavian; 52 tai
le; 53 ugaritic; 55 buginese; 56 glagolitic; 57 kharoshthi; 58 syloti nagri; 59 new tai; 60 tifinagh; 61 old
persian; 62 balinese; 63 batak; 65 brahmi; 66 cham; 71 egyptian hieroglyph; 75 pahawh; 76 old hungarian; 78
javanese; 79 kayah li; 82 lepcha; 83 linear a; 84 mandaic; 86 meroitic hieroglyphic; 87 nko; 88 old turkic; 89
old permic; 90 phags-pa letter, phags-pa mark, phags-pa subjoined; 91 phoenician; 92 miao; 99 vai; 101
cuneiform; 104 carian; 106 tai tham; 107 lycian; 108 lydian; 109 ol chiki; 110 rejang; 111 saurashtra; 112
signwriting; 113 sundanese; 115 meetei mayek; 116 imperial aramaic; 117 avestan; 118 chakma; 120 kaithi; 121
manichaean; 122 inscriptional pahlavi; 123 psalter pahlavi; 125 inscriptional parthian; 126 samaritan; 127 tai
viet; 130 bamum; 131 lisu; 133 old south; 134 bassa vah; 135 duployan; 136 elbasan; 137 grantha; 140 mende
kikakui; 141 meroitic cursive; 142 old north; 143 nabataean; 144 palmyrene; 145 khudawadi; 146 warang citi; 149
mro; 150 nushu; 151 sharada; 152 sora sompeng; 153 takri; 154 tangut; 156 anatolian hieroglyph; 157 khojki; 158
tirhuta; 159 caucasian albanian; 160 mahajani; 161 ahom; 162 hatran; 163 modi; 164 multani; 165 pau cin; 166
siddham; 167 adlam; 168 bhaiksuki; 169 marchen; 170 newa; 171 osage; 175 masaram gondi; 176 soyombo; 177
zanabazar; 178 dogra; 179 gunjala gondi; 180 makasar; 181 medefaidrin; 182 hanifi rohingya; 183 sogdian; 184 old
sogdian; 185 elymaic; 186 nyiakeng puachue; 187 nandinagari; 188 wancho; 189 chorasmian; 190 dives; 191 khitan;
192 yezidi
"""
_NUMBERS = {
    word.strip(): int(number)
    for number, _, words in (entry.strip().partition(" ") for entry in _WORDS.replace("\n", " ").split(";"))
    for word in words.split(",")
}
_FORMS = "FULLWIDTH", "HALFWIDTH", "CIRCLED", "PARENTHESIZED", "COMBINING"  # which a name may begin with
_SPECIAL = {  # ranges whose names do not say
    _LATIN: (
        (0xAA, 0xAA),
        (0xBA, 0xBA),
        (0x2B0, 0x2B8),
        (0x2E0, 0x2E4),
        (0x1D2C, 0x1D5C),
        (0x1D62, 0x1D65),
        (0x1D9B, 0x1DBE),
    ),
    _INHERITED: ((0x200C, 0x200D), (0x64B, 0x655), (0x670, 0x670), (0x951, 0x954), (0x302A, 0x302D)),
    2: ((0x60B, 0x60B), (0x6F0, 0x6F9)),
    14: ((0x1D5D, 0x1D61), (0x1D66, 0x1D6A)),
    17: ((0x3005, 0x3005), (0x3007, 0x3007)),
    _KATAKANA: ((0x3300, 0x3357),),
    154: ((0x17000, 0x187F7), (0x18D00, 0x18D08)),
    _COMMON: (
        (0x31C0, 0x31E3),
        (0x102E1, 0x102FB),
        (0x309B, 0x309C),
        (0x30A0, 0x30A0),
        (0x60C, 0x60C),
        (0x61B, 0x61B),
        (0x61F, 0x61F),
        (0x640, 0x640),
        (0x37E, 0x37E),
        (0x30FB, 0x30FC),
        (0xFF65, 0xFF65),
        (0xFF70, 0xFF70),
    ),
}


@tf_export("strings.unicode_script")
def unicode_script(input: TensorLike, name: str | None = None) -> Any:
    """``tf.strings.unicode_script``: the number of the script of each code point."""
    if isinstance(input, Ragged):
        return input.map(unicode_script)
    codes = operand(input)
    scripts = np.vectorize(_script_of, otypes=[np.int32])
    return step(
        lambda array: scripts(array) if array.size else array, [codes], [TensorType(codes.shape, dtypes.int32)]
    )[0]


def _script_of(code: int) -> int:
    if not 0 <= code <= 0x10FFFF:
        return _INVALID
    for number, ranges in _SPECIAL.items():
        if any(first <= code <= last for first, last in ranges):
            return number
    character = chr(code)
    category = unicodedata.category(character)
    words = unicodedata.name(character, "").lower().split()
    if not words:
        return _COMMON if category == "Cc" else _UNKNOWN
    inside = words[1:] if words[0].upper() in _FORMS else words
    script = _NUMBERS.get(" ".join(inside[:2])) or _NUMBERS.get(inside[0].partition("-")[0] if inside else "")
    if category == "So" and script in (_LATIN, None):
        return _COMMON
    is_mark = category in ("Mn", "Me") and words[0] in ("combining", "variation", "vedic")
    if is_mark and script in (_LATIN, 14, None):
        return _INHERITED
    return _COMMON if script is None else script
