"""A picture of a run as SVG: a bar for the ratio of each program, and a roofline."""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.suite.libraries import OURS
from benchmarks.suite.report import EVEN

_ROW, _LEFT, _WIDTH, _TOP = 13, 210, 560, 40  # of the bars, in pixels
_LOW, _HIGH = 1 / 8, 16.0  # ratios at the ends of the axis
_COLOURS = {
    "elementwise": "#4269d0",
    "moving": "#efb118",
    "ordering": "#ff725c",
    "products": "#6cc5b0",
    "networks": "#a463f2",
}


def svg(found: dict[str, Any]) -> str:
    """The picture of what the suite found."""
    rows = [(name, row) for name, row in found["programs"].items() if row["ratio"]]
    rows.sort(key=lambda item: -item[1]["ratio"])
    height = max(_TOP + _ROW * len(rows) + 40, 460)
    parts = [*_bars(rows, found), *_roofline(found)]
    size = f'width="1420" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">'
    return "\n".join([head, f'<rect {size} fill="white"/>', *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: float = 1) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def _bars(rows: list[tuple[str, Any]], found: dict[str, Any]) -> list[str]:
    """The ratio of each program on a logarithmic axis, from 1 to the left or right."""

    def at(ratio: float) -> float:
        share = math.log(min(max(ratio, _LOW), _HIGH) / _LOW) / math.log(_HIGH / _LOW)
        return _LEFT + share * _WIDTH

    bottom = _TOP + _ROW * len(rows)
    mean = found["summary"]["geometric mean"]
    title = f"best peer's time / hybridflow's, {found['threads']} thread(s)" + (
        f", geometric mean {mean:.2f}" if mean else ""
    )
    parts = [_text(10, 16, title, ' font-size="13" font-weight="bold"')]
    for ratio in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16):
        parts += [_line(at(ratio), _TOP, at(ratio), bottom, "#333" if ratio == 1 else "#ddd")]
        parts += [_text(at(ratio), _TOP - 5, f"{ratio:g}", ' text-anchor="middle"')]
    for k, (name, row) in enumerate(rows):
        y = _TOP + _ROW * k
        begin, end = sorted((at(1), at(row["ratio"])))
        mark = ' fill="#c00"' if row["ratio"] < EVEN else ""
        parts.append(_text(_LEFT - 6, y + 10, name, f' text-anchor="end"{mark}'))
        colour = _COLOURS.get(row["kind"], "#888")
        parts.append(
            f'<rect x="{begin:.1f}" y="{y + 2}" width="{max(end - begin, 1):.1f}" height="{_ROW - 3}" fill="{colour}"/>'
        )
        parts.append(_text(end + 3, y + 10, f"{row['ratio']:.2f} {row['best']}"))
    for k, (kind, colour) in enumerate(_COLOURS.items()):
        parts.append(f'<rect x="{_LEFT + 90 * k}" y="{bottom + 12}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(_LEFT + 90 * k + 14, bottom + 21, kind))
    return parts


def _roofline(found: dict[str, Any]) -> list[str]:
    """Operations per second over operations per byte of arguments and results, under what the machine allows."""
    limits = found["limits"].get("all")
    if not limits:
        return []
    left, top, width, height = 900, 60, 480, 340
    low, high, peak = 2.0**-6, 2.0**10, limits["flops"]
    least = peak / 2**14

    def x(intensity: float) -> float:
        return left + width * math.log(min(max(intensity, low), high) / low) / math.log(high / low)

    def y(rate: float) -> float:
        return top + height * (1 - math.log(min(max(rate, least), 2 * peak) / least) / math.log(2 * peak / least))

    parts = [
        _text(left, 16, "roofline: operations a second over operations per byte", ' font-size="13" font-weight="bold"')
    ]
    for power in range(-6, 11, 2):
        parts.append(_text(x(2.0**power), top + height + 14, f"{2.0**power:g}", ' text-anchor="middle"'))
    corner = peak / limits["read"]
    parts.append(_line(x(low), y(low * limits["read"]), x(corner), y(peak), "#333", 1.5))
    parts.append(_line(x(corner), y(peak), x(high), y(peak), "#333", 1.5))
    parts.append(_line(x(low), y(low * limits["copy"]), x(peak / limits["copy"]), y(peak), "#999"))
    parts.append(_text(x(high), y(peak) - 5, f"{peak / 1e9:.0f} GFLOP/s", ' text-anchor="end"'))
    parts.append(
        _text(left, top - 8, f"read {limits['read'] / 1e9:.1f} GB/s, copy {limits['copy'] / 1e9:.1f} GB/s (grey)")
    )
    for name, row in found["programs"].items():
        ours = row["sides"].get(OURS, {})
        if ours.get("operations") and ours.get("median") and ours.get("bytes"):
            across, up = x(ours["operations"] / ours["bytes"]), y(ours["operations"] / ours["median"])
            shape = f'cx="{across:.1f}" cy="{up:.1f}" r="3" fill="{_COLOURS.get(row["kind"], "#888")}"'
            parts.append(f"<circle {shape}><title>{escape(name)}</title></circle>")
    return parts
