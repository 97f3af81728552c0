"""Datasets of numbers that never end."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from hybridflow.core.tensor import wrap
from hybridflow.data.pipeline import INFINITE, Elements, Node, PipelineIterator
from hybridflow.jit.tensor_spec import TensorSpec

_counting = threading.Lock()


class Counter(Node):
    """``start``, ``start + step``, ... of a dtype."""

    def __init__(self, start: int, step: int, dtype: np.dtype[Any]) -> None:
        self.start, self.step, self.dtype = start, step, dtype

    def runner(self) -> PipelineIterator:
        return CounterRun(self)

    def spec(self) -> Any:
        return TensorSpec((), self.dtype)

    def cardinality(self) -> int:
        return INFINITE


class CounterRun(PipelineIterator):
    state_fields = ("position",)
    is_nonblocking = True

    def __init__(self, node: Counter) -> None:
        self.node, self.position = node, 0

    def run(self) -> Elements:
        node = self.node
        while True:
            number = node.start + self.position * node.step
            self.position += 1
            yield wrap(np.array(number, node.dtype))


class RandomNumbers(Node):
    """Ints of 32 random bits; each run draws the same, or others where ``anew``."""

    def __init__(self, seed: tuple[int, ...], anew: bool) -> None:
        self.seed, self.anew, self.begun = seed, anew, 0

    def runner(self) -> PipelineIterator:
        with _counting:
            epoch = self.begun
            self.begun += self.anew
        return RandomNumbersRun([*self.seed, epoch])

    def spec(self) -> Any:
        return TensorSpec((), "int64")

    def cardinality(self) -> int:
        return INFINITE


class RandomNumbersRun(PipelineIterator):
    state_fields = ("seed", "drawn")
    is_nonblocking = True

    def __init__(self, seed: list[int]) -> None:
        self.seed, self.drawn = seed, 0

    def run(self) -> Elements:
        bits = np.random.PCG64(self.seed)
        bits.advance(self.drawn)
        while True:
            self.drawn += 1
            yield wrap(np.array(int(bits.random_raw()) >> 32, np.int64))
