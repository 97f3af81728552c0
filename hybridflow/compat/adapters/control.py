"""Control flow, functions, tapes and modules with TensorFlow's arguments."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import TensorShape, as_dtype, convert_to_tensor, extents, operand
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.compat.facade import Facade
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.type_aliases import ShapeLike
from hybridflow.errors import ArgumentError, ShapeError
from hybridflow.ragged import Ragged

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike, DTypeLike


@tf_export("UnconnectedGradients")
class UnconnectedGradients(enum.StrEnum):
    """``tf.UnconnectedGradients``."""

    NONE = "none"
    ZERO = "zero"


@tf_export("function")
def function(
    func: Callable[..., object] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: object = None,
    reduce_retracing: bool = False,
    experimental_implements: object = None,
    experimental_autograph_options: object = None,
    experimental_attributes: object = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: object = None,
    experimental_follow_type_hints: object = None,
) -> Any:
    """``tf.function``: every function is compiled, whatever ``jit_compile`` says, and statements are always
    converted."""
    relax = bool(reduce_retracing or experimental_relax_shapes)

    def decorate(python: Callable[..., Any]) -> Any:
        return hf.function(python, input_signature=input_signature, reduce_retracing=relax).with_results(_as_results)

    return decorate if func is None else decorate(func)


@tf_export("while_loop")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: object,
    shape_invariants: object = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: ArrayLike | None = None,
    name: str | None = None,
) -> Any:
    """``tf.while_loop``: Python's ints among the variables are int32; ``shape_invariants`` let what is carried grow
    where Python runs the loop, outside of functions."""
    start = _as_made(loop_vars)
    if shape_invariants is None or inside_function():
        return hf.while_loop(cond, body, start, maximum_iterations)
    return grown(cond, body, start, maximum_iterations)


def _as_made(value: object) -> Any:
    """Python's numbers, and extents, in a nested value as the tensors that TensorFlow makes of them."""
    leaves, structure = pytree.flatten(value)
    converted = [convert_to_tensor(x) if isinstance(x, (bool, int, float, Dim)) else x for x in leaves]
    return pytree.unflatten(structure, converted)


def _as_results(value: object) -> Any:
    """What a function returns, with the values of variables in their place.  What nothing of it needs is not run."""
    if (trace := now().trace) is not None:
        trace.root.keeps_unread_checks = False
    leaves, structure = pytree.flatten(_as_made(value))
    return pytree.unflatten(structure, [x.value() if isinstance(x, hf.Variable) else x for x in leaves])


def _branch(function: Any) -> Any:
    """A branch whose numbers have TensorFlow's dtypes."""
    return (lambda: _as_made(function())) if callable(function) else function


def grown(
    cond: Callable[..., object],
    body: Callable[..., Any],
    loop_vars: object,
    maximum_iterations: Any = None,
) -> Any:
    """A loop that Python runs, whose variables may change their shapes."""
    structure, values, iterations = pytree.flatten(loop_vars)[1], loop_vars, 0
    while maximum_iterations is None or iterations < int(maximum_iterations):
        arguments = values if isinstance(values, (list, tuple)) else (values,)
        if not bool(cond(*arguments)):
            break
        new_values = body(*arguments)
        if isinstance(new_values, (list, tuple)) != isinstance(loop_vars, (list, tuple)) and len(arguments) == 1:
            new_values = [new_values] if isinstance(loop_vars, (list, tuple)) else new_values[0]
        values = pytree.unflatten(structure, pytree.flatten(new_values)[0])
        iterations += 1
    return values


@tf_export("cond")
def cond(pred: Any, true_fn: object = None, false_fn: object = None, name: str | None = None) -> Any:
    """``tf.cond``; branches may return tensors of unlike shapes."""

    def size(extents: Iterable[Any]) -> Any:
        return hf.where(pred, *(hf.asarray(extent, dtypes.int64) for extent in extents))

    return _of_any_shapes(lambda functions: hf.cond(pred, *functions), [_branch(true_fn), _branch(false_fn)], size)


