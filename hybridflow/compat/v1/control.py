"""Branches and loops of graphs: their bodies are built once, and run as those of ``hf.cond`` and ``hf.while_loop``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.compat.adapters.control import grown
from hybridflow.compat.v1.constants import convert_to_tensor
from hybridflow.compat.v1.effects import Assert
from hybridflow.compat.v1.evaluation import Body, Run, as_value
from hybridflow.compat.v1.functions import TABLE
from hybridflow.compat.v1.graph import Graph, default_graph
from hybridflow.compat.v1.nodes import Info, Operation, Tensor
from hybridflow.compat.v1.recording import as_graph_tensor
from hybridflow.compat.v1.tensor_arrays import like
from hybridflow.compiler.ir.dtypes import int32
from hybridflow.control import cond as control_cond, loops, scan as control_scan
from hybridflow.core import pytree
from hybridflow.core.variable import Variable as Held

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


def _parameter(graph: Graph, info: Info, name: str) -> Tensor:
    return graph.add("Parameter", name, [], [info._replace(known=None)], _no_arguments).outputs[0]


def _no_arguments(run: object, values: object) -> Any:
    raise AssertionError("a body is called with its arguments")


def _built(
    graph: Graph,
    function: Callable[..., Any],
    infos: Sequence[Info],
    scope: str,
    arrange: Callable[..., Any] | None = None,
) -> tuple[Body, Callable[[Sequence[Tensor]], Any]]:
    """The body that a function builds of tensors of these kinds, and how to make its result of tensors."""
    body = Body([])
    with graph.in_body(body), graph.name_scope(scope):
        body.parameters = [_parameter(graph, info, f"arg{k}") for k, info in enumerate(infos)]
        result = function(*body.parameters) if arrange is None else function(*arrange(body.parameters))
        leaves, structure = pytree.flatten(result)
        ops = [leaf for leaf in leaves if isinstance(leaf, Operation)]
        kept = [leaf for leaf in leaves if leaf is not None and not isinstance(leaf, Operation)]
        tensors = [_result(leaf) for leaf in kept]
    body.close(tensors, ops)
    return body, lambda results: pytree.unflatten(structure, like(kept, results))


def _result(leaf: ArrayLike) -> Tensor:
    """What a body returns as a tensor; one from outside becomes one of the body's."""
    tensor: Tensor = TABLE["identity"](convert_to_tensor(leaf))
    return tensor


def _merged(a: Info, b: Info) -> Info:
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Info(None, a.dtype)
    return Info(tuple([x if x == y else None for x, y in zip(a.shape, b.shape)]), a.dtype)


def _inputs(bodies: Sequence[Body]) -> list[Tensor]:
    return list(dict.fromkeys(t for body in bodies for t in body.captured))


def _note(op: Operation, bodies: Sequence[Body]) -> Operation:
    """Say what variables bodies read and write, and let the operation have them."""
    op.bodies = list(bodies)
    for body in bodies:
        for inner in body.operations:
            op.reads += [t.op.source for t in inner.inputs if t.op.is_reference] + inner.reads
            op.writes += inner.writes
            op.is_eager = op.is_eager or inner.is_eager
            if inner.on_host:
                raise NotImplementedError(f"{inner.name} ({inner.type}) within a loop or branch runs on the host.")
    return op


def _call(body: Body, run: Any, known: dict[Tensor, Any], values: Sequence[Any]) -> list[Any]:
    results = body.call(run, [known[t] for t in body.captured], values)
    return [as_value(x._read() if isinstance(x, Held) else x) for x in results]


def cond(
    pred: TensorLike,
    true_fn: object = None,
    false_fn: object = None,
    strict: bool = False,
    name: str | None = None,
    fn1: object = None,
    fn2: object = None,
) -> Any:
    """``true_fn()`` where ``pred`` is True, else ``false_fn()``.  Both are built; what is made inside of them runs in
    one of them alone, what is made outside runs anyway."""
    functions = (true_fn or fn1, false_fn or fn2)
    for function in functions:
        if not callable(function):
            raise TypeError("true_fn and false_fn must be callable.")
    if isinstance(pred, bool):
        return functions[0 if pred else 1]()
    return _branching(as_graph_tensor(pred), functions, name or "cond", _of_two)


def _of_two(which: object, taken: Sequence[Callable[[], Any]]) -> Any:
    return control_cond.cond(which, *taken)


