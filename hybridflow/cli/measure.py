"""Timing that does not flatter: candidates take turns (A B A B ...), and a result is a median with its spread."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hybridflow.runtime import background

Sampler = Callable[[int], float]  # n calls -> seconds

SAMPLE_SECONDS = 2e-3  # a sample repeats short calls until it lasts this long, far above the clock's resolution
STEADY = 3, 12  # samples in a row, and calls in them, that last so long before the number of calls is settled
WARM_UP_SECONDS = 1.0  # after which one is enough
MOST_ROUNDS = 101


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median over the samples, and the quartiles as its spread."""

    median: float
    low: float
    high: float
    samples: int

    def overlaps(self, other: Timing) -> bool:
        """Whether the spreads have a time in common, so that neither can be called faster."""
        return self.low <= other.high and other.low <= self.high

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles, as a share of the median."""
        return (self.high - self.low) / 2 / self.median


def calls(function: Callable[..., Any], *arguments: object) -> Sampler:
    """Times ``function(*arguments)`` as written out in a loop, with nothing in between; garbage collection is off."""
    names = [f"a{k}" for k in range(len(arguments))]
    scope = {"f": function, **dict(zip(names, arguments))}
    return timeit.Timer(f"f({', '.join(names)})", globals=scope).timeit


def interleaved(candidates: Mapping[str, Sampler], budget: float = 1.0, least_rounds: int = 5) -> dict[str, Timing]:
    """Time the candidates in turns for about ``budget`` seconds together.  Each runs once before it is timed, and
    then what is compiled in the background is waited for."""
    for sampler in candidates.values():
        sampler(1)
    background.wait()
    repeats = {name: _repeats(sampler) for name, sampler in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    end = time.perf_counter() + budget
    for done in range(MOST_ROUNDS):
        if done >= least_rounds and time.perf_counter() > end:
            break
        for name, sampler in candidates.items():
            samples[name].append(sampler(repeats[name]) / repeats[name])
    return {name: timing(values) for name, values in samples.items()}


def timing(samples: list[float]) -> Timing:
    """Median and quartiles of some samples, two or more."""
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(median, low, high, len(samples))


def _repeats(sampler: Sampler) -> int:
    """How many calls make a sample.  Some of the first calls may compile something: one that lasts says little, and a
    sample of so few calls would be spent on refilling the caches that other candidates have emptied."""
    sampler(1)
    repeats, lasting = 1, 0
    end = time.perf_counter() + WARM_UP_SECONDS
    while (lasting < STEADY[0] or lasting * repeats < STEADY[1]) and not (lasting and time.perf_counter() > end):
        samples = sampler(repeats)
        if samples >= SAMPLE_SECONDS:
            lasting += 1
        else:
            repeats = max(repeats * 2, min(repeats * 10, int(repeats * SAMPLE_SECONDS / max(samples, 1e-9))))
            lasting = 0
    return repeats
