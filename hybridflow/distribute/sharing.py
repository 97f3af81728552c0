"""Which replicas this process has, and how programs exchange values with the processes that have the others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops.batching_rules import Share
from hybridflow.core.context import now, suspended
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.distribute.group import Processes, group
from hybridflow.tracing.effect_token import ask

_NEXT = np.zeros((), np.int32)  # for the next exchange, which so comes after


def share_of(replicas: int) -> Share | None:
    """The run of replicas that this process has; None where it has all."""
    processes_here = group()
    if processes_here is None:
        return None
    begin, end = processes_here.run_of(processes_here.rank, replicas)
    return Share(
        min(begin, replicas - 1),
        end - begin,
        *_makers(processes_here),
        _live,
        functools.partial(processes_here.run_of, processes_here.rank),
    )


def _maker(processes_here: Processes, exchange: Callable[..., np.ndarray]) -> Callable[..., Any]:
    is_sum = exchange == processes_here.summed

    @functools.lru_cache(maxsize=4096)  # the same function for the same, so that programs which call it are known again
    def known(name: str, extents: tuple[int, ...], replicas: int, where: str | None) -> Callable[..., Any]:
        each = extents if is_sum else extents[1:]

        def call(mine: np.ndarray, *last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return exchange(name, mine, each, replicas, where), _NEXT

        def record(dtype: DTypeLike) -> tuple[int, ...]:
            if np.dtype(dtype).kind == "c":  # programs have pairs of numbers in their place
                return ()
            record_key = processes_here.record("sum" if is_sum else "gather", name, each, dtype, replicas, where)
            return () if record_key is None else tuple(record_key)

        call.is_exchange = True  # type: ignore[attr-defined]  # which programs are meant to call
        call.record, call.explain = record, lambda: processes_here.fail(name)  # type: ignore[attr-defined]
        return call

    def make(name: str, shape: Sequence[Any], replicas: int, where: str | None) -> Callable[..., Any]:
        return known(name, tuple([int(extent) for extent in shape]), replicas, where)

    return make


@functools.cache
def _makers(processes_here: Processes) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return _maker(processes_here, processes_here.summed), _maker(processes_here, processes_here.gathered)


def _live(function: Callable[..., Any], x: Tensor, types: Sequence[TensorType]) -> list[Tensor]:
    trace: Any = now().trace
    if trace is None:
        with suspended():
            return [wrap(array) for array in function(x.numpy())]
    operands = [x] if trace.exchanged is None else [x, trace.exchanged]
    results = ask(function, operands, types, is_last=True, exchange=function.record(x.dtype))  # type: ignore[attr-defined]
    trace.exchanged = results[1]
    return results
