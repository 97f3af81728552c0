"""The programs of the suite, by kind and name."""

from __future__ import annotations

from itertools import zip_longest

from benchmarks.suite.case import Case
from benchmarks.suite.programs import counting, elementwise, images, models, moving, networks, ordering, products

KINDS: dict[str, dict[str, Case]] = {
    "elementwise": elementwise.CASES,
    "moving": moving.CASES,
    "images": images.CASES,
    "counting": counting.CASES,
    "ordering": ordering.CASES,
    "products": products.CASES,
    "networks": networks.CASES,
    "models": models.CASES,
}
# One of each kind after the other, so that a run that is cut short has seen all kinds.
_IN_TURN = [name for names in zip_longest(*KINDS.values()) for name in names if name is not None]
CASES: dict[str, Case] = {n: cases[n] for n in _IN_TURN for cases in KINDS.values() if n in cases}
KIND_OF: dict[str, str] = {name: kind for kind, cases in KINDS.items() for name in cases}
