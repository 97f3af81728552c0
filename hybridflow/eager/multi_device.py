"""Programs of several devices as something that runs: their parts one after another, and the copies in between.

Parts are queued, and so are copies between GPUs, as soon as there is something to copy; each waits on the stream of its
target for what is queued on that of its source.  The host waits for what is copied to it, when that is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.device_partition import InputPlacement, Value, cut
from hybridflow.compiler.graph_inlining import extents_of
from hybridflow.compiler.ir.graph import Graph, Role
from hybridflow.core import devices
from hybridflow.eager.executable import Functions, executable_for
from hybridflow.errors import short_location

Note = Callable[[str, str, int, bool], None]


class MultiDeviceProgram:
    """A program whose inputs are ``given`` on several devices.  ``note(device, name, bytes, each_call)`` is told what
    is copied.  Raises DeviceError, with the user's line, where operands lie on different devices."""

    def __init__(
        self,
        graph: Graph,
        placements: Sequence[InputPlacement],
        fastmath: bool,
        functions: Functions,
        checked: bool,
        note: Note,
    ) -> None:
        self._graph, self._note = graph, note
        self._cut = cut(graph, placements, devices.CPU)
        self._programs = [executable_for(p.graph, fastmath, p.device, functions, checked) for p in self._cut.parts]
        self._inputs = [Value(node, at.device) for node, at in zip(graph.inputs, placements)]
        self._captured: dict[Value, Any] = {}  # copies of captured tensors, which never change
        self._has_sizes = any(part.sizes for part in self._cut.parts)
        self._copies, self._spent = self._schedule()
        self.needs_python = any(program.needs_python for program in self._programs)
        may_raise = graph.may_raise or checked
        self.in_place = frozenset(graph.updates if not may_raise and self._updates_come_last() else ())
        # Those that do not wait for what is checked there, as those do that update something.
        late = [part.device for part in self._cut.parts if not part.updates and (part.graph.may_raise or checked)]
        self._asked = tuple(dict.fromkeys(late)) if graph.updates else ()

    @property
    def devices(self) -> set[str]:
        """Where its parts run."""
        return {part.device for part in self._cut.parts}

    def _schedule(self) -> tuple[dict[int, list[Value]], dict[int, list[Value]]]:
        """What is copied before each part, and behind the last one; what nobody needs any more behind each."""
        parts, sources = self._cut.parts, self._cut.sources
        producers = {value: k for k, part in enumerate(parts) for value in part.gives}
        first: dict[Value, int] = {}
        last: dict[Value, int] = dict(producers)
        for k, part in enumerate(parts):
            for value in part.takes:
                first.setdefault(value, k)
                last[value] = k
        copies: dict[int, list[Value]] = defaultdict(list)
        for value, device in sources.items():
            source = Value(value.node, device)
            at = producers[source] + 1 if source in producers else 0
            if value.device == devices.CPU and source in producers:
                at = first.get(value, len(parts))
            copies[at].append(value)
            last[source] = max(last.get(source, 0), at)
        spent: dict[int, list[Value]] = defaultdict(list)
        for value, k in last.items():
            if value not in self._cut.outputs:
                spent[k].append(value)
        return copies, spent

    def _updates_come_last(self) -> bool:
        """Whether the parts that update variables may do so in place: they are the last to read them, and no other GPU
        may still be at a copy when they run."""
        last = {value: k for k, part in enumerate(self._cut.parts) for value in part.takes}
        copied = {Value(to.node, at) for to, at in self._cut.sources.items() if devices.CPU not in (to.device, at)}
        return copied.isdisjoint(self._inputs[i] for i in self._graph.updates) and all(
            program.in_place.issuperset(program.updated) and all(last[self._inputs[i]] == k for i in part.updates)
            for k, (part, program) in enumerate(zip(self._cut.parts, self._programs))
        )

    def compute(self, arrays: Sequence[Any], in_place: Collection[int] = ()) -> tuple[list[Any], list[Any]]:
        """The outputs, and the new values of the state, as those of an executable of one device: each lies where it was
        made, and state where it was.  All of it is written ``in_place``, or none.  Where there is state, failed checks
        are raised here; else perhaps later."""
        values = dict(zip(self._inputs, arrays))
        extents = extents_of(dict(zip(self._graph.inputs, arrays))) if self._has_sizes else {}
        updates: dict[int, Any] = {}
        for k, (part, program) in enumerate(zip(self._cut.parts, self._programs)):
            self._copy(values, k)
            inputs = [values[value] for value in part.takes]
            inputs += [devices.moved(np.empty((extents[n], 0), np.bool_), part.device) for n in part.sizes]
            outputs, new = program.compute(inputs, program.updated if in_place else ())
            values.update(zip(part.gives, outputs))
            updates.update(zip(part.updates, new))
            for value in self._spent.get(k, ()):
                values.pop(value, None)
        self._copy(values, len(self._programs))
        for device in self._asked:
            devices.settle(device)
        return [values[value] for value in self._cut.outputs], [updates[i] for i in sorted(updates)]

    def _copy(self, values: dict[Value, Any], k: int) -> None:
        """Copy what is to be copied before a part."""
        for value in self._copies.get(k, ()):
            is_constant = value.node.is_parameter and value.node.attrs["role"] is Role.CAPTURE
            copy = self._captured.get(value) if is_constant else None
            if copy is None:
                source = values[Value(value.node, self._cut.sources[value])]
                copy = devices.moved(source, value.device)
                self._note(value.device, self._title(value), copy.nbytes, not is_constant)
                if is_constant:
                    self._captured[value] = copy
            values[value] = copy

    def _title(self, value: Value) -> str:
        node = value.node
        name = node.attrs["name"] if node.is_parameter else f"{node.type} of {node.op.name}"
        line = short_location(self._cut.where.get(value))
        return f"{name} from {self._cut.sources[value]}{f' ({line})' if line else ''}"