def _branching(chooser: Tensor, functions: Sequence[Any], name: str, choose: Callable[..., Any]) -> Any:
    graph = chooser.graph
    with graph.name_scope(name) as scope:
        built = [_built(graph, f, [], scope) for f in functions]
        bodies = [body for body, _ in built]
        rebuild = built[0][1]
        if any(len(body.results) != len(bodies[0].results) for body in bodies):
            raise TypeError(f"the branches of {name} return different numbers of tensors.")
        for tensors in zip(*(body.results for body in bodies)):
            kinds = {t.dtype for t in tensors}
            if len(kinds) > 1:
                raise TypeError(f"the branches of {name} return {' and '.join(map(str, kinds))}; cast one of them.")
        infos = list(bodies[0].results)
        merged = [t.info._replace(known=None) for t in infos]
        for body in bodies[1:]:
            merged = [_merged(a, t.info) for a, t in zip(merged, body.results)]
        captured = _inputs(bodies)

        def compute(run: object, values: Sequence[Any]) -> list[Any]:
            known = dict(zip(captured, values[1:]))
            taken = [lambda body=body: _call(body, run, known, []) for body in bodies]
            result: list[Any] = choose(as_value(values[0]), taken)
            return result

        op = _note(graph.add("If", "If", [chooser, *captured], merged, compute), bodies)
    return rebuild(op.outputs) if op.outputs else op  # where functions return operations, one for all of them


def case(
    pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """The result of the first function whose condition is True, or of ``default``; with ``exclusive`` a session raises
    InvalidArgumentError where several are."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if default is None:
        (_, default), pairs = pairs[-1], pairs[:-1]
    if not pairs:
        return default()
    if exclusive and len(pairs) > 1:
        conditions = TABLE["stack"]([pred for pred, _ in pairs])
        count = TABLE["reduce_sum"](TABLE["cast"](conditions, int32))
        told = [f"{name}: more than one condition is True with exclusive=True:", conditions]
        with default_graph().control_dependencies([Assert(TABLE["less_equal"](count, 1), told)]):
            pairs = [(TABLE["identity"](pred), function) for pred, function in pairs]
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, (lambda: case(rest, default, name=name)) if rest else default, name=name)


def switch_case(branch_index: TensorLike, branch_fns: Any, default: object = None, name: str = "switch_case") -> Any:
    """``branch_fns[branch_index]()``, or the default's result, or the last one's."""
    functions = list(branch_fns.values() if isinstance(branch_fns, dict) else branch_fns)
    numbers = list(branch_fns) if isinstance(branch_fns, dict) else range(len(functions))
    every = functions if default is None else [*functions, default]

    def choose(which: object, taken: Sequence[Callable[[], Any]]) -> Any:
        by_number = dict(zip(numbers, taken))
        return control_cond.switch_case(which, by_number, default=None if default is None else taken[-1])

    return _branching(as_graph_tensor(branch_index), every, name, choose)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: object,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: object = None,
    return_same_structure: bool = False,
) -> Any:
    """``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)``."""
    graph = default_graph()
    leaves, structure = pytree.flatten(tuple(loop_vars) if isinstance(loop_vars, list) else loop_vars)
    start = [convert_to_tensor(leaf) for leaf in leaves]
    several = isinstance(loop_vars, (list, tuple))

    def arranged(tensors: Sequence[Tensor]) -> Any:
        arranged_values = pytree.unflatten(structure, like(leaves, tensors))
        return arranged_values if several else (arranged_values,)

    with graph.name_scope(name or "while") as scope:
        infos = _opened([t.info for t in start], shape_invariants)
        condition, _ = _built(graph, cond, infos, scope, arranged)
        iteration, _ = _built(graph, body, infos, scope, arranged)
        if len(iteration.results) != len(start):
            raise ValueError(
                f"The body of {name or 'the loop'} returns {len(iteration.results)} tensors for {len(start)} variables."
            )
        if shape_invariants is None:
            _check_kept(start, iteration.results)
        grows = any(map(_grows, start, iteration.results))
        bodies = [condition, iteration]
        captured = _inputs(bodies)

        def compute(run: object, values: Sequence[Any]) -> list[Any]:
            known = dict(zip(captured, values[len(start) :]))
            held = tuple([as_value(x) for x in values[: len(start)]])
            run_loop = grown if grows else loops.while_loop
            results = run_loop(
                lambda *now: _call(condition, run, known, now)[0],
                lambda *now: tuple(_call(iteration, run, known, now)),
                held,
                maximum_iterations,
            )
            return list(results)

        results = [_merged(a, b.info) for a, b in zip(infos, iteration.results)]
        op = _note(graph.add("While", "While", [*start, *captured], results, compute), bodies)
        op.is_eager = op.is_eager or grows
    arranged_values = pytree.unflatten(structure, like(leaves, op.outputs))
    if several and len(op.outputs) == 1 and not return_same_structure:
        return pytree.flatten(arranged_values)[0][0]
    return list(arranged_values) if isinstance(loop_vars, list) else arranged_values


def _check_kept(start: Sequence[Tensor], after: Sequence[Tensor]) -> None:
    """Raise ValueError for a variable of another shape after a turn."""
    for before, tensor in zip(start, after):
        if not before.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"Input tensor {before.name!r} enters the loop with shape {before.shape}, but has shape {tensor.shape} "
                "after one iteration."
            )


def _grows(before: Tensor, after: Tensor) -> bool:
    """Whether an extent that is known before a turn is another one after it."""
    pairs = zip(before.info.shape or (), after.info.shape or ())
    return after.info.shape is None or any(a is not None and a != b for a, b in pairs)


def _opened(infos: Sequence[Info], invariants: Iterable[object]) -> list[Info]:
    if invariants is None:
        return [info._replace(known=None, is_size=False) for info in infos]
    from hybridflow.compat.v1.shapes import TensorShape

    shapes = [TensorShape(x) for x in invariants]
    return [Info(None if s.ndims is None else tuple(s.as_list()), info.dtype) for info, s in zip(infos, shapes)]


# ---- functions of rows


def _row(info: Info) -> Info:
    return Info(None if info.shape is None else info.shape[1:], info.dtype)


def map_fn(
    fn: Callable[..., Any],
    elems: TensorLike,
    dtype: DTypeLike | None = None,
    parallel_iterations: object = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``fn`` of each row, stacked."""
    return _walked("Map", fn, elems, None, name or "map", control_scan.map_fn)


