"""Counters and histograms, as the text that Prometheus reads."""

from __future__ import annotations

import bisect
import threading
from collections import defaultdict
from collections.abc import Iterator

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_HELP = {
    "hf_requests_total": ("counter", "Requests for answers, by the status that was answered."),
    "hf_request_seconds": ("histogram", "From a request's last byte to its answer's first."),
    "hf_batch_size": ("histogram", "Rows that were computed at once."),
    "hf_compute_seconds_total": ("counter", "Time in programs."),
    "hf_queue_depth": ("gauge", "Requests that wait."),
    "hf_loads_total": ("counter", "Models that were loaded."),
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What a server counts.  All methods may be called by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, Labels], float] = defaultdict(float)
        self._histograms: dict[tuple[str, Labels], list[float]] = {}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count up."""
        with self._lock:
            self._values[name, tuple(labels.items())] += amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Say what there is now."""
        with self._lock:
            self._values[name, tuple(labels.items())] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Count a value in its bucket."""
        bounds = _ROWS if name == "hf_batch_size" else _SECONDS
        key = name, tuple(labels.items())
        with self._lock:
            counts = self._histograms.setdefault(key, [0.0] * (len(bounds) + 2))  # the last is the sum
            counts[bisect.bisect_left(bounds, value)] += 1
            counts[-1] += value

    def text(self) -> str:
        """All of it, in Prometheus's text format."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, (kind, text) in _HELP.items():
            yield f"# HELP {name} {text}"
            yield f"# TYPE {name} {kind}"
            for (held, labels), value in self._values.items():
                if held == name:
                    yield f"{name}{_braces(labels)} {value:g}"
            bounds = _ROWS if name == "hf_batch_size" else _SECONDS
            for (held, labels), counts in self._histograms.items():
                if held != name:
                    continue
                total = 0.0
                for bound, count in zip((*map("{:g}".format, bounds), "+Inf"), counts):
                    total += count
                    yield f"{name}_bucket{_braces((*labels, ('le', bound)))} {total:g}"
                yield f"{name}_sum{_braces(labels)} {counts[-1]:g}"
                yield f"{name}_count{_braces(labels)} {total:g}"


def _braces(labels: Labels) -> str:
    parts = [f'{name}="{_escaped(value)}"' for name, value in labels]
    return f"{{{','.join(parts)}}}" if parts else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
