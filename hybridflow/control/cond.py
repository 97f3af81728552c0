"""Branches: ``cond``, ``switch_case`` and ``case``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybridflow.compiler.ir.dtypes import int32, int64, is_integer
from hybridflow.control.loop_state import Nest
from hybridflow.core.context import now, tracing
from hybridflow.core.promotion import weak_kind
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, cast
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, HybridflowError, ShapeError, entered
from hybridflow.tracing.structured_control import condition, trace_cond
from hybridflow.tracing.trace import Trace

Branch = Callable[[], Any]


@entered
def cond(pred: object, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: object) -> Any:
    """Conditional: ``true_fn(*operands)`` if ``pred`` is True, else ``false_fn(*operands)``.

    If ``pred`` is a tensor in a compiled function, both functions are traced, and the program selects one when it runs.
    They must return the same structure, dtypes and shapes; Python numbers take the dtype of the other branch.

    The functions may use closures, and read and assign variables: only the effects of the branch that runs happen.
    Gradients flow through the branch that runs.

    Args:
        pred: a bool, or a bool tensor ``[]``.
        true_fn: the function for True.
        false_fn: the function for False.
        *operands: the arguments of both.

    Returns:
        What the chosen function returns.

    Raises:
        DTypeError: where results of branches differ in dtype.
        ShapeError: where they differ in shape.
        ArgumentTypeError: where they differ in structure.

    >>> @hf.function
    ... def magnitude(x):
    ...     return hf.cond(x < 0, lambda x: -x, lambda x: x, x)
    ...
    >>> magnitude(hf.asarray(-2.5))
    <Tensor f32[] cpu> 2.5
    """
    _check_callable("cond", (true_fn, false_fn))
    which = condition("cond", pred)
    branches = [lambda: true_fn(*operands), lambda: false_fn(*operands)]
    if now().trace is None or not isinstance(pred, (Tensor, Variable)):
        return _run_branch("cond", branches, 0 if _is_true(which) else 1)
    return _traced("cond", which, branches)


@entered
def switch_case(
    branch_index: Any, branch_fns: object, *operands: object, default: Callable[..., Any] | None = None
) -> Any:
    """Switch: ``branch_fns[branch_index](*operands)``.

    For an index without a branch, ``default(*operands)`` runs; without a default the last branch, or the one with the
    largest number. As with ``hf.cond``, all branches must return values of the same types.

    Args:
        branch_index: an int, or an integer tensor ``[]``.
        branch_fns: a list of functions, or a dict of functions by number.
        *operands: the arguments of each.
        default: the function for other indices.

    Returns:
        What the chosen function returns.

    Raises:
        DTypeError: where results of branches differ in dtype.
        ShapeError: where they differ in shape.
        ArgumentTypeError: where they differ in structure.

    >>> @hf.function
    ... def scaled(k, x):
    ...     return hf.switch_case(k, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], x)
    ...
    >>> [float(scaled(hf.asarray(k), hf.asarray(1.5))) for k in (0, 1, 2, 7)]
    [1.5, 3.0, 4.5, 4.5]
    """
    numbers, functions = _numbered(branch_fns)
    others = [*functions, *([] if default is None else [default])]
    _check_callable("switch_case", others)
    index = as_tensor(branch_index, "switch_case")
    if index.shape:
        raise ShapeError("switch_case", f"the branch index is {index.type}. Expected a single integer.")
    if not is_integer(index.dtype):
        raise DTypeError("switch_case", f"the branch index is {index.type}. Expected an integer.")
    branches: list[Branch] = [lambda f=f: f(*operands) for f in others]  # type: ignore[misc]
    if now().trace is None or not isinstance(branch_index, (Tensor, Variable)):
        number = int(index if now().trace is None else branch_index)
        position = numbers.index(number) if number in numbers else len(branches) - 1
        return _run_branch("switch_case", branches, position)
    return _traced("switch_case", _position(index, numbers, len(branches)), branches)


@entered
def case(pred_fn_pairs: Sequence[tuple[Any, Branch]], default: Branch) -> Any:
    """Multi-way conditional: the result of the function behind the first condition that is True.

    All functions take no arguments and, as those of ``hf.cond``, return values of the same types.

    Args:
        pred_fn_pairs: pairs of a condition, a bool or a bool tensor ``[]``, and a function.
        default: the function that is called where no condition is True.

    Returns:
        What the chosen function returns.

    Raises:
        DTypeError: where results of functions differ in dtype.
        ShapeError: where they differ in shape.
        ArgumentTypeError: where they differ in structure.

    >>> @hf.function
    ... def sign(x):
    ...     return hf.case([(x < 0, lambda: -1.0), (x > 0, lambda: 1.0)], default=lambda: 0.0)
    ...
    >>> sign(hf.asarray(-3.0))
    <Tensor f32[] cpu> -1.0
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentTypeError("case", f"{pair!r:.60} is no pair (condition, function).")
    functions = [*(function for _, function in pairs), default]
    _check_callable("case", functions)
    tests = [condition("case", test) for test, _ in pairs]
    if now().trace is None:
        return _run_branch("case", functions, next((k for k, test in enumerate(tests) if _is_true(test)), len(pairs)))
    position: Any = as_tensor(len(pairs), "case")
    for k in reversed(range(len(pairs))):
        position = _where(tests[k], as_tensor(k, "case"), position)
    return _traced("case", position, functions)


