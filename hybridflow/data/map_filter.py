"""Datasets that call functions of the user's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from hybridflow.core import pytree
from hybridflow.core.string_tensor import is_string
from hybridflow.core.tensor import Tensor
from hybridflow.data import elements
from hybridflow.data.pipeline import (
    INFINITE,
    UNKNOWN,
    Elements,
    Failure,
    NextBatch,
    Node,
    OneSource,
    PipelineIterator,
    State,
    Stepwise,
    add_note,
    restored_field,
    skip,
)
from hybridflow.data.strings import TextSpec, spec_of_text, text_of, with_shape
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from hybridflow.jit.tensor_spec import TensorSpec

Function = Callable[..., Any]


class Map(Node):
    """``function`` of each element."""

    def __init__(self, source: Node, function: Function, text: str) -> None:
        self.source, self.function, self.text = source, function, text

    def runner(self) -> PipelineIterator:
        return MapRun(self.source, self.function, self.text)

    def spec(self) -> Any:
        source_spec = self.source.spec()
        for element in self.source.runner().run():
            mapped = applied(self.function, element, self.text)
            return spec_of_result(elements.spec_of(mapped), source_spec, element)
        raise ArgumentError("Dataset.map", "there is no element, so it is unknown of which kind results are.")

    def cardinality(self) -> int:
        return self.source.cardinality()

    def rest(self) -> int:
        return self.source.rest()


def spec_of_result(result: object, spec: object, element: object) -> Any:
    """The spec of what a function made of one element: what has as many rows as a batch of any size has any number."""
    leaves, structure = pytree.flatten(result)
    specs = pytree.flatten(spec)[0]
    if not all(isinstance(s, (TensorSpec, TextSpec)) and s.shape and s.shape[0] is None for s in specs):
        return result
    rows = pytree.flatten(element)[0][0].shape[0]
    open_ = [with_shape(s, (None, *s.shape[1:])) if s.shape[:1] == (rows,) else s for s in leaves]
    return pytree.unflatten(structure, open_)


def applied(function: Function, element: object, text: str) -> Any:
    """What a function makes of an element, as an element.  Errors say which function it was."""
    try:
        mapped = function(*element) if type(element) is tuple else function(element)
        return mapped if type(mapped) is Tensor else elements.converted(mapped, "Dataset.map")
    except Exception as error:
        add_note(error, text)
        raise


def results(some: Iterable[Any], function: Function, text: str) -> Elements:
    """What a function makes of elements, as ``applied`` to each, at less cost."""
    converted = elements.converted
    for element in some:
        try:
            mapped = function(*element) if type(element) is tuple else function(element)
            if type(mapped) is not Tensor:
                mapped = converted(mapped, "Dataset.map")
        except Exception as error:
            add_note(error, text)
            raise
        yield mapped


class MapRun(Stepwise):
    def __init__(self, source: Node, function: Function, text: str) -> None:
        super().__init__(source)
        self.function, self.text = function, text

    def run(self) -> Elements:
        return results(self.source.run(), self.function, self.text)

    def next_batch(self) -> NextBatch:
        if not self.source.is_nonblocking:  # its own code comes between the calls
            return super().next_batch()
        take, function, converted = self.source.next_batch(), self.function, elements.converted

        def taken(count: int) -> list[Any]:
            result = []
            try:
                for element in take(count):
                    mapped = function(*element) if type(element) is tuple else function(element)
                    result.append(mapped if type(mapped) is Tensor else converted(mapped, "Dataset.map"))
            except Exception as error:
                add_note(error, self.text)
                raise
            return result

        return taken


class Filter(Node):
    """The elements of which ``predicate`` is true; only those before the first other one where ``ends``."""

    def __init__(self, source: Node, predicate: Function, text: str, ends: bool = False) -> None:
        self.source, self.predicate, self.text, self.ends = source, predicate, text, ends

    def runner(self) -> PipelineIterator:
        return FilterRun(self)

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return INFINITE if self.source.cardinality() == INFINITE and not self.ends else UNKNOWN


class FilterRun(Stepwise):
    def __init__(self, node: Filter) -> None:
        super().__init__(node.source)
        self.predicate, self.text, self.ends = node.predicate, node.text, node.ends

    def run(self) -> Elements:
        predicate, text = self.predicate, self.text
        for element in self.source.run():
            try:
                wanted = bool(predicate(*element) if type(element) is tuple else predicate(element))
            except Exception as error:
                add_note(error, text)
                raise
            if wanted:
                yield element
            elif self.ends:
                return


class Scan(Node):
    """``function(state, element)`` gives the next state and an element."""

    def __init__(self, source: Node, initial: object, function: Function, text: str) -> None:
        self.source, self.initial, self.function, self.text = source, initial, function, text

    def runner(self) -> PipelineIterator:
        return ScanRun(self)

    def spec(self) -> Any:
        for element in self.runner().run():
            return elements.spec_of(element)
        raise ArgumentError("Dataset.scan", "there is no element, so it is unknown of which kind results are.")

    def cardinality(self) -> int:
        return self.source.cardinality()


class ScanRun(Stepwise):
    state_fields = ("value",)

    def __init__(self, node: Scan) -> None:
        super().__init__(node.source)
        self.value, self.function, self.text = node.initial, node.function, node.text

    def run(self) -> Elements:
        for element in self.source.run():
            try:
                stepped = self.function(self.value, element)
                if type(stepped) is not tuple or len(stepped) != 2:
                    raise ArgumentTypeError("Dataset.scan", "the function must return (state, element).")
                value, element_out = [elements.converted(part, "Dataset.scan") for part in stepped]
            except Exception as error:
                add_note(error, self.text)
                raise
            self.value = value
            yield element_out


class Interleave(Node):
    """The elements of the datasets that ``function`` makes of elements, by turns of ``block`` from ``cycle`` of them.

    ``node_of`` gives the node of such a dataset.  Where ``ahead`` is not 0 the first ``cycle`` of them are made
    together, and then so many more before their turn comes, so that threads of theirs begin.
    """

    def __init__(
        self,
        source: Node,
        function: Function,
        cycle: int,
        block: int,
        node_of: Callable[[Any], Node],
        text: str,
        ahead: int = 0,
    ) -> None:
        self.source, self.function, self.cycle, self.block = source, function, cycle, block
        self.node_of, self.text, self.ahead = node_of, text, ahead

    def made(self, element: object) -> Node:
        """The node of the dataset that the function makes."""
        try:
            return self.node_of(self.function(*element) if type(element) is tuple else self.function(element))
        except Exception as error:
            add_note(error, self.text)
            raise

    def runner(self) -> PipelineIterator:
        return InterleaveRun(self)

    def spec(self) -> Any:
        for element in self.source.runner().run():
            return self.made(element).spec()
        raise ArgumentError("Dataset.interleave", "there is no element, so it is unknown of which kind results are.")


class Slot:
    """One of the datasets that take turns: of which element it was made, its run, and its elements."""

    def __init__(self, node: Interleave, element: object, state: State | None = None) -> None:
        self.element = element
        self.runner = node.made(element).runner()
        if state is not None:
            self.runner.restore(state)
        self.elements = self.runner.run()

    def state(self) -> State:
        return {"element": self.element, "runner": self.runner.state()}


class InterleaveRun(OneSource):
    def __init__(self, node: Interleave) -> None:
        super().__init__(node.source)
        self.node = node
        self.slots: list[Slot | None] = [None] * node.cycle
        self.spares: deque[Slot | Failure] = deque()  # made before their turn
        self.more = True  # whether the source may have elements
        self.turn = self.given = 0  # whose turn it is, and how many elements of it were given

    def run(self) -> Elements:
        runner = self.source.run()
        try:
            while True:
                slot = self.slots[self.turn]
                if slot is None:
                    if not self._fill_slot(runner):
                        return
                    continue
                for element in slot.elements:
                    self.given += 1
                    if self.given == self.node.block:
                        self._advance()
                    yield element
                    break
                else:
                    self.slots[self.turn] = None
                    self._advance()
        finally:
            self.slots = [None] * self.node.cycle  # ends their threads
            self.spares.clear()

    def _fill_slot(self, sources: object) -> bool:
        """Put a dataset at an empty place, or go on to the next place.  Returns whether there is any dataset."""
        self._make(sources)
        if self.spares:
            spare = self.spares.popleft()
            if isinstance(spare, Failure):
                raise spare.error
            self.slots[self.turn] = spare
        elif any(self.slots):
            self._advance()
        else:
            return False
        return True

    def _make(self, sources: Any) -> None:
        """Make the datasets that are wanted now.  What fails is raised in its turn."""
        wanted = self.slots.count(None) + self.node.ahead if self.node.ahead else 1
        while self.more and len(self.spares) < wanted:
            try:
                element = next(sources, self)
                self.more = element is not self
                if self.more:
                    self.spares.append(Slot(self.node, element))
            except Exception as error:
                self.more = False
                self.spares.append(Failure(error))

    def _advance(self) -> None:
        self.turn, self.given = (self.turn + 1) % len(self.slots), 0

    def state(self) -> State:
        slots = [slot and slot.state() for slot in self.slots]
        spares = [spare.state() for spare in self.spares if isinstance(spare, Slot)]
        return {"slots": slots, "spares": spares, "turn": self.turn, "given": self.given, **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.slots = [slot and Slot(self.node, slot["element"], slot["runner"]) for slot in state["slots"]]
        self.spares.extend(Slot(self.node, spare["element"], spare["runner"]) for spare in state["spares"])
        self.turn, self.given = restored_field(self.turn, state["turn"]), restored_field(self.given, state["given"])


class Generated(Node):
    """What a function gives that is called anew for each run; ``spec_`` is what its elements must be, if known."""

    def __init__(self, make: Callable[[], Any], spec: object = None, stage: str = "Dataset.from_generator") -> None:
        self.make, self.wanted, self.stage = make, spec, stage

    def runner(self) -> PipelineIterator:
        return GeneratedRun(self)

    def spec(self) -> Any:
        if self.wanted is not None:
            return self.wanted
        for element in self.runner().run():
            return elements.spec_of(element)
        raise ArgumentError(self.stage, "there is no element, so it is unknown of which kind they are.")


class GeneratedRun(PipelineIterator):
    state_fields = ("position",)

    def __init__(self, node: Generated) -> None:
        self.node, self.position = node, 0

    def run(self) -> Elements:
        node = self.node
        check = checker(node.wanted, node.stage)
        iterable = node.make()
        if not isinstance(iterable, Iterable) and not hasattr(iterable, "__getitem__"):
            raise ArgumentTypeError(
                node.stage,
                f"the function returned {type(iterable).__name__}, which is no iterable. Let it yield elements.",
            )
        iterator = iter(iterable)
        if self.position:
            skip(iterator, self.position)
        try:
            for value in iterator:
                try:
                    element = check(value)
                except Exception as error:
                    error.add_note(f"[{node.stage}] It is element {self.position}, counted from 0.")
                    raise
                self.position += 1
                yield element
        finally:
            if hasattr(iterator, "close"):
                iterator.close()


def checker(spec: object, stage: str) -> Callable[[Any], Any]:
    """A function that makes elements of values, and raises where they do not fit the spec."""
    if spec is None:
        return lambda value: elements.converted(value, stage)
    leaves, structure = pytree.flatten(spec)

    def check(value: object) -> Any:
        try:
            parts = pytree.flatten_up_to(structure, value, "the element")
        except ValueError as error:
            raise ShapeError(stage, f"{error}, by output_signature.") from None
        return pytree.unflatten(
            structure, [fitted(path, part, leaf, stage) for (path, part), leaf in zip(parts, leaves)]
        )

    return check


def fitted(path: str, value: object, spec: TensorSpec | TextSpec, stage: str) -> Any:
    """A value as a tensor of the spec's dtype.  Raises ShapeError for another shape, an error of dtypes for others."""
    if isinstance(spec, TextSpec):
        return _fitted_text(path, value, spec, stage)
    is_given = isinstance(value, Tensor) and not is_string(spec.dtype)
    tensor = elements.as_tensor(value, stage, None if is_given else spec.dtype)
    if tensor.dtype != spec.dtype or not spec.accepts_shape(tensor.shape):
        raise ShapeError(stage, f"{path} is {tensor.type} where output_signature says {spec}.")
    return tensor


