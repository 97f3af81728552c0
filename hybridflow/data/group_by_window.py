"""Datasets that ask a function of the user's of which kind each element is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.core import pytree
from hybridflow.data import elements
from hybridflow.data.batch import Listed
from hybridflow.data.pipeline import Elements, Node, OneSource, PipelineIterator, State, add_note
from hybridflow.data.strings import array_of
from hybridflow.errors import ArgumentError

Function = Callable[..., Any]


def _described(function: Function, arguments: tuple[Any, ...], text: str) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        add_note(error, text)
        raise


class Windows(Node):
    """The elements of the datasets that ``reduce`` makes of a key and a window of elements that have it.

    ``size_of`` gives the size of the windows of a key, ``dataset`` a dataset of a node, ``node_of`` the other way.
    """

    def __init__(
        self,
        source: Node,
        key_of: Function,
        reduce: Function,
        size_of: Function,
        dataset: Callable[[Node], Any],
        node_of: Callable[[Any], Node],
        text: str,
    ) -> None:
        self.source, self.key_of, self.reduce, self.size_of = source, key_of, reduce, size_of
        self.dataset, self.node_of, self.text = dataset, node_of, text

    def key(self, element: object) -> int:
        arguments = element if type(element) is tuple else (element,)
        return int(_described(self.key_of, arguments, self.text))

    def size(self, key: int) -> int:
        result = int(_described(self.size_of, (elements.converted(key, "Dataset.group_by_window"),), self.text))
        if result < 1:
            raise ArgumentError("Dataset.group_by_window", f"the size of the windows of key {key} is {result}.")
        return result

    def made(self, key: int, window: list[Any]) -> PipelineIterator:
        """A run of what is made of a window."""
        arguments = elements.converted(key, "Dataset.group_by_window"), self.dataset(Listed(window))
        return self.node_of(_described(self.reduce, arguments, self.text)).runner()

    def runner(self) -> PipelineIterator:
        return WindowsRun(self)

    def spec(self) -> Any:
        for element in self.source.runner().run():
            arguments = (
                elements.converted(self.key(element), "Dataset.group_by_window"),
                self.dataset(Listed([element])),
            )
            return self.node_of(_described(self.reduce, arguments, self.text)).spec()
        raise ArgumentError("Dataset.group_by_window", "there is no element, so it is unknown of which kind they are.")


class WindowsRun(OneSource):
    def __init__(self, node: Windows) -> None:
        super().__init__(node.source)
        self.node = node
        self.held: dict[int, list[Any]] = {}
        self.window: tuple[int, list[Any], PipelineIterator] | None = None  # that whose elements are being given

    def run(self) -> Elements:
        node = self.node
        if self.window is not None:
            yield from self._elements_of_window()
        sizes = {key: node.size(key) for key in self.held}
        for element in self.source.run():
            key = node.key(element)
            if key not in self.held:
                self.held[key], sizes[key] = [], node.size(key)
            self.held[key].append(element)
            if len(self.held[key]) >= sizes[key]:
                yield from self._begin_window(key)
        for key in sorted(self.held):
            yield from self._begin_window(key)

    def _begin_window(self, key: int) -> Elements:
        window = self.held.pop(key)
        self.window = (key, window, self.node.made(key, window))
        return self._elements_of_window()

    def _elements_of_window(self) -> Elements:
        assert self.window is not None
        yield from self.window[2].run()
        self.window = None

    def state(self) -> State:
        held = [[key, list(some)] for key, some in self.held.items()]
        window = self.window and [self.window[0], list(self.window[1]), self.window[2].state()]
        return {"held": held, "window": window, **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.held = {key: list(some) for key, some in state["held"]}
        if state["window"] is not None:
            key, window, running = state["window"]
            self.window = (key, list(window), self.node.made(key, list(window)))
            self.window[2].restore(running)


class Unique(Node):
    """The elements that no element before them equals."""

    def __init__(self, source: Node) -> None:
        self.source = source

    def runner(self) -> PipelineIterator:
        return UniqueRun(self.source)

    def spec(self) -> Any:
        return self.source.spec()


class UniqueRun(OneSource):
    state_fields = ("given",)

    def __init__(self, source: Node) -> None:
        super().__init__(source)
        self.given: list[Any] = []

    def run(self) -> Elements:
        seen = {*map(_key, self.given)}
        for element in self.source.run():
            key = _key(element)
            if key not in seen:
                seen.add(key)
                self.given.append(elements.fresh(element))
                yield element


def _key(element: object) -> Any:
    """What equal elements have in common: shapes, dtypes, and values; 0.0 is -0.0 there."""
    leaves, structure = pytree.flatten(element)
    arrays = [array_of(leaf) for leaf in leaves]
    values = [tuple(array.ravel().tolist()) if array.dtype.kind in "OfcV" else array.tobytes() for array in arrays]
    return repr(structure), *[(array.shape, str(array.dtype), value) for array, value in zip(arrays, values)]


class Resampled(Node):
    """Pairs of a class and an element, some of which are left out so that classes come as often as ``target`` says.

    ``initial`` says how often they come in the source; where it is None that is counted on the way.
    """

    def __init__(
        self,
        source: Node,
        class_of: Function,
        target: np.ndarray,
        initial: np.ndarray | None,
        seed: tuple[int, ...],
        text: str,
    ) -> None:
        self.source, self.class_of, self.target, self.initial = source, class_of, target, initial
        self.seed, self.text = seed, text

    def runner(self) -> PipelineIterator:
        return ResampledRun(self)

    def spec(self) -> Any:
        for element in self.source.runner().run():
            return elements.spec_of(self.classed(element)), self.source.spec()
        raise ArgumentError("Dataset.rejection_resample", "there is no element, so it is unknown which classes are.")

    def classed(self, element: object) -> Any:
        arguments = element if type(element) is tuple else (element,)
        return elements.converted(_described(self.class_of, arguments, self.text), "Dataset.rejection_resample")


class ResampledRun(OneSource):
    state_fields = ("drawn", "counts")

    def __init__(self, node: Resampled) -> None:
        super().__init__(node.source)
        self.node, self.drawn = node, 0
        self.counts = [1] * len(node.target)  # one more than were seen: none is taken for one that never comes

    def run(self) -> Elements:
        node = self.node
        bits = np.random.PCG64([*node.seed])
        bits.advance(self.drawn)
        draw = np.random.Generator(bits)
        for element in self.source.run():
            kind = node.classed(element)
            number = int(kind)
            if not 0 <= number < len(self.counts):
                raise ArgumentError(
                    "Dataset.rejection_resample", f"the class {number} is none of {len(self.counts)} in target_dist."
                )
            self.counts[number] += 1
            self.drawn += 1
            if draw.random() < accepted(node.target, node.initial, self.counts)[number]:
                yield kind, element


def accepted(target: np.ndarray, initial: np.ndarray | None, counts: Sequence[int]) -> np.ndarray:
    """Which share of each class is given, as many as can be."""
    come = np.asarray(counts, np.float64) / sum(counts) if initial is None else initial
    ratios = np.divide(target, come, out=np.zeros_like(target), where=come > 0)
    most = ratios.max()
    return ratios / most if most > 0 else ratios