def scan(
    fn: Callable[..., Any],
    elems: object,
    initializer: object = None,
    parallel_iterations: object = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """The values of ``a = fn(a, row)``, stacked; without ``initializer`` it begins with the first row."""

    def scanned(iteration: Any, rows: Any, start: ArrayLike) -> Any:
        return control_scan.scan(iteration, rows, start, reverse=reverse)

    return _walked("Scan", fn, elems, initializer, name or "scan", scanned)


def foldl(
    fn: Callable[..., Any],
    elems: TensorLike,
    initializer: object = None,
    parallel_iterations: object = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of ``a = fn(a, row)``."""
    return _walked("Foldl", fn, elems, initializer, name or "foldl", control_scan.foldl)


def foldr(
    fn: Callable[..., Any],
    elems: TensorLike,
    initializer: object = None,
    parallel_iterations: object = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The same from the last row to the first."""
    return _walked("Foldr", fn, elems, initializer, name or "foldr", control_scan.foldr)


def _walked(
    type: str, fn: Callable[..., Any], elems: object, start: object, name: str, scanned: Callable[..., Any]
) -> Any:
    graph = default_graph()
    leaves, structure = pytree.flatten(elems)
    rows = [convert_to_tensor(leaf) for leaf in leaves]
    held, held_structure = ([], structure) if start is None else pytree.flatten(start)
    carry = [convert_to_tensor(leaf) for leaf in held]
    of_rows = [_row(t.info) for t in rows]
    of_carry = [] if type == "Map" else [t.info._replace(known=None) for t in carry] if carry else of_rows

    def arranged(tensors: Sequence[Tensor]) -> Any:
        row = pytree.unflatten(structure, tensors[len(of_carry) :])
        return (pytree.unflatten(held_structure, tensors[: len(of_carry)]), row) if of_carry else (row,)

    with graph.name_scope(name) as scope:
        body, rebuild = _built(graph, fn, [*of_carry, *of_rows], scope, arranged)
        captured = _inputs([body])

        def compute(run: Run, values: Sequence[Any]) -> list[Any]:
            known = dict(zip(captured, values[len(rows) + len(carry) :]))
            arrays = [as_value(x) for x in values[: len(rows)]]
            if not of_carry:
                return list(scanned(lambda row: _call(body, run, known, row), arrays))
            begin = [as_value(x) for x in values[len(rows) : len(rows) + len(carry)]]
            return list(scanned(lambda now, row: _call(body, run, known, [*now, *row]), arrays, begin or None))

        count = None if rows[0].info.shape is None else rows[0].info.shape[0]
        front = (count,) if type in ("Map", "Scan") else ()
        infos = [Info(None if t.info.shape is None else front + t.info.shape, t.dtype) for t in body.results]
        op = _note(graph.add(type, type, [*rows, *carry, *captured], infos, compute), [body])
    return rebuild(op.outputs)


__all__ = ["case", "cond", "foldl", "foldr", "map_fn", "scan", "switch_case", "while_loop"]