def _fitted_text(path: str, value: object, spec: TextSpec, stage: str) -> Any:
    text = text_of(value, stage)
    actual = elements.spec_of(elements.converted(value, stage)) if text is None else spec_of_text(text)
    if text is None or actual.dtype != spec.dtype or not spec.accepts_shape(actual.shape):
        raise ShapeError(stage, f"{path} is {actual} where output_signature says {spec}.")
    return text


class Zip(Node):
    """Elements of several datasets side by side, as long as all of them have some."""

    def __init__(self, sources: list[Node], structure: pytree.Structure) -> None:
        self.sources, self.structure = sources, structure

    def runner(self) -> PipelineIterator:
        return ZipRun(self.sources, self.structure)

    def spec(self) -> Any:
        return pytree.unflatten(self.structure, [source.spec() for source in self.sources])

    def cardinality(self) -> int:
        cardinalities = [source.cardinality() for source in self.sources]
        if UNKNOWN in cardinalities:
            return 0 if 0 in cardinalities else UNKNOWN
        return min([length for length in cardinalities if length != INFINITE], default=INFINITE)


class ZipRun(PipelineIterator):
    state_fields = ("sources",)

    def __init__(self, sources: list[Node], structure: pytree.Structure) -> None:
        self.sources, self.structure = [source.runner() for source in sources], structure

    def run(self) -> Elements:
        flat = self.structure.kind is tuple and len(self.structure.children) == self.structure.leaves
        for parts in zip(*[source.run() for source in self.sources]):
            yield parts if flat else pytree.unflatten(self.structure, parts)
