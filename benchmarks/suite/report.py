"""What came out, in numbers and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from benchmarks.suite.libraries import OURS

EVEN = 0.95  # ratios below this count as slower


def mean(ratios: Iterable[float]) -> float | None:
    """The geometric mean."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None


def summary(programs: dict[str, Any]) -> dict[str, Any]:
    """The geometric mean of the ratios, over all programs and by kind, and how many are slower than what."""
    ratios = {name: row["ratio"] for name, row in programs.items() if row["ratio"]}
    kinds = sorted({row["kind"] for row in programs.values()})
    return {
        "programs": len(programs),
        "compared": len(ratios),
        "geometric mean": mean(ratios.values()),
        "by kind": {kind: mean(r for n, r in ratios.items() if programs[n]["kind"] == kind) for kind in kinds},
        "below 0.95": sorted((n for n, r in ratios.items() if r < EVEN), key=ratios.__getitem__),
        "slower than eager": [n for n, row in programs.items() if row["eager"] and row["eager"] < EVEN],
        "slower than numpy": [n for n, row in programs.items() if (_times_numpy(row) or 1) < EVEN],
        "more memory than XLA": [n for n, row in programs.items() if _takes_more(row)],
        "no result": {
            name: {
                side: answer["why"]
                for side, answer in row["sides"].items()
                if answer["state"] not in ("ready", "absent")
            }
            for name, row in programs.items()
            if any(answer["state"] not in ("ready", "absent") for answer in row["sides"].values())
        },
    }


def _times_numpy(row: dict[str, Any]) -> float | None:
    numpy, ours = (row["sides"].get(side, {}).get("median") for side in ("numpy", OURS))
    return numpy / ours if numpy and ours else None


def _takes_more(row: dict[str, Any]) -> bool:
    """Whether our program needs more temporary memory than XLA's, where both are known."""
    ours, theirs = _temporary(row, OURS), _temporary(row, "jax")
    return ours is not None and theirs is not None and ours > theirs


def _temporary(row: dict[str, Any], side: str) -> int | None:
    return row["sides"].get(side, {}).get("temporary")


def table(found: dict[str, Any]) -> str:
    """A row for each program, then what they come to."""
    from hybridflow.cli import output

    rows = []
    for name, row in found["programs"].items():
        cells = [_time(row["sides"][side]) for side in found["sides"]]
        verdict = f"{row['ratio']:.2f} {row['best']}" if row["ratio"] else "-"
        mine, theirs = (_temporary(row, side) for side in (OURS, "jax"))
        memory = f"{_bytes(mine)} / {_bytes(theirs)}" if mine is not None or theirs is not None else ""
        rows.append([name, *cells, verdict, memory])
    return output.table(["program", *found["sides"], "best peer / ours", "temporaries, XLA's"], rows)


def _time(answer: dict[str, Any]) -> str:
    from hybridflow.cli import output

    if "median" not in answer:
        return "-" if answer["state"] == "absent" else answer["state"]
    spread = (answer["high"] - answer["low"]) / 2 / answer["median"]
    return f"{output.seconds(answer['median'])} ±{spread:.0%}"


def _bytes(count: int | None) -> str:
    if count is None:
        return "?"
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def conclusion(found: dict[str, Any]) -> str:
    """Limits, the geometric mean, and what is slower."""
    all_in_all, lines = found["summary"], []
    for title, threads in (("one", 1), ("all", found["threads"])):
        limits = found["limits"].get(title)
        if limits and (title == "one" or threads > 1):
            rates = f"read {limits['read'] / 1e9:.1f} GB/s, copy {limits['copy'] / 1e9:.1f} GB/s (both ways)"
            lines.append(f"limits, {threads} thread(s): {rates}, {limits['flops'] / 1e9:.0f} GFLOP/s")
    if all_in_all["geometric mean"]:
        kinds = ", ".join(f"{kind} {value:.2f}" for kind, value in all_in_all["by kind"].items() if value)
        lines.append(
            f"best peer / ours, geometric mean over {all_in_all['compared']} of {all_in_all['programs']} programs: "
            f"{all_in_all['geometric mean']:.2f} ({kinds})"
        )
    for key in ("below 0.95", "slower than eager", "slower than numpy", "more memory than XLA"):
        names = all_in_all[key]
        lines.append(f"{key}: {len(names)}" + (f" ({'; '.join(names)})" if names else ""))
    if found["left"]:
        lines.append(f"not measured, for lack of time: {len(found['left'])} ({'; '.join(found['left'])})")
    for name, why in all_in_all["no result"].items():
        lines += [f"{name}, {side}: {reason}" for side, reason in why.items()]
    return "\n".join(lines)
