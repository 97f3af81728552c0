"""Where a library has its variables and constants: in itself, in a file beside it, or in a state of the caller's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from hybridflow.aot.entries import Entry, Names, bytes_of
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.ir.dtypes import SHORT
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable


class Field(NamedTuple):
    """A variable in the state: its name in C, its type, and where it lies."""

    name: str
    said: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int


class Layout:
    """Places for all values that programs read and no caller gives.

    Variables that some function assigns are the caller's ``state``.  All others are ``embedded`` constants, or lie
    in a file, of which ``file`` is the content; its first 16 bytes are a ``mark`` of what is in it.
    """

    def __init__(self, entries: Sequence[Entry], prefix: str, in_file: bool) -> None:
        self._prefix = prefix
        self.state: dict[int, tuple[Field, bytes]] = {}
        self.embedded: dict[int, tuple[str, bytes]] = {}
        self._offsets: dict[int, int] = {}
        self._kept: list[Any] = []
        self.size = 0  # of the state
        names = Names()
        for variable in [variable for entry in entries for variable in entry.assigned]:
            if id(variable) not in self.state:
                self._add_state(variable, names)
        parts: list[bytes] = []
        at = ALIGNMENT
        for source in [s for entry in entries for choice in entry.choices for s in choice.sources if s is not None]:
            if id(source) in self.state or id(source) in self.embedded or id(source) in self._offsets:
                continue
            self._kept.append(source)
            content = bytes_of(_tensor(source))
            if not in_file:
                self.embedded[id(source)] = f"{prefix}.weight{len(self.embedded)}", content
                continue
            self._offsets[id(source)] = at
            padded = content + bytes(-len(content) % ALIGNMENT)
            parts.append(padded)
            at += len(padded)
        self.in_file = in_file and bool(parts)
        body = b"".join(parts)
        digest = hashlib.sha256(body).digest()[:16]
        self.mark = tuple(int.from_bytes(digest[k : k + 8], "little", signed=True) for k in (0, 8))
        self.file = digest + bytes(ALIGNMENT - 16) + body

    def _add_state(self, variable: Variable, names: Names) -> None:
        tensor = _tensor(variable)
        content = bytes_of(tensor)
        said = variable.name or "variable"
        field = Field(names.add(said), said, SHORT[tensor.dtype], tensor.shape, self.size, len(content))
        self.state[id(variable)] = field, content
        self._kept.append(variable)
        self.size += max(len(content) + -len(content) % ALIGNMENT, ALIGNMENT)

    def is_touched(self, entry: Entry) -> bool:
        """Whether an entry reads or assigns variables of the state."""
        return any(id(variable) in self.state for variable in entry.variables)

    def address(self, b: KernelBuilder, source: object) -> str:
        """Where a value lies."""
        if id(source) in self.state:
            return b.at("%state", self.state[id(source)][0].offset, 1)
        if id(source) in self.embedded:
            return f"@{self.embedded[id(source)][0]}"
        return b.at("%weights", self._offsets[id(source)], 1)


def _tensor(source: Any) -> Tensor:
    result: Tensor = source.value() if isinstance(source, Variable) else source
    return result
