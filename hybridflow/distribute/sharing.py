"""Which replicas this process has, and how programs exchange values with the processes that have the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops.batching_rules import Share
from hybridflow.core.context import now, suspended
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.distribute.group import Group, group
from hybridflow.tracing.effect_token import ask

_NEXT = np.zeros((), np.int32)  # for the next exchange, which so comes after


def share_of(replicas: int) -> Share | None:
    """The run of replicas that this process has; None where it has all."""
    found = group()
    if found is None:
        return None
    begin, end = found.run_of(found.rank, replicas)
    return Share(
        min(begin, replicas - 1), end - begin, _maker(found, found.summed), _maker(found, found.gathered), _live
    )


def _maker(found: Group, exchange: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def make(name: str, shape: Sequence[Any], replicas: int, where: str | None) -> Callable[..., Any]:
        extents = tuple([int(extent) for extent in shape])
        each = extents if exchange == found.summed else extents[1:]

        def call(mine: np.ndarray, *last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return exchange(name, mine, each, replicas, where), _NEXT

        call.is_exchange = True  # type: ignore[attr-defined]  # which programs are meant to call
        return call

    return make


def _live(function: Callable[..., Any], x: Tensor, types: Sequence[TensorType]) -> list[Tensor]:
    trace: Any = now().trace
    if trace is None:
        with suspended():
            return [wrap(array) for array in function(x.numpy())]
    given = [x] if trace.exchanged is None else [x, trace.exchanged]
    found = ask(function, given, types, is_last=True)
    trace.exchanged = found[1]
    return found