@tf_export("case")
def case(
    pred_fn_pairs: Any, default: object = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """``tf.case``: without a default the last pair's function takes its place."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if default is None:
        *pairs, (_, default) = pairs
    return hf.case([(chosen, _branch(function)) for chosen, function in pairs], _branch(default))


@tf_export("switch_case")
def switch_case(
    branch_index: ArrayLike, branch_fns: Any, default: Callable[..., Any] | None = None, name: str = "switch_case"
) -> Any:
    """``tf.switch_case``."""
    several = isinstance(branch_fns, (list, tuple)) and all(isinstance(branch, tuple) for branch in branch_fns)
    branches = dict(branch_fns) if several else branch_fns
    numbers = list(branches) if isinstance(branches, dict) else list(range(len(branches)))
    functions = [_branch(branches[number]) for number in numbers]
    if default is not None:
        functions.append(_branch(default))

    def size(extents: Sequence[Any]) -> Any:
        result = hf.asarray(extents[-1] if default is not None else extents[numbers.index(max(numbers))], dtypes.int64)
        for number, extent in zip(numbers, extents):
            result = hf.where(hf.equal(branch_index, number), hf.asarray(extent, dtypes.int64), result)
        return result

    def choose(chosen: Sequence[Any]) -> Any:
        cases = dict(zip(numbers, chosen)) if isinstance(branches, dict) else list(chosen[: len(numbers)])
        return hf.switch_case(branch_index, cases, default=chosen[-1] if default is not None else None)

    return _of_any_shapes(choose, functions, size)


def _of_any_shapes(choose: Callable[[Sequence[Any]], Any], branches: Sequence[Any], size: Callable[[Any], Any]) -> Any:
    """What one of the branches returns.  Where shapes differ in a compiled function, calls find the extents: ``size``
    makes the one that counts of those of all branches."""
    if now().trace is None:
        return choose(branches)
    shapes: dict[int, list[Any]] = {}

    def noting(k: int) -> Callable[[], Any]:
        def run() -> Any:
            result = branches[k]()
            shapes[k] = [operand(leaf).shape for leaf in pytree.flatten(result)[0] if leaf is not None]
            return result

        return run

    try:
        return choose([noting(k) for k in range(len(branches))])
    except ShapeError:
        for k in range(len(branches)):
            if k not in shapes:
                choose([noting(k)] * len(branches))
        if len({tuple(map(len, of_leaves)) for of_leaves in shapes.values()}) != 1:
            raise
    by_axis = [list(zip(*of_leaf)) for of_leaf in zip(*(shapes[k] for k in range(len(branches))))]
    unlike = [
        {axis: size(extents)._to_extent() for axis, extents in enumerate(axes_) if len(set(extents)) > 1}
        for axes_ in by_axis
    ]

    def fitting(branch: Callable[..., object]) -> Callable[[], Any]:
        def run() -> Any:
            leaves, structure = pytree.flatten(branch())
            extents = iter(unlike)
            return pytree.unflatten(
                structure, [leaf if leaf is None else _fitted(leaf, next(extents)) for leaf in leaves]
            )

        return run

    return choose([fitting(branch) for branch in branches])


def _fitted(value: TensorLike, extents: Mapping[int, Any]) -> Any:
    """The tensor with these extents, which it has where it counts."""
    for axis, extent in extents.items():
        value = hf.take(operand(value), hf.arange(extent), axis=axis)
    return value


@tf_export("map_fn")
def map_fn(
    fn: Callable[[Any], Any], elems: object, dtype: DTypeLike | None = None, parallel_iterations: object = None,
    back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, name: str | None = None, fn_output_signature: object = None,
) -> Any:  # fmt: skip
    """``tf.map_fn``; the dtype of what the function returns is checked where one is given."""
    if isinstance(elems, Ragged):
        rows = [fn(row) for row in elems]
        if all(isinstance(row, Operators) and not row.ndim for row in rows):
            return hf.stack(rows)
        lengths = np.array([row.shape[0] for row in rows], np.int64)
        return Ragged.from_row_lengths(hf.concat(rows), lengths)
    result = hf.map_fn(fn, _walked(elems))
    wanted = dtype if fn_output_signature is None else fn_output_signature
    if wanted is not None:
        for x, kind in zip(pytree.flatten(result)[0], pytree.flatten(wanted)[0]):
            if not x.dtype == getattr(kind, "dtype", kind):
                raise ArgumentError("map_fn", f"the function returned {x.type}, and {kind} was said to come.")
    return result


def _walked(elems: object) -> Any:
    """What is walked over: a list of numbers is a tensor, one of tensors several."""
    if isinstance(elems, list) and elems and not isinstance(elems[0], Operators):
        return convert_to_tensor(elems)
    return hf.tree.map(operand, elems)


@tf_export("scan")
def scan(
    fn: Callable[[Any, Any], Any], elems: object, initializer: object = None, parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, reverse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.scan``."""
    return hf.scan(fn, _walked(elems), _start(initializer), reverse)


def _start(initializer: object) -> Any:
    return None if initializer is None else hf.tree.map(operand, initializer)


@tf_export("foldl")
def foldl(
    fn: Callable[[Any, Any], Any], elems: object, initializer: object = None, parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.foldl``."""
    return hf.foldl(fn, _walked(elems), _start(initializer))


@tf_export("foldr")
def foldr(
    fn: Callable[[Any, Any], Any], elems: object, initializer: object = None, parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.foldr``."""
    return hf.foldr(fn, _walked(elems), _start(initializer))


@tf_export("vectorized_map")
def vectorized_map(
    fn: Callable[[Any], Any],
    elems: object,
    fallback_to_while_loop: bool = True,
    warn: bool = True,
    name: str | None = None,
) -> Any:
    """``tf.vectorized_map``; of texts one by one."""
    if any(isinstance(x, hf.strings.StringTensor) for x in pytree.flatten(hf.tree.map(operand, elems))[0]):
        return hf.map_fn(fn, hf.tree.map(operand, elems))
    return hf.vectorized_map(fn, hf.tree.map(operand, elems), fallback_to_while_loop, warn)


def _row_mask(values: Tensor, rows: Collection[int]) -> Any:
    mask = np.isin(np.arange(values.shape[0]), list(rows))
    return hf.asarray(mask.reshape(-1, *[1] * (values.ndim - 1)))


@dataclasses.dataclass(init=False, eq=False)
class _TensorArray(hf.TensorArray):
    """``tf.TensorArray``."""

    def size(self, name: str | None = None) -> Any:
        """How many elements there are, as a tensor."""
        return hf.asarray(super().size(), dtypes.int32)


@dataclasses.dataclass(init=False, eq=False)
class _ReadOnce(_TensorArray):
    """One that lets go of an element that is read outside of functions: it cannot be read again, and is 0 among all."""

    _read = frozenset[int]()  # indices of elements that are gone

    def _with(self, values: Tensor) -> Any:
        result = super()._with(values)
        result._read = self._read
        return result

    def write(self, index: Any, value: object, name: str | None = None) -> Any:
        """The array with an element at an index."""
        result: Any = super().write(index, value)
        if result._read and not inside_function():
            result._read -= {int(index)}
        return result

    def unstack(self, value: ArrayLike, name: str | None = None) -> Any:
        """The array whose elements are the slices of a tensor."""
        result: Any = super().unstack(value)
        result._read = frozenset()
        return result

    def read(self, index: Any, name: str | None = None) -> Any:
        """The element at an index.  Raises ArgumentError where it was read before."""
        if inside_function():
            return super().read(index)
        place = int(index)
        if place in self._read:
            raise ArgumentError(
                "TensorArray.read",
                f"Could not read index {place} twice because it was cleared after a previous read (perhaps try setting "
                "clear_after_read = false?)",
            )
        element = super().read(place)
        self._read |= {place}
        return element

    def _known(self, stage: str) -> Any:
        values = super()._known(stage)
        if not self._read or stage == "TensorArray.read":
            return values
        return hf.where(_row_mask(values, self._read), 0, values)


def _tensor_array(
    dtype: DTypeLike, size: object = None, dynamic_size: bool | None = None, clear_after_read: object = None,
    tensor_array_name: object = None, handle: object = None, flow: object = None, infer_shape: bool = True,
    element_shape: ShapeLike | None = None, colocate_with_first_write_call: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """``tf.TensorArray``."""
    shape = None if element_shape is None or not TensorShape(element_shape).is_fully_defined() else element_shape
    count = 0 if size is None else size
    kind = _TensorArray if clear_after_read is False or inside_function() else _ReadOnce
    return kind(dtype, count, None if shape is None else extents(shape), bool(dynamic_size))


TensorArray = Facade(_TensorArray, _tensor_array)


@tf_export("Module")
class Module(hf.Module):
    """``tf.Module``: may be given a name."""

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method; names mean nothing here."""
        return method

    @property
    def name_scope(self) -> name_scope:
        return name_scope(self.name)

    @property
    def variables(self) -> Any:
        """All variables, as a tuple."""
        return tuple(super().variables)

    @property
    def trainable_variables(self) -> Any:
        """Those that are trained, as a tuple."""
        return tuple(super().trainable_variables)


@tf_export("keras.name_scope", "keras.backend.name_scope", "name_scope")
class name_scope:
    """``tf.name_scope``: a block that changes nothing, since names mean nothing here."""

    def __init__(self, name: str = "", *args: object, **kwargs: object) -> None:
        self.name = name

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *error: object) -> None:
        return None


@tf_export("control_dependencies")
class control_dependencies(name_scope):
    """``tf.control_dependencies``: what is in the block runs after what is before it, as everything does here."""

    def __init__(self, control_inputs: object = None) -> None:
        super().__init__()


@tf_export("group")
def group(*inputs: object, **kwargs: object) -> None:
    """``tf.group``: nothing is left to do for what ran."""


@tf_export("no_op")
def no_op(name: str | None = None) -> None:
    """``tf.no_op``."""


@tf_export("RegisterGradient")
def as_it_is(*args: object, **kwargs: object) -> Any:
    """A decorator, with arguments or without, that changes nothing."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda decorated: decorated


@tf_export("autograph.experimental.do_not_convert")
def do_not_convert(func: object = None) -> Any:
    """``tf.autograph.experimental.do_not_convert``: statements that need no conversion mean what they did."""
    return as_it_is if func is None else func


@tf_export(
    "debugging.enable_traceback_filtering",
    "debugging.disable_traceback_filtering",
    "debugging.set_log_device_placement",
    "config.get_logical_device_configuration",
    "config.set_visible_devices",
    "config.set_logical_device_configuration",
    "config.experimental.get_virtual_device_configuration",
    "config.experimental.set_virtual_device_configuration",
    "config.experimental.enable_mlir_bridge",
    "config.experimental.disable_mlir_bridge",
    "config.experimental.set_device_policy",
    "config.experimental.reset_memory_stats",
    "config.experimental.set_visible_devices",
    "config.experimental.set_memory_growth",
    "config.experimental.enable_op_determinism",
    "config.experimental.enable_tensor_float_32_execution",
    "config.experimental.set_synchronous_execution",
    "config.optimizer.set_jit",
    "config.threading.set_inter_op_parallelism_threads",
    "autograph.set_verbosity",
    "autograph.experimental.set_loop_options",
    "summary.trace_on",
    "summary.trace_off",
    "summary.trace_export",
    "keras.utils.enable_interactive_logging",
    "keras.utils.disable_interactive_logging",
    "keras.config.enable_interactive_logging",
    "keras.config.disable_interactive_logging",
    "keras.config.enable_traceback_filtering",
    "keras.config.disable_traceback_filtering",
)
def nothing(*args: object, **kwargs: object) -> None:
    """A setting that means nothing here."""


@tf_export("executing_eagerly")
def executing_eagerly() -> bool:
    """``tf.executing_eagerly``: False while a function is traced."""
    from hybridflow.core.context import now

    return now().trace is None


@tf_export("inside_function")
def inside_function() -> bool:
    """``tf.inside_function``."""
    return not executing_eagerly()


@tf_export("nest.map_structure")
def foreach(function: Callable[..., Any], *structures: object, **options: object) -> Any:
    """``tf.nest.map_structure``."""
    return hf.tree.map(function, *structures)


@tf_export("nest.flatten")
def flatten(structure: object, expand_composites: bool = False) -> list[Any]:
    """``tf.nest.flatten``."""
    return hf.tree.leaves(structure)


@tf_export("nest.pack_sequence_as")
def pack_sequence_as(structure: object, flat_sequence: object, expand_composites: bool = False) -> Any:
    """``tf.nest.pack_sequence_as``."""
    return hf.tree.unflatten(hf.tree.structure(structure), flat_sequence)


@tf_export("nest.is_nested")
def is_nested(structure: object) -> bool:
    """``tf.nest.is_nested``."""
    return isinstance(structure, (list, tuple, dict))


@tf_export("nest.assert_same_structure")
def assert_same_structure(
    nest1: object, nest2: object, check_types: bool = True, expand_composites: bool = False
) -> None:
    """``tf.nest.assert_same_structure``.  Raises ArgumentError where they differ."""
    if hf.tree.structure(nest1) != hf.tree.structure(nest2):
        raise ArgumentError("nest", f"{hf.tree.structure(nest1)} and {hf.tree.structure(nest2)} differ.")


@tf_export("custom_gradient")
def custom_gradient(f: Callable[..., Any]) -> Any:
    """``tf.custom_gradient``: of an argument that is a variable, the function is given the value."""
    inner = hf.custom_gradient(f)

    @functools.wraps(f)
    def call(*args: object, **kwargs: object) -> Any:
        args, kwargs = hf.tree.map(_value_of, (args, kwargs))
        return inner(*args, **kwargs)

    return call


def _value_of(x: object) -> Any:
    return x.read_value() if isinstance(x, hf.Variable) else x


@tf_export("grad_pass_through")
def grad_pass_through(f: Callable[..., object]) -> Any:
    """``tf.grad_pass_through``: ``f(x)``, with the derivative of x."""

    def passed(*args: object, **kwargs: object) -> Any:
        @hf.custom_gradient
        def through(x: object) -> Any:
            return f(x, *args[1:], **kwargs), lambda upstream: upstream

        return through(args[0])

    return passed


@tf_export("debugging.assert_integer")
def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """``tf.debugging.assert_integer``.  Raises ArgumentError where the tensor is of another dtype."""
    if not dtypes.is_integer(operand(x).dtype):
        raise ArgumentError("assert_integer", f"{message or ''} the tensor is {operand(x).type}.".strip())


class _File:
    """What is printed goes behind the end of a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, text: str) -> int:
        with open(self._path, "a", encoding="utf-8") as file:
            return file.write(text)


@tf_export("autograph.trace", "print")
def print_(*inputs: object, **options: Any) -> None:
    """``tf.print``; ``output_stream`` may be the address of a file, "file:///tmp/log"."""
    stream = options.get("output_stream")
    if isinstance(stream, str):
        options["output_stream"] = _File(stream.removeprefix("file://"))
    options.pop("name", None)
    if len(inputs) > 1:  # a text by itself has no quotation marks
        inputs = tuple([hf.strings.join(['"', x, '"']) if _is_one_text(x) else x for x in inputs])
    hf.print(*inputs, **options)


def _is_one_text(x: object) -> bool:
    return isinstance(x, hf.strings.StringTensor) and not x.ndim


@tf_export("debugging.assert_proper_iterable")
def assert_proper_iterable(values: TensorLike) -> None:
    """``tf.debugging.assert_proper_iterable``.  Raises TypeError for tensors, arrays, texts and what is none."""
    if isinstance(values, (Operators, np.ndarray, bytes, str)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{type(values).__name__} is no list or the like")


@tf_export("debugging.assert_same_float_dtype")
def assert_same_float_dtype(tensors: Iterable[Any] | None = None, dtype: DTypeLike | None = None) -> Any:
    """``tf.debugging.assert_same_float_dtype``: the dtype that all have.  Raises ArgumentError where they differ."""
    kinds = {operand(x).dtype for x in tensors or ()} | ({as_dtype(dtype).dtype} if dtype is not None else set())
    if len(kinds) > 1 or not all(map(dtypes.is_float, kinds)):
        raise ArgumentError("assert_same_float_dtype", f"dtypes are {', '.join(sorted(map(str, kinds)))}.")
    return as_dtype(kinds.pop()) if kinds else as_dtype("float32")


@tf_export("debugging.is_numeric_tensor")
def is_numeric_tensor(tensor: TensorLike) -> bool:
    """``tf.debugging.is_numeric_tensor``."""
    return isinstance(tensor, Operators) and not dtypes.is_bool(tensor.dtype)


@tf_export("test.compute_gradient")
def compute_gradient(f: Callable[..., Any], x: Any, delta: float | None = None) -> tuple[list[Any], list[Any]]:
    """``tf.test.compute_gradient``: the Jacobian by the tape, and by differences, for each argument."""
    points = [operand(one) for one in x]
    exact, near = [], []
    for k, point in enumerate(points):
        with hf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(point)
            y = f(*points[:k], point, *points[k + 1 :])
        rows = tape.jacobian(y, point, unconnected_gradients="zero").numpy().reshape(y.size, point.size)
        exact.append(rows)
        step = 1.0 / 1024 if delta is None else delta
        columns = []
        for number in range(point.size):
            sides = []
            for sign in (1, -1):
                moved = point.numpy().copy()
                moved.reshape(-1)[number] += sign * step
                sides.append(f(*points[:k], hf.asarray(moved), *points[k + 1 :]).numpy().reshape(-1))
            columns.append((sides[0] - sides[1]) / (2 * step))
        near.append(np.stack(columns, axis=1) if columns else np.zeros_like(rows))
    return exact, near


export(TensorArray, "TensorArray")
