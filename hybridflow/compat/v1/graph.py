"""Graphs of operations that a session runs later: what programs of TensorFlow 1 build."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hybridflow.compat.v1.graph_stack import GRAPHS, Process, default_session
from hybridflow.compat.v1.nodes import Compute, GraphDef, Info, Operation, Tensor

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


class Graph:
    """Operations, in the order in which they were made, and collections of what belongs to them."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names: dict[str, int] = {}
        self._collections: dict[Any, list[Any]] = {}
        self._scope = ""
        self._controls: tuple[Operation, ...] = ()
        self._device: Any = ""  # or a function of an operation
        self._finalized = False
        self.body: object = None  # of a loop or branch that is being built
        self.seed: int | None = None
        self.store: Any = None  # of variables by name, see ``variables``
        self.of_layers: dict[int, Any] = {}  # weights of Keras's layers by id, with the variables that stand for them

    # Being the default

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Operations that are made in the block belong to this graph."""
        token = GRAPHS.set((*GRAPHS.get(), self))
        try:
            yield self
        finally:
            GRAPHS.reset(token)

    def session_for(self, session: object) -> Any:
        """The session, or the innermost default one.  Raises ValueError where there is none."""
        result = session or default_session()
        if result is None:
            raise ValueError(
                "Cannot evaluate without a session: use `with sess.as_default()`, or pass an explicit session to "
                "`eval(session=sess)`."
            )
        return result

    # Operations

    def add(
        self,
        type: str,
        name: str | None,
        inputs: Sequence[Tensor],
        infos: Sequence[Info],
        compute: Compute,
        attributes: dict[str, Any] | None = None,
    ) -> Operation:
        """Append an operation.  Raises RuntimeError once the graph is finalized, ValueError for another graph's
        tensors."""
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        for tensor in inputs:
            if tensor.graph is not self:
                raise ValueError(f"Tensor {tensor.name!r} must be from the same graph as {name or type!r}.")
        # A name that ends with a slash is a whole one, which was made unique before.
        unique = name[:-1] if name and name.endswith("/") else self.unique_name(name or type)
        op = Operation(self, type, unique, inputs, infos, compute)
        op.attributes = dict(attributes or {})
        if infos and infos[0].dtype is not None:
            op.attributes.setdefault("dtype" if not inputs else "T", infos[0].dtype)
        op.device = canonical(self._device(op) or "") if callable(self._device) else self._device
        op.body, op.number = self.body, len(self._operations)
        op.control_inputs = [x for x in self._controls if not any(t.op is x for t in inputs)]
        self._operations.append(op)
        self._by_name[unique] = op
        return op

    def get_operations(self) -> list[Operation]:
        return list(self._operations)

    @property
    def version(self) -> int:
        return len(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """Raises KeyError where there is none."""
        if name not in self._by_name:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.{self._near(name)}")
        return self._by_name[name]

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor ``"operation:number"``.  Raises ValueError for another form, KeyError where there is none."""
        op, colon, index = name.partition(":")
        if not colon or not index.isdigit():
            raise ValueError(f"{name!r} is no name of a tensor, which are of the form '<op_name>:<output_index>'.")
        if op not in self._by_name or int(index) >= len(self._by_name[op].outputs):
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist.{self._near(op)}")
        return self._by_name[op].outputs[int(index)]

    def _near(self, name: str) -> str:
        import difflib

        near = difflib.get_close_matches(name, self._by_name, 1)
        return f" Did you mean {near[0]!r}?" if near else ""

    def as_graph_element(self, value: TensorLike, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """A tensor or operation, given itself, its name, or a variable.  Raises TypeError, ValueError or KeyError."""
        value = value._as_graph_element() if hasattr(value, "_as_graph_element") else value
        if isinstance(value, str):
            if ":" in value and allow_tensor:
                return self.get_tensor_by_name(value)
            return self.get_operation_by_name(value)
        if isinstance(value, (Tensor, Operation)):
            if value.graph is not self:
                raise ValueError(f"{value!r} is not an element of this graph.")
            if (allow_tensor and isinstance(value, Tensor)) or (allow_operation and isinstance(value, Operation)):
                return value
        raise TypeError(f"Can not convert a {type(value).__name__} into a Tensor or Operation.")

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        return GraphDef([op.node_def for op in self._operations])

    def finalize(self) -> None:
        """Let nothing be added any more."""
        self._finalized = True

    def unfinalize(self) -> None:
        """Let it grow again."""
        self._finalized = False

    @property
    def finalized(self) -> bool:
        return self._finalized

    # Scopes

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """The name within the present scope, with a number behind it where it is taken."""
        if not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", name) and not (
            self._scope and re.fullmatch(r"[\w.\\/>-]+", name)
        ):
            raise ValueError(f"{name!r} is not a valid scope name.")
        whole = f"{self._scope}/{name}" if self._scope else name
        key = whole.lower()
        count = self._names.get(key, 0)
        if mark_as_used:
            self._names[key] = count + 1
        if count:
            result = f"{whole}_{count}"
            while result.lower() in self._names:
                count += 1
                result = f"{whole}_{count}"
            if mark_as_used:
                self._names[result.lower()] = 1
                self._names[key] = count + 1
            return result
        return whole

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Names of operations made in the block begin with this one; gives it, with a slash."""
        before = self._scope
        if not name:
            self._scope = ""
        elif name.endswith("/"):
            self._scope = name[:-1]
        else:
            self._scope = self.unique_name(name)
        try:
            yield f"{self._scope}/" if self._scope else ""
        finally:
            self._scope = before

    def get_name_scope(self) -> str:
        return self._scope

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Operations made in the block run after these; None forgets those of the blocks around."""
        before = self._controls
        if control_inputs is None:
            self._controls = ()
        else:
            elements = [self.as_graph_element(x) for x in control_inputs]
            ops = [x.op if isinstance(x, Tensor) else x for x in elements]
            self._controls = (*before, *(op for op in dict.fromkeys(ops) if op not in before))
        try:
            yield
        finally:
            self._controls = before

    @contextmanager
    def device(self, name: object) -> Iterator[None]:
        """Note a device for operations made in the block; sessions run where hybridflow runs."""
        before = self._device
        self._device = name if callable(name) else "" if name is None else canonical(name)
        try:
            yield
        finally:
            self._device = before

    @contextmanager
    def in_body(self, body: object) -> Iterator[None]:
        """Operations made in the block belong to the body of a loop or branch."""
        before, controls = self.body, self._controls
        self.body, self._controls = body, ()
        try:
            yield
        finally:
            self.body, self._controls = before, controls

    # Collections

    def add_to_collection(self, name: object, value: object) -> None:
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: object) -> None:
        for name in dict.fromkeys([names] if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection(self, name: object, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with ``scope`` those whose name it matches at the beginning."""
        result = list(self._collections.get(name, []))
        if scope:
            pattern = re.compile(scope)
            result = [x for x in result if hasattr(x, "name") and pattern.match(x.name)]
        return result

    def get_collection_ref(self, name: object) -> list[Any]:
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        return [name for name, values in self._collections.items() if values]

    def clear_collection(self, name: object) -> None:
        self._collections.pop(name, None)


def canonical(device: Any) -> str:
    """A device's name as TensorFlow writes it: ``"/cpu:0"`` is ``"/device:CPU:0"``."""
    text = device if isinstance(device, str) else device.to_string()
    return re.sub(r"/(?:device:)?(cpu|gpu):", lambda m: f"/device:{m[1].upper()}:", text, flags=re.I)


def default_graph() -> Graph:
    """The innermost open graph, or that of the process."""
    opened = GRAPHS.get()
    if opened:
        result: Graph = opened[-1]
        return result
    if Process.graph is None:
        Process.graph = Graph()
    whole: Graph = Process.graph
    return whole


def reset_default_graph() -> None:
    """Forget the graph of the process.  Raises AssertionError within ``as_default``."""
    if GRAPHS.get():
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs.")
    Process.graph = None
