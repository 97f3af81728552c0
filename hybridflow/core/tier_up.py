"""When what comes again and again is compiled: the counter of all tiers, and the table of their thresholds.

An operation runs in Python at first, is answered by native code once that is worth it, and is compiled together with
others after that.  Each step up has a ``Tier`` here.
"""

from __future__ import annotations

from typing import Any

_MOST_DOUBLINGS = 20


class Tier:
    """The thresholds of one step up.

    ``threshold`` is the time from which on something is compiled.  With a ``backoff`` it takes twice as many times for
    every so many tries that there were.  ``capacity`` is how many things are remembered; the oldest are forgotten.
    """

    __slots__ = ("backoff", "capacity", "threshold")

    def __init__(self, threshold: int, *, backoff: int = 0, capacity: int = 0) -> None:
        self.threshold, self.backoff, self.capacity = threshold, backoff, capacity


# What is counted                                                   where it is compiled, or loaded
OPERATORS = Tier(32)  # operators that Python answered               eager/fast_path: native code is loaded
TAPES = Tier(2)  # tapes that were made                              autodiff/tape: native code is loaded
SINGLE_OPS = Tier(2, capacity=4096)  # applications of an op         eager/execute: a native shortcut
PUBLIC_OPS = Tier(3, backoff=4, capacity=256)  # forms of calls      eager/public_op: a plan, of one function
TAPED_CALLS = Tier(2, backoff=4, capacity=256)  # the same, taped    eager/taped_calls: a whole, of one function
BACKWARD_PASSES = Tier(3, capacity=512)  # passes of tapes           autodiff/compiled_backward
BATCHED_GRAPHS = Tier(3, capacity=128)  # graphs of many examples    tracing/batch_trace

_GIVEN_UP = -1


class TierUp:
    """Counts how often keys are met; says when one is due, which it is until something is made of it or it is given up.

    Tries are counted in groups, so that those of one do not put off the others.
    """

    __slots__ = ("_counts", "tier", "tries")

    def __init__(self, tier: Tier, groups: int = 1) -> None:
        self.tier = tier
        self.tries = [0] * groups
        self._counts: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def is_due(self, key: object, group: int = 0) -> bool:
        """Count a time that a key is met; whether this is to be compiled now."""
        count = self._counts.get(key, 0)
        if count == _GIVEN_UP:
            return False
        tier = self.tier
        doublings = min(self.tries[group] // tier.backoff, _MOST_DOUBLINGS) if tier.backoff else 0
        if count + 1 >= tier.threshold << doublings:
            return True
        remember(self._counts, key, count + 1, tier.capacity)
        return False

    def begin_try(self, key: object, group: int = 0) -> None:
        """It is being compiled.  Unless it is ``reset``, this is the only try."""
        self.tries[group] += 1
        self.give_up(key)

    def give_up(self, key: object) -> None:
        """It is not due any more."""
        remember(self._counts, key, _GIVEN_UP, self.tier.capacity)

    def reset(self, key: object) -> None:
        """Something was made of it: if that does not answer, it is counted anew."""
        self._counts[key] = 0

    def clear(self) -> None:
        """Forget everything."""
        self._counts.clear()
        self.tries = [0] * len(self.tries)


def is_tried_again(count: int) -> bool:
    """Whether what fails time and again is tried at this time: at the first, the second, the fourth and so on."""
    return count & (count - 1) == 0


def remember(table: dict[Any, Any], key: object, value: object, capacity: int) -> None:
    """Add to a table that holds so many entries, of which the oldest are forgotten."""
    if key not in table:
        for oldest in list(table)[: max(len(table) - capacity + 1, 0)]:  # a copy, which no other thread changes
            table.pop(oldest, None)
    table[key] = value
