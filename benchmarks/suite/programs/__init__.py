"""The programs of the suite, by kind and name."""

from __future__ import annotations

from benchmarks.suite.case import Case
from benchmarks.suite.programs import elementwise, moving, networks, ordering, products

KINDS: dict[str, dict[str, Case]] = {
    "elementwise": elementwise.CASES,
    "moving": moving.CASES,
    "ordering": ordering.CASES,
    "products": products.CASES,
    "networks": networks.CASES,
}
CASES: dict[str, Case] = {name: case for cases in KINDS.values() for name, case in cases.items()}
KIND_OF: dict[str, str] = {name: kind for kind, cases in KINDS.items() for name in cases}
