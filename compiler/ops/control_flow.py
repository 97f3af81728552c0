"""Control flow: ops that run sub-graphs, which are attributes.

A sub-graph is closed: what it reads of its surroundings are operands, handed on to its inputs (symbolic extents alone
are those of the whole program).  Its inputs are plain arguments, and it updates no state: a variable that a body reads
and writes is a carry.  Where effects happen inside, a token comes in and goes out like any other carry.

    call(*xs) {body}                         the results of ``body(*xs)``
    cond(which, *xs) {branches}              those of one branch: with a bool the first of two where it is True; with an
                                             integer the branch of that number, the last one where there is none
    while(*xs) {cond, body}                  ``body`` returns new values of the first operands (the carries); the others
                                             are the same in each iteration.  It iterates while ``cond`` is True, which
                                             is given the same but for a token: it has no effects
    scan(*xs) {body, carries, stacked,       ``length`` iterations.  The operands are ``carries`` carries, then
               length, reverse}              ``stacked`` arrays, of which an iteration sees the next slice along axis 0
                                             (``reverse``: from the last to the first), then what is the same in each
                                             iteration.  ``body`` returns the new carries, then slices that are stacked
                                             at the same positions

    sized(count, *xs) {body, symbol}         ``body(*xs)``, in which the extent ``symbol`` is two more than ``count``:
                                             an extent that is found when the program runs, in memory that is taken then

    custom(*outs, *sources, *xs)             ``outs``.  The cotangents of ``sources``, of which there are ``given``, are
        {derivative, made, given}            ``derivative(*cotangents of outs, *xs)``: it is the derivative of functions
                                             that say theirs themselves

    token()                                  what the first effect of a program takes
    callback(token, *xs) {number, types}     the program's function in Python of that number is called with the arrays;
                                             a token, then the arrays of these types that it returned
    ask(*xs) {number, types, is_last,        the same of a function that computes from its arguments alone: it is called
      exchange}                              when its results are needed, in no order, and may be called again.  It has
                                             no derivative, which is an error where it ``is_last`` of what is known

    require(ok, *xs) {number, message}       nothing, where the bool ``ok`` is True; else the program ends as if a check
                                             failed, with what its function of that number raises, given the arrays,
                                             or where none can be called with the message

All but ``token`` have several results, which ``project`` nodes read.  Whether one may raise follows from its
sub-graphs, and what is inside of a sub-graph is computed only when that is run: nothing that may raise leaves its
branch or body.

What a callback may do, nobody knows: it happens once each time it is come to, in the tokens' order; not if a check that
stands above it in the program fails, and even if one below it does.  An error in Python ends the program like a check.

Their derivatives are sub-graphs again.  That of ``cond`` is a ``cond`` over the branches' derivatives.  Each of them
computes what it needs of the forward branch anew or takes it as one of the forward ``cond``'s further results.  That of
``scan`` is a ``scan`` in reverse: what an iteration's derivative needs of the forward iteration leaves the forward scan
as further stacked results and enters the backward scan as stacked operands; cotangents are carries, and those of
operands that are the same in each iteration are carries that grow by addition.  A ``while`` does not know its number of
iterations: its forward pass counts them and stacks the same residuals into memory that grows, and the derivative is a
``scan`` over the count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import symbols
from hybridflow.compiler.ir.graph import Effect, Graph, Role, graphs_in, parameter
from hybridflow.compiler.ir.results import TOKEN, TupleType, is_token, types_agree
from hybridflow.compiler.ir.types import Dim, Extent, Shape, TensorType, same_shape
from hybridflow.compiler.ops.lowering import Assert, DynamicExtent, HostCall, Scan, Switch, While
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, GradientError, ShapeError

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder, Cotangent, Value


Types = Sequence[TensorType]
Arrays = Sequence[np.ndarray]


class GraphRunner(Protocol):
    """What references of control flow run sub-graphs with."""

    def __call__(self, graph: Graph, arrays: Arrays) -> list[np.ndarray]:
        """The outputs of a sub-graph."""

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """What a shape is in this run."""

    def let(self, symbol: str, extent: int) -> None:
        """Say what an extent is from now on."""

    def callback(self, number: int, arrays: Arrays, types: Types) -> list[np.ndarray]:
        """What the function of that number returns, which must be of these types."""


# ---- one of several results


def _project_canon(types: Types, attrs: dict[str, Any]) -> dict[str, int]:
    index, whole = attrs["index"], types[0]
    if not isinstance(whole, TupleType):
        raise ArgumentTypeError("project", f"the input is {whole}. Expected a value with several results.")
    if type(index) is not int or not 0 <= index < len(whole.parts):
        raise ArgumentError("project", f"index is {index!r}. Expected a number below {len(whole.parts)}, of {whole}.")
    return attrs


define(
    "project",
    Kind.PROJECT,
    1,
    doc="One of the results of a node that has several.",
    canon=_project_canon,
    infer=lambda whole, index: whole.parts[index],
    reference=lambda whole, index: whole[index],
    vjp=NOT_DIFFERENTIABLE,  # the derivative is that of the node with the results, see autodiff
    samples=lambda rng, dtype: [],
    dtypes=(),
)


# ---- what sub-graphs must be like


def _graph(name: str, what: str, value: object) -> Graph:
    if not isinstance(value, Graph):
        raise ArgumentTypeError(name, f"{what} is {value!r}. Expected a graph.")
    if value.updates or any(n.is_parameter and n.attrs["role"] is not Role.ARGUMENT for n in value.inputs):
        raise ArgumentError(
            name, f"{what} has state or captures of its own. Expected plain arguments: a variable goes in and comes "
            "out as a carry."
        )  # fmt: skip
    return value


def _check_inputs(name: str, what: str, graph: Graph, operands: Types) -> None:
    wanted = [n.type for n in graph.inputs]
    if len(wanted) != len(operands):
        raise ArgumentError(name, f"{what} takes {len(wanted)} values, and is given {len(operands)}.")
    for i, (inner, outer) in enumerate(zip(wanted, operands)):
        _check_type(name, f"input {i} ({graph.inputs[i].attrs['name']!r}) of {what}", inner, outer, "it is given")


def _check_type(name: str, what: str, actual: TensorType, expected: TensorType, whose: str) -> None:
    if types_agree(actual, expected):
        return
    differ = DTypeError if actual.dtype != expected.dtype else ShapeError
    raise differ(name, f"{what} is {actual}, and {whose} {expected}. Expected equal types.")


def _outputs(graph: Graph) -> tuple[TensorType, ...]:
    return tuple([n.type for n in graph.outputs])


def _check_carries(name: str, types: Types, carries: Types) -> None:
    for i, (new, old) in enumerate(zip(types, carries)):
        _check_type(name, f"result {i} of the body", new, old, f"carry {i} is")


def _may_raise(types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> bool:
    return any(graph.may_raise for graph in graphs_in(attrs))


def _no_derivative(name: str) -> Callable[..., Any]:
    def vjp(*args: object, **attrs: object) -> NoReturn:
        raise GradientError(name, f"there is no derivative through {name} yet.")

    return vjp


def _many(name: str) -> Callable[..., Any]:
    """The rule of that name for many examples at once."""

    def rule(*args: object, **attrs: object) -> Any:
        from hybridflow.compiler.ops import control_flow_batching  # which a first operation does without

        return getattr(control_flow_batching, name)(*args, **attrs)

    return rule


def _derivative(name: str) -> Callable[..., Any]:
    """The rule of that name for derivatives."""

    def rule(*args: object, **attrs: object) -> Any:
        from hybridflow.compiler.ops import control_flow_derivatives  # which a first operation does without

        return getattr(control_flow_derivatives, name)(*args, **attrs)

    return rule


def _control(name: str, **fields: object) -> None:
    fields.setdefault("vjp", _no_derivative(name))
    fields.setdefault("raises", _may_raise)
    define(
        name,
        Kind.CONTROL,
        None,
        effect=Effect.ORDERED,
        samples=lambda rng, dtype: [],
        dtypes=(),
        **fields,
    )


# ---- call


def _call_infer(*types: TensorType, body: Graph) -> TupleType:
    _check_inputs("call", "the body", body, types)
    return TupleType(_outputs(body))


_control(
    "call",
    doc="The results of a sub-graph.",
    canon=lambda types, attrs: {"body": _graph("call", "the body", attrs["body"])},
    infer=_call_infer,
    lower=lambda types, attrs: Switch((attrs["body"],), fixed=True),
    batch=_many("call_batch"),
    reference=lambda run, *xs, body: tuple(run(body, xs)),
)


# ---- cond


def _cond_canon(types: Types, attrs: dict[str, Any]) -> dict[str, tuple[Graph, ...]]:
    branches = attrs["branches"]
    if not isinstance(branches, tuple) or not branches:
        raise ArgumentTypeError("cond", f"branches are {branches!r}. Expected a tuple of graphs, at least one.")
    for k, branch in enumerate(branches):
        _graph("cond", f"branch {k}", branch)
    return {"branches": branches}


def _cond_infer(which: TensorType, *types: TensorType, branches: tuple[Graph, ...]) -> TupleType:
    if which.shape or which.dtype not in (dt.bool_, dt.int32, dt.int64):
        raise DTypeError("cond", f"what chooses the branch is {which}. Expected bool[], i32[] or i64[].")
    if which.dtype == dt.bool_ and len(branches) != 2:
        raise ArgumentError("cond", f"a bool chooses among {len(branches)} branches. Expected two.")
    first = _outputs(branches[0])
    for k, branch in enumerate(branches):
        _check_inputs("cond", f"branch {k}", branch, types)
        outputs = _outputs(branch)
        if len(outputs) != len(first):
            raise ArgumentError("cond", f"branch {k} has {len(outputs)} results, and branch 0 has {len(first)}.")
        for i, (one, other) in enumerate(zip(outputs, first)):
            _check_type("cond", f"result {i} of branch {k}", one, other, "that of branch 0 is")
    return TupleType(first)


def selected_branch(which: Any, branches: int) -> int:
    """The number of the branch that a value chooses."""
    if isinstance(which, (bool, np.bool_)):
        return 0 if which else 1
    return int(which) if 0 <= which < branches else branches - 1


_control(
    "cond",
    doc="The results of the branch that the first operand chooses; no other is run.",
    canon=_cond_canon,
    infer=_cond_infer,
    lower=lambda types, attrs: Switch(attrs["branches"]),
    vjp=_derivative("cond_vjp"),
    batch=_many("cond_batch"),
    jvp=_derivative("cond_jvp"),
    accumulates=True,
    reference=lambda run, which, *xs, branches: tuple(run(branches[selected_branch(which[()], len(branches))], xs)),
)


# ---- while


def _while_canon(types: Types, attrs: dict[str, Any]) -> dict[str, Graph]:
    return {"cond": _graph("while", "the condition", attrs["cond"]), "body": _graph("while", "the body", attrs["body"])}


def _while_infer(*types: TensorType, cond: Graph, body: Graph) -> TupleType:
    _check_inputs("while", "the condition", cond, [t for t in types if not is_token(t)])
    _check_inputs("while", "the body", body, types)
    if _outputs(cond) != (TensorType((), dt.bool_),):
        outputs = ", ".join(map(str, _outputs(cond))) or "nothing"
        raise DTypeError("while", f"the condition returns {outputs}. Expected bool[].")
    carries = _outputs(body)
    if len(carries) > len(types):
        raise ArgumentError("while", f"the body returns {len(carries)} values for {len(types)} carries.")
    _check_carries("while", carries, types)
    return TupleType(carries)


def _while_reference(run: GraphRunner, *xs: np.ndarray, cond: Graph, body: Graph) -> tuple[np.ndarray, ...]:
    carries, rest = list(xs[: len(body.outputs)]), xs[len(body.outputs) :]
    asked = [k for k, node in enumerate(body.inputs) if not is_token(node.type)]
    while run(cond, [(*carries, *rest)[k] for k in asked])[0]:
        carries = run(body, (*carries, *rest))
    return tuple(carries)


_control(
    "while",
    doc="The carries after the last iteration of a loop that goes on as long as its condition holds.",
    canon=_while_canon,
    infer=_while_infer,
    lower=lambda types, attrs: While(attrs["cond"], attrs["body"]),
    vjp=_derivative("while_vjp"),
    batch=_many("while_batch"),
    jvp=_derivative("while_jvp"),
    accumulates=True,
    reference=_while_reference,
)


# ---- scan


def _scan_canon(types: Types, attrs: dict[str, Any]) -> dict[str, Any]:
    body = _graph("scan", "the body", attrs["body"])
    carries, stacked = attrs["carries"], attrs["stacked"]
    length, reverse = attrs["length"], attrs.get("reverse", False)
    for what, count in (("carries", carries), ("stacked", stacked)):
        if type(count) is not int or count < 0:
            raise ArgumentTypeError("scan", f"{what} is {count!r}. Expected a number of operands.")
    if carries + stacked > len(types) or carries > len(body.outputs):
        raise ArgumentError(
            "scan", f"there are {carries} carries and {stacked} stacked operands, but {len(types)} operands and "
            f"{len(body.outputs)} results of the body."
        )  # fmt: skip
    if isinstance(length, bool) or not isinstance(length, (int, Dim)) or (isinstance(length, int) and length < 0):
        raise ArgumentTypeError("scan", f"length is {length!r}. Expected an extent.")
    if not isinstance(reverse, bool):
        raise ArgumentTypeError("scan", f"reverse is {reverse!r}. Expected True or False.")
    return {"body": body, "carries": carries, "stacked": stacked, "length": length, "reverse": reverse}


def _scan_infer(
    *types: TensorType, body: Graph, carries: int, stacked: int, length: Extent, reverse: bool
) -> TupleType:
    slices = []
    for i, type in enumerate(types[carries : carries + stacked], carries):
        if not type.shape or not same_shape(type.shape[:1], (length,)):
            raise ShapeError("scan", f"operand {i} is {type}. Expected {length} slices along its first axis.")
        slices.append(type.with_shape(type.shape[1:]))
    _check_inputs("scan", "the body", body, (*types[:carries], *slices, *types[carries + stacked :]))
    outputs = _outputs(body)
    _check_carries("scan", outputs[:carries], types)
    return TupleType((*outputs[:carries], *(t.with_shape((length, *t.shape)) for t in outputs[carries:])))


def _scan_reference(
    run: GraphRunner, *xs: np.ndarray, body: Graph, carries: int, stacked: int, length: int, reverse: bool
) -> tuple[np.ndarray, ...]:
    held, arrays, rest = list(xs[:carries]), xs[carries : carries + stacked], xs[carries + stacked :]
    outputs_by_step: list[list[np.ndarray]] = [[] for _ in body.outputs[carries:]]
    for k in reversed(range(length)) if reverse else range(length):
        results = run(body, (*held, *(x[k] for x in arrays), *rest))
        held = results[:carries]
        for slices, one in zip(outputs_by_step, results[carries:]):
            slices.insert(0, one) if reverse else slices.append(one)
    stacks = [
        np.stack(slices) if slices else np.empty((0, *run.shape(node.shape)), node.dtype)
        for slices, node in zip(outputs_by_step, body.outputs[carries:])
    ]
    return (*held, *stacks)


_control(
    "scan",
    doc="The carries after a loop over slices, and what the iterations made, stacked.",
    canon=_scan_canon,
    infer=_scan_infer,
    lower=lambda types, attrs: Scan(**attrs),
    vjp=_derivative("scan_vjp"),
    batch=_many("scan_batch"),
    jvp=_derivative("scan_jvp"),
    accumulates=True,
    reference=_scan_reference,
)


# ---- sized


def _dynamic_extent_canon(types: Types, attrs: dict[str, Any]) -> dict[str, Any]:
    symbol = attrs["symbol"]
    if not isinstance(symbol, str) or not symbol.isidentifier():
        raise ArgumentTypeError("sized", f"symbol is {symbol!r}. Expected the name of an extent.")
    return {"body": _graph("sized", "the body", attrs["body"]), "symbol": symbol}


def _dynamic_extent_infer(count: TensorType, *types: TensorType, body: Graph, symbol: str) -> TupleType:
    if count != TensorType((), dt.int64):
        raise DTypeError("sized", f"the count is {count}. Expected i64[].")
    _check_inputs("sized", "the body", body, types)
    for type in (*types, *_outputs(body)):
        if not is_token(type) and any(symbol in symbols(extent) for extent in type.shape):
            raise ShapeError("sized", f"{type} has the extent {symbol}, which there is inside of the body alone.")
    return TupleType(_outputs(body))


def _dynamic_extent_reference(
    run: GraphRunner, count: np.ndarray, *xs: np.ndarray, body: Graph, symbol: str
) -> tuple[Any, ...]:
    run.let(symbol, max(int(count), 0) + 2)
    return tuple(run(body, xs))


_control(
    "sized",
    doc="The results of a sub-graph in which an extent is known when it is run.",
    canon=_dynamic_extent_canon,
    infer=_dynamic_extent_infer,
    lower=lambda types, attrs: DynamicExtent(**attrs),
    raises=lambda types, attrs: True,  # where there is no memory
    vjp=_derivative("dynamic_extent_vjp"),
    batch=_many("dynamic_extent_batch"),
    jvp=_derivative("dynamic_extent_jvp"),
    accumulates=True,
    reference=_dynamic_extent_reference,
)


# ---- custom


def _custom_canon(types: Types, attrs: dict[str, Any]) -> dict[str, Graph | int]:
    derivative = _graph("custom", "the derivative", attrs["derivative"])
    made, given = attrs["made"], attrs["given"]
    if type(made) is not int or type(given) is not int or not 0 <= made <= made + given <= len(types):
        raise ArgumentError("custom", f"there are {made!r} values, {given!r} sources, and {len(types)} operands.")
    return {"derivative": derivative, "given": given, "made": made}


def _custom_infer(*types: TensorType, derivative: Graph, given: int, made: int) -> TupleType:
    _check_inputs("custom", "the derivative", derivative, (*types[:made], *types[made + given :]))
    cotangents, sources = _outputs(derivative), types[made : made + given]
    if len(cotangents) != len(sources) or not all(map(types_agree, cotangents, sources)):
        raise ShapeError("custom", "the derivative does not return a cotangent of each source.")
    return TupleType(tuple(types[:made]))


def _custom_lowering(types: Types, attrs: Any) -> Switch:
    inputs = [parameter(type, f"x{k}") for k, type in enumerate(types)]
    return Switch((Graph("custom", tuple(inputs), (), tuple(inputs[: attrs["made"]])),), fixed=True)


_control(
    "custom",
    doc="The first operands, with a derivative of their own with respect to the next ones.",
    canon=_custom_canon,
    infer=_custom_infer,
    lower=_custom_lowering,
    raises=lambda types, attrs: False,  # its graph is for derivatives, which have been made when a program is run
    vjp=_derivative("custom_vjp"),
    batch=_many("custom_batch"),
    reference=lambda run, *xs, derivative, given, made: tuple(xs[:made]),
)


# ---- effects


define(
    "token",
    Kind.CREATE,
    0,
    doc="That nothing has happened yet: what the first effect of a program takes.",
    infer=lambda: TOKEN,
    reference=lambda: np.empty(TOKEN.shape, TOKEN.dtype),
    element=lambda g, index: g.e.const(0, TOKEN.dtype),
    vjp=NOT_DIFFERENTIABLE,
    samples=lambda rng, dtype: [],
    dtypes=(),
)


def _number_and_types(name: str) -> Callable[..., dict[str, Any]]:
    def canon(types: Types, attrs: dict[str, Any]) -> dict[str, Any]:
        number, result_types = attrs["number"], attrs["types"]
        if type(number) is not int or number < 0:
            raise ArgumentTypeError(name, f"number is {number!r}. Expected that of a function, 0 or more.")
        if not isinstance(result_types, tuple) or not all(
            isinstance(t, TensorType) and not is_token(t) for t in result_types
        ):
            raise ArgumentTypeError(name, f"types are {result_types!r}. Expected a tuple of types of arrays.")
        return {"number": number, "types": result_types}

    return canon


def _callback_infer(*operands: TensorType, number: int, types: tuple[TensorType, ...]) -> TupleType:
    if not operands or not is_token(operands[0]):
        first = f"the first operand is {operands[0]}" if operands else "there is no operand"
        raise ArgumentError("callback", f"{first}. Expected a token, which says what happens before.")
    return TupleType((TOKEN, *types))


def _callback_reference(
    run: GraphRunner, token: np.ndarray, *xs: np.ndarray, number: int, types: tuple[TensorType, ...]
) -> tuple[np.ndarray, ...]:
    return (token, *run.callback(number, xs, types))


define(
    "callback",
    Kind.CONTROL,
    None,
    doc="Calls a function in Python, in the order that tokens say.",
    canon=_number_and_types("callback"),
    infer=_callback_infer,
    lower=lambda types, attrs: HostCall(attrs["number"]),
    reference=_callback_reference,
    calls_host=True,
    effect=Effect.ORDERED,
    raises=lambda types, attrs: True,
    vjp=NOT_DIFFERENTIABLE,  # a function in Python says its own, or has none
    batch=_many("example_by_example"),
    samples=lambda rng, dtype: [],
    dtypes=(),
)


def _host_call_canon(types: Types, attrs: dict[str, Any]) -> dict[str, Any]:
    is_last = attrs["is_last"]
    if not isinstance(is_last, bool):
        raise ArgumentTypeError("ask", f"is_last is {is_last!r}. Expected True or False.")
    exchange = attrs.get("exchange", ())
    if not isinstance(exchange, tuple) or not all(type(word) is int for word in exchange):
        raise ArgumentTypeError("ask", f"exchange is {exchange!r:.60}. Expected a tuple of numbers.")
    return {"exchange": exchange, "is_last": is_last, **_number_and_types("ask")(types, attrs)}


def _host_call_reference(
    run: GraphRunner, *xs: np.ndarray, number: int, types: tuple[TensorType, ...], is_last: bool, exchange: object
) -> tuple[np.ndarray, ...]:
    return tuple(run.callback(number, xs, types))


def _host_call_vjp(
    b: Builder, gs: Sequence[Any], outs: object, *xs: Value, is_last: bool, **attrs: object
) -> list[Cotangent]:
    if is_last:
        raise GradientError(
            "py_function", "in a branch or loop there are derivatives of an order up to 3 through a function in Python."
        )
    return [None] * len(xs)


define(
    "ask",
    Kind.CONTROL,
    None,
    doc="Calls a function in Python that computes from its arguments alone.",
    canon=_host_call_canon,
    infer=lambda *operands, number, types, is_last, exchange: TupleType(types),
    lower=lambda types, attrs: HostCall(attrs["number"], exchange=attrs["exchange"]),
    reference=_host_call_reference,
    calls_host=True,
    raises=lambda types, attrs: True,
    vjp=_host_call_vjp,
    batch=_many("example_by_example"),
    samples=lambda rng, dtype: [],
    dtypes=(),
)


def _assert_canon(types: Types, attrs: dict[str, Any]) -> dict[str, int | str]:
    number, message = attrs["number"], attrs["message"]
    if type(number) is not int or number < 0:
        raise ArgumentTypeError("require", f"number is {number!r}. Expected that of a function, 0 or more.")
    if not isinstance(message, str):
        raise ArgumentTypeError("require", f"message is {message!r}. Expected a text.")
    return {"message": message, "number": number}


def _assert_infer(ok: TensorType, *operands: TensorType, number: int, message: str) -> TupleType:
    if ok != TensorType((), dt.bool_):
        raise DTypeError("require", f"the condition is {ok}. Expected bool[].")
    return TupleType(())


def _assert_reference(
    run: GraphRunner, ok: np.ndarray, *xs: np.ndarray, number: int, message: str
) -> tuple[np.ndarray, ...]:
    if not ok:
        run.callback(number, xs, ())
    return ()


define(
    "require",
    Kind.CONTROL,
    None,
    doc="Raises, where a condition does not hold, what a function in Python says.",
    canon=_assert_canon,
    infer=_assert_infer,
    lower=lambda types, attrs: Assert(**attrs),
    reference=_assert_reference,
    calls_host=True,
    raises=lambda types, attrs: True,
    vjp=NOT_DIFFERENTIABLE,
    batch=_many("example_by_example"),
    samples=lambda rng, dtype: [],
    dtypes=(),
)
