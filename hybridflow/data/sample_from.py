"""Datasets that take the next element from one of several others."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.data import elements
from hybridflow.data.pipeline import INFINITE, UNKNOWN, Elements, Node, PipelineIterator
from hybridflow.errors import ArgumentError


class Mix(Node):
    """Elements of the sources that ``choices`` names; ``ends`` where one of those has no more."""

    def __init__(self, sources: list[Node], choices: Node, ends: bool) -> None:
        self.sources, self.choices, self.ends = sources, choices, ends

    def runner(self) -> PipelineIterator:
        return MixRun(self)

    def spec(self) -> Any:
        return elements.common([source.spec() for source in self.sources], "Dataset.sample_from_datasets")

    def cardinality(self) -> int:
        if not self.ends and isinstance(self.choices, Draws):
            cardinalities = [source.cardinality() for source in self.sources]
            if INFINITE not in cardinalities and UNKNOWN not in cardinalities:
                return sum(cardinalities)
        return UNKNOWN


class MixRun(PipelineIterator):
    state_fields = ("choices", "over", "sources")

    def __init__(self, node: Mix) -> None:
        self.ends = node.ends
        self.choices = node.choices.runner()
        self.sources = [source.runner() for source in node.sources]
        self.over = [False] * len(self.sources)

    def run(self) -> Elements:
        iterators = [source.run() for source in self.sources]
        for choice in self.choices.run():
            number = int(choice)
            if not 0 <= number < len(iterators):
                raise ArgumentError(
                    "Dataset.choose_from_datasets", f"the choice {number} is none of {len(iterators)} datasets."
                )
            if self.over[number]:
                continue
            for element in iterators[number]:
                yield element
                break
            else:
                self.over[number] = True
                if self.ends or all(self.over):
                    return


class Draws(Node):
    """Random numbers of sources, for ever; each run draws the same, or others where ``anew``."""

    def __init__(self, weights: list[float], seed: tuple[int, ...], anew: bool) -> None:
        self.weights, self.seed, self.anew, self.begun = weights, seed, anew, 0

    def runner(self) -> PipelineIterator:
        epoch = self.begun
        self.begun += self.anew
        return DrawsRun(self, [*self.seed, epoch])

    def go_on(self, seed: list[int]) -> None:
        """Let the next run be the one after that of ``seed``, as when its state was taken."""
        self.seed, self.begun = tuple(seed[:-1]), seed[-1] + self.anew


class DrawsRun(PipelineIterator):
    state_fields = ("seed", "drawn")

    def __init__(self, node: Draws, seed: list[int]) -> None:
        self.node, self.limits, self.seed, self.drawn = node, np.cumsum(node.weights), seed, 0

    def run(self) -> Elements:
        bits = np.random.PCG64(self.seed)
        bits.advance(self.drawn)
        draw = np.random.Generator(bits)
        while True:
            self.drawn += 1
            yield int(np.searchsorted(self.limits[:-1], draw.random(), "right"))

    def after_restore(self) -> None:
        self.node.go_on(self.seed)
