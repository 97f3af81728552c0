"""Elements that come to a device while it works on those before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridflow.core import devices
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.data.elements import mapped
from hybridflow.data.pipeline import Elements, Failure, Node, OneSource, PipelineIterator, State

_AHEAD = 2  # elements that AUTOTUNE sends in advance: one arrives while there is work on the other


class ToDevice(Node):
    """The elements of the source on a device, ``count`` of which are on their way in advance."""

    def __init__(self, source: Node, device: str, count: int) -> None:
        self.source, self.device, self.count = source, device, count

    def runner(self) -> PipelineIterator:
        return ToDeviceRun(self.source, self.device, _AHEAD if self.count < 0 else max(self.count, 1))

    def spec(self) -> Any:
        return self.source.spec()

    def cardinality(self) -> int:
        return self.source.cardinality()


class ToDeviceRun(OneSource):
    def __init__(self, source: Node, device: str, count: int) -> None:
        super().__init__(source)
        self.device, self.count = device, count
        self.ahead: deque[Any] = deque()  # elements as they were, that nobody has taken yet

    def run(self) -> Elements:
        sent: deque[Any] = deque()  # of those ahead, what is on its way
        elements = self._elements(list(self.ahead))
        self.ahead.clear()
        try:
            while True:
                while len(sent) < self.count and (element := next(elements, None)) is not None:
                    self.ahead.append(element)
                    sent.append(element if type(element) is Failure else self._sent(element))
                if not sent:
                    return
                self.ahead.popleft()
                element = sent.popleft()
                if type(element) is Failure:
                    raise element.error
                yield mapped(_arrived, element)
        finally:
            for element in sent:
                if type(element) is not Failure:
                    mapped(_arrived, element)

    def _elements(self, first: list[Any]) -> Iterator[Any]:
        """Those of the source; an error comes when those before it are taken."""
        try:
            yield from first
            yield from self.source.run()
        except Exception as error:
            yield Failure(error)

    def _sent(self, element: object) -> Any:
        """The element, with what is on its way in the place of tensors."""
        begun: list[Any] = []

        def send(leaf: object) -> Any:
            begun.append(self._leaf_sent(leaf))
            return begun[-1]

        try:
            return mapped(send, element)
        except BaseException:
            for leaf in begun:
                _arrived(leaf)
            raise

    def _leaf_sent(self, leaf: object) -> Any:
        if type(leaf) is not Tensor or leaf.device == self.device:
            return leaf
        array = leaf._array
        if type(array) is not np.ndarray or self.device == devices.CPU:
            return leaf.to_device(self.device)
        from hybridflow.runtime.cuda.device_copies import PendingCopy

        return PendingCopy(array, devices.number(self.device))

    def state(self) -> State:
        return {"ahead": [element for element in self.ahead if type(element) is not Failure], **super().state()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.ahead.extend(state["ahead"])


def _arrived(leaf: object) -> Any:
    return wrap(leaf.arrive()) if hasattr(leaf, "arrive") else leaf