def _where(test: Tensor, x: Tensor, y: Tensor) -> Tensor:
    (result,) = trace_cond("case", test, (lambda: [x], lambda: [y]))
    return result


def _is_true(test: Tensor) -> bool:
    known = test._known() if now().trace is not None else None
    return bool(test if known is None else known[()])


def _check_callable(stage: str, functions: Sequence[Any]) -> None:
    if not functions:
        raise ArgumentError(stage, "there is no branch. Give at least one function.")
    for function in functions:
        if not callable(function):
            raise ArgumentTypeError(
                stage, f"a branch is {function!r:.60}. Expected a function: write lambda: value for a value."
            )


def _numbered(branch_fns: object) -> tuple[list[int], list[Any]]:
    """The numbers of branches, and their functions."""
    if isinstance(branch_fns, Mapping):
        if not all(type(k) is int for k in branch_fns):
            raise ArgumentTypeError("switch_case", f"branches have the keys {list(branch_fns)!r:.80}. Expected ints.")
        numbers = sorted(branch_fns)
        return numbers, [branch_fns[k] for k in numbers]
    if not isinstance(branch_fns, (list, tuple)):
        raise ArgumentTypeError(
            "switch_case", f"branches are {branch_fns!r:.60}. Expected a list or dict of functions."
        )
    return list(range(len(branch_fns))), list(branch_fns)


def _position(index: Tensor, numbers: Sequence[int], count: int) -> Tensor:
    """The position of the branch of a number; of the last one where there is none."""
    wide = index if index.dtype in (int32, int64) else cast(index, int64)
    if list(numbers) == list(range(len(numbers))):
        return wide
    position = as_tensor(count - 1, "switch_case")
    for k, number in enumerate(numbers):
        position = _where(wide == number, as_tensor(k, "switch_case"), position)
    return position


def _run_branch(stage: str, branches: Sequence[Branch], position: int) -> Any:
    """The result of one branch, as Python runs it.  Numbers become the tensors that a compiled program returns."""
    nest = Nest(branches[position](), "the result")
    values = [x if isinstance(x, Tensor) else as_tensor(x, stage) for x in nest.values]
    if any(weak_kind(x) is not None for x in nest.values) and len(branches) > 1:
        dtypes = _dtypes(stage, branches)
        values = [cast(x, dtype) for x, dtype in zip(values, dtypes)] if dtypes else values
    return nest.filled(values)


def _dtypes(stage: str, branches: Sequence[Branch]) -> list[Any]:
    """The dtypes that the results have in a compiled program, where numbers take those of other branches; nothing
    where the branches cannot be traced, because they look at values."""
    trace = Trace(stage)
    try:
        with tracing(trace):
            which = trace.argument(as_tensor(0, stage).type, "which")
            nests: list[Nest] = []
            return [x.dtype for x in trace_cond(stage, which, [lambda f=f: _flat(f, nests) for f in branches])]  # type: ignore[misc]
    except HybridflowError:
        return []


def _flat(branch: Branch, nests: list[Nest]) -> list[Any]:
    nests.append(Nest(branch(), "the result"))
    return nests[-1].values


def _traced(stage: str, which: Tensor, branches: Sequence[Branch]) -> Any:
    nests: list[Nest] = []

    def flat(branch: Branch) -> list[Any]:
        values = _flat(branch, nests)
        if len(nests) > 1:
            nests[0].check_like(stage, nests[-1], "in the first branch", f"in branch {len(nests) - 1}")
        return values

    results = trace_cond(stage, which, [lambda f=f: flat(f) for f in branches], _Names(nests))  # type: ignore[misc]
    return nests[0].filled(results)


class _Names(Sequence[str]):
    """The names of results, which are known when the branches have been traced."""

    def __init__(self, nests: list[Nest]) -> None:
        self._nests = nests

    def __getitem__(self, k: Any) -> Any:
        return self._nests[0].names[k]

    def __len__(self) -> int:
        return len(self._nests[0].names)
