"""``shard_map``: a function of one replica's parts of arrays, run by all replicas of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.compiler.ops.batching_rules import MeshAxis, axis_to_front
from hybridflow.compiler.ops.collectives import gathered, of_this_process, parts
from hybridflow.control.loop_state import is_value
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.distribute.mesh import Mesh, NamedSharding, P, check_spec, part_of
from hybridflow.distribute.sharing import share_of
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError, entered
from hybridflow.jit.python_wrappers import converted
from hybridflow.tracing.batch_trace import over_examples

_STAGE = "shard_map"


@entered
def shard_map(
    f: Callable[..., Any] | None = None, /, *, mesh: Mesh, in_specs: object, out_specs: object
) -> Callable[..., Any]:
    """Run a function for each replica of a mesh, on its parts of the arguments.

    The function is traced once, with tensors that stand for one replica's parts: what depends on them has no value
    there. Replicas meet in collectives. Random numbers are other ones for each replica.

    Args:
        f: the function. Without it, a decorator is returned.
        mesh: the mesh.
        in_specs: how arguments are cut: a ``P`` for all, or a tuple with an entry for each, which may be a tree of
            them. What a mesh axis does not cut is the same for all replicas along it.
        out_specs: how results are put together, likewise. Along a mesh axis that is not named in it a result must be
            the same for all replicas, as those of ``all_reduce`` are.

    Returns:
        A function of whole arrays.

    Raises:
        ArgumentError: for a mesh axis that is not there, and for a result that differs between replicas where its spec
            does not say so.
        ShapeError: where an argument does not fall into equal parts.

    >>> mesh = hf.distribute.make_mesh({"data": 4})
    >>> P = hf.distribute.P
    >>> @hf.distribute.shard_map(mesh=mesh, in_specs=P("data"), out_specs=P())
    ... def total(x):
    ...     return hf.distribute.all_reduce(hf.sum(x), axis="data")
    >>> total(hf.arange(8.0))
    <Tensor f32[] cpu> 28.0
    """
    if not isinstance(mesh, Mesh):
        raise ArgumentTypeError(_STAGE, f"mesh is {mesh!r:.60}. Expected one that hf.distribute.make_mesh made.")
    if f is None:
        return functools.partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    if not callable(f):
        raise ArgumentTypeError(_STAGE, f"{f!r:.60} is no function; the function comes first.")

    @functools.wraps(f)
    def sharded(*args: object) -> Any:
        leaves, structure = pytree.flatten(args)
        specs = _spread(mesh, in_specs, args, "in_specs", "the arguments")
        values = [as_tensor(x, _STAGE) if is_value(x) else x for x in leaves]
        return _Call(f, mesh, structure, specs, out_specs).run(values)

    return entered(sharded)


class _Call:
    """One call: a loop over replicas for each axis of the mesh, the outermost first."""

    def __init__(
        self,
        function: Callable[..., Any],
        mesh: Mesh,
        structure: pytree.Structure,
        specs: Sequence[P],
        out_specs: object,
    ) -> None:
        self._function, self._mesh, self._structure = function, mesh, structure
        self._specs, self._out_specs = specs, out_specs
        self._made: tuple[list[Any], pytree.Structure] | None = None
        self._placed: list[P] = []

    def run(self, values: list[Any]) -> Any:
        results = iter(self._along(self._mesh.axis_names, values))
        assert self._made is not None
        leaves, structure = self._made
        return pytree.unflatten(structure, [next(results) if is_value(leaf) else leaf for leaf in leaves])

    def _along(self, names: Sequence[str], values: list[Any]) -> list[Tensor]:
        """The results of all replicas along these axes, put together."""
        if not names:
            return self._call(values)
        axis = self._mesh.axis(names[0])
        if len(names) == len(self._mesh.axis_names):  # processes share the outermost axis out
            axis = axis._replace(share=share_of(axis.size))
        places, stacked = [], []
        for k, (x, spec) in enumerate(zip(values, self._specs)):
            cut = next((place for place, name in spec.cuts() if name == axis.name), None)
            if cut is not None and isinstance(x, Tensor):
                part_of(_STAGE, x.shape, x.shape, cut, axis)
                places.append(k)
                stacked.append(of_this_process(builder, parts(builder, x, cut, axis.size), axis))

        def body(examples: list[Tensor]) -> list[Tensor]:
            replaced = list(values)
            for k, x in zip(places, examples):
                replaced[k] = x
            return self._along(names[1:], replaced)

        results, differ = over_examples(_STAGE, body, stacked, axis.here, "different", axis=axis)
        return [self._joined(axis, k, x, replaced) for k, (x, replaced) in enumerate(zip(results, differ))]

    def _call(self, values: list[Any]) -> list[Tensor]:
        args = pytree.unflatten(self._structure, values)
        result = converted(self._function, _STAGE)(*args)
        self._made = pytree.flatten(result)
        leaves = self._made[0]
        specs = _spread(self._mesh, self._out_specs, result, "out_specs", "the result")
        self._placed = [spec for spec, leaf in zip(specs, leaves) if is_value(leaf)]
        return [as_tensor(leaf, _STAGE) for leaf in leaves if is_value(leaf)]

    def _joined(self, axis: MeshAxis, k: int, x: Any, differs: bool) -> Tensor:
        spec = self._placed[k]
        cut = next((place for place, name in spec.cuts() if name == axis.name), None)
        if cut is None:
            if differs:
                raise ArgumentError(
                    _STAGE,
                    f"result {k} differs between the replicas along {axis.name!r}, which its spec {spec!r} does not "
                    "name. Name it, or make one value of them by a collective, as hf.distribute.all_reduce.",
                )
            return x
        whole = axis_to_front(builder, x, differs, axis.here)
        if cut >= len(whole.shape) - 1:
            raise ShapeError(_STAGE, f"result {k} is {x.type} in each replica; its spec {spec!r} is of more axes.")
        result: Tensor = gathered(builder, whole, True, axis, cut)
        return result


def _spread(mesh: Mesh, specs: object, value: object, name: str, path: str) -> list[P]:
    """The spec of each leaf.  Raises ArgumentTypeError for what is no spec, or nested otherwise than the value."""
    if isinstance(specs, NamedSharding):
        if specs.mesh != mesh:
            raise ArgumentError(_STAGE, f"{name} has a sharding on another mesh, {specs.mesh!r}.")
        specs = specs.spec
    if isinstance(specs, P) or specs is None:
        spec = specs or P()
        check_spec(_STAGE, mesh, spec)
        return [spec] * len(pytree.flatten(value)[0])
    if not pytree.is_container(specs):
        raise ArgumentTypeError(_STAGE, f"{name} is {specs!r:.60}. Expected a hf.distribute.P, or a tree of them.")
    parts = pytree.children(specs, name)
    held = pytree.children(value, path) if pytree.is_container(value) else None
    if held is None or len(parts) != len(held):
        raise ArgumentTypeError(_STAGE, f"{name} has {len(parts)} entries, and {path} is nested otherwise.")
    return [spec for (n, s), (p, v) in zip(parts, held) for spec in _spread(mesh, s, v, n, p)]
