"""Meshes of logical replicas, and how arrays lie on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybridflow.compiler.ops.batching_rules import MeshAxis
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError, entered


class Mesh:
    """Logical replicas along named axes: ``make_mesh`` makes one.

    Args:
        sizes: how many replicas lie along each axis, by name, the outermost first.

    >>> mesh = hf.distribute.make_mesh({"data": 4, "model": 2})
    >>> mesh.size, mesh.axis_names
    (8, ('data', 'model'))
    """

    __slots__ = ("__weakref__", "_sizes")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, the outermost first."""
        return tuple(self._sizes)

    @property
    def shape(self) -> dict[str, int]:
        """How many replicas lie along each axis."""
        return dict(self._sizes)

    @property
    def size(self) -> int:
        """How many replicas there are."""
        return math.prod(self._sizes.values())

    def axis(self, name: str) -> MeshAxis:
        """An axis by name.

        Args:
            name: the name of the axis.

        Returns:
            The axis, with its size.

        Raises:
            ArgumentError: where there is none.
        """
        if name not in self._sizes:
            raise ArgumentError("mesh", f"there is no axis {name!r} in {self!r}.")
        return MeshAxis(name, self._sizes[name])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and tuple(self._sizes.items()) == tuple(other._sizes.items())

    def __hash__(self) -> int:
        return hash(tuple(self._sizes.items()))

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self._sizes.items())})"


@entered
def make_mesh(axis_shapes: Mapping[str, int] | Sequence[int], axis_names: Sequence[str] | None = None) -> Mesh:
    """A mesh of logical replicas.

    Its size is part of the program, not of the machine: one process may have all of the replicas.

    Args:
        axis_shapes: how many replicas lie along each axis, by name; or a sequence of them.
        axis_names: the names, where ``axis_shapes`` has none.

    Returns:
        A Mesh.

    Raises:
        ArgumentError: for a size below 1, or names that are missing or repeated.

    >>> hf.distribute.make_mesh({"data": 4})
    Mesh(data=4)
    >>> hf.distribute.make_mesh((4, 2), ("data", "model"))
    Mesh(data=4, model=2)
    """
    if isinstance(axis_shapes, Mapping):
        if axis_names is not None:
            raise ArgumentError("make_mesh", "axis_names are given beside a mapping, which has names already.")
        pairs = list(axis_shapes.items())
    else:
        sizes, names = list(axis_shapes), [] if axis_names is None else list(axis_names)
        if len(sizes) != len(names):
            raise ArgumentError("make_mesh", f"there are {len(sizes)} sizes and {len(names)} names of axes.")
        pairs = list(zip(names, sizes))
    for name, size in pairs:
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError("make_mesh", f"the name of an axis is {name!r}. Expected a text.")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ArgumentError("make_mesh", f"the axis {name!r} has {size!r} replicas. Expected 1 or more.")
    if not pairs or len(dict(pairs)) < len(pairs):
        raise ArgumentError("make_mesh", "Expected one axis or more, each of another name.")
    return Mesh(dict(pairs))


class P(tuple[Any, ...]):
    """How the axes of an array lie on those of a mesh, as JAX's ``PartitionSpec``.

    Args:
        *parts: for each axis of the array the name of the mesh axis along which it is cut, a tuple of names, outermost
            first, or None. Axes that are not mentioned are not cut.

    >>> hf.distribute.P("data", None)
    P('data', None)
    """

    __slots__ = ()

    def __new__(cls, *parts: object) -> P:
        for part in parts:
            for name in part if isinstance(part, tuple) else (part,):
                if name is not None and not isinstance(name, str):
                    raise ArgumentTypeError("P", f"{name!r} is no name of a mesh axis. Expected a text, or None.")
        names = [name for part in parts for name in (part if isinstance(part, tuple) else (part,)) if name is not None]
        if len(set(names)) < len(names):
            raise ArgumentError("P", f"a mesh axis cuts two axes of the array: {names}.")
        return super().__new__(cls, parts)

    def cuts(self) -> Iterator[tuple[int, str]]:
        """(axis of the array, mesh axis) of each cut."""
        for axis, part in enumerate(self):
            for name in part if isinstance(part, tuple) else (part,):
                if name is not None:
                    yield axis, name

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"


class NamedSharding:
    """How an array lies on a mesh: which part of it is each replica's.

    Args:
        mesh: the mesh.
        spec: along which of its axes those of the array are cut.

    Raises:
        ArgumentError: for an axis that the mesh has not.

    >>> mesh = hf.distribute.make_mesh({"data": 4, "model": 2})
    >>> hf.distribute.NamedSharding(mesh, hf.distribute.P("data", "model")).shard_shape((8, 6))
    (2, 3)
    """

    __slots__ = ("__weakref__", "mesh", "spec")

    def __init__(self, mesh: Mesh, spec: P) -> None:
        self.mesh, self.spec = mesh, P(*spec)
        check_spec("NamedSharding", mesh, self.spec)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each replica has the whole array."""
        return not list(self.spec.cuts())

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one replica's part.

        Args:
            global_shape: the shape of the whole.

        Returns:
            A tuple of ints.

        Raises:
            ShapeError: where an axis does not fall into equal parts.
        """
        shape = list(global_shape)
        for axis, name in self.spec.cuts():
            shape[axis] = part_of("NamedSharding", tuple(global_shape), shape, axis, self.mesh.axis(name))
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh!r}, {self.spec!r})"


def check_spec(stage: str, mesh: Mesh, spec: P) -> None:
    """Raise ArgumentError for a mesh axis that is not there, or an order of two that is not the mesh's."""
    for _, name in spec.cuts():
        if name not in mesh.axis_names:
            raise ArgumentError(stage, f"{spec!r} names the axis {name!r}, which {mesh!r} has not.")
    for part in spec:
        if isinstance(part, tuple):
            order = [mesh.axis_names.index(name) for name in part if name is not None]
            if order != sorted(order):
                raise ArgumentError(stage, f"{spec!r} names axes in another order than {mesh!r}.")


def part_of(stage: str, whole: Sequence[Any], shape: Sequence[Any], axis: int, cut: MeshAxis) -> Any:
    """The extent of one part.  Raises ShapeError for an axis out of range, and for parts that are not equal."""
    if axis >= len(shape):
        raise ShapeError(stage, f"an array of shape {tuple(whole)} has no axis {axis} to be cut along {cut.name!r}.")
    extent = shape[axis]
    if isinstance(extent, int) and extent % cut.size:
        raise ShapeError(
            stage,
            f"axis {axis} of an array of shape {tuple(whole)} does not fall into {cut.size} equal parts along "
            f"{cut.name!r}.",
        )
    return extent // cut.size
