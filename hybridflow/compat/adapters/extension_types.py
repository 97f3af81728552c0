"""``tf.experimental.ExtensionType``: classes of typed fields, which functions, loops and datasets take field by field.

Such a class is a frozen dataclass, and so a container.  The spec of an instance is an instance of the same class whose
tensors are specs: ``Class.Spec(...)`` makes one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np

import hybridflow as hf
from hybridflow.compat import export
from hybridflow.compat.adapters.rows import BINARY, UNARY, function_named
from hybridflow.compat.adapters.values import TensorShape, TensorSpec, as_dtype, convert_to_tensor
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.core import pytree
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Operators, Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, HybridflowError
from hybridflow.ragged import Ragged

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


_building: set[int] = set()  # instances whose own ``__init__`` runs
_RESERVED = ("self", "Spec", "_type_spec", "_tf_extension_type_fields")


class _SpecOf:
    """``Class.Spec``: called, it makes the spec of instances; ``isinstance`` says whether something is one."""

    def __init__(self, kind: type, written: type | None) -> None:
        self.value_type, self._written = kind, written
        self.__name__ = self.__qualname__ = f"{kind.__name__}.Spec"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = _names(self.value_type)
        if self._written is not None and "__init__" in self._written.__dict__:
            holder: Any = object.__new__(self._written)
            holder.__init__(*args, **kwargs)
            values = {name: getattr(holder, name) for name in names if hasattr(holder, name)}
        else:
            values = _bind_fields(self.value_type, names, args, kwargs)
        return _instantiate(self.value_type, values)

    def from_value(self, value: ArrayLike) -> Any:
        """The spec of an instance."""
        return type_spec_from_value(value)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.value_type) and any(
            isinstance(x, hf.TensorSpec) for x in pytree.flatten(instance)[0]
        )

    def __repr__(self) -> str:
        return f"<class '{self.__name__}'>"


def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _instantiate(kind: type, values: Mapping[str, Any]) -> Any:
    """An instance as it stands, of fields that have their types."""
    result: object = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(result, name, value)
    return result


def _bind_fields(kind: type, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Values of fields from the arguments of a constructor."""
    if len(args) > len(names):
        raise TypeError(f"{kind.__name__}() takes {len(names)} arguments, {len(args)} are given")
    values = dict(zip(names, args))
    for name, value in kwargs.items():
        if name not in names or name in values:
            said = "multiple values for" if name in values else "an unexpected keyword"
            raise TypeError(f"{kind.__name__}() got {said} argument '{name}'")
        values[name] = value
    missing = [name for name in names if name not in values and not _has_default(kind, name)]
    if missing:
        raise TypeError(f"{kind.__name__}() missing required arguments: {', '.join(map(repr, missing))}")
    return {name: values.get(name, _default(kind, name)) for name in names}


def _has_default(kind: type, name: str) -> bool:
    return kind.__dataclass_fields__[name].default is not dataclasses.MISSING  # type: ignore[attr-defined]


def _default(kind: type, name: str) -> Any:
    return kind.__dataclass_fields__[name].default  # type: ignore[attr-defined]


@tf_export("experimental.ExtensionType")
class ExtensionType:
    """``tf.experimental.ExtensionType``: a subclass's annotations are its fields, which are converted and checked."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        annotations = inspect.get_annotations(cls)
        for name in annotations:
            if name in _RESERVED:
                raise ValueError(f"The field annotations for {cls.__name__} are invalid. Field '{name}' is reserved.")
        defaults = {name: cls.__dict__[name] for name in annotations if name in cls.__dict__}
        for name, value in defaults.items():  # a dataclass takes no default that could change
            if getattr(type(value), "__hash__", None) is None:
                setattr(cls, name, tuple(value) if isinstance(value, list) else types.MappingProxyType(value))
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        spec_class = cls.__dict__.get("Spec")
        cls.Spec = _SpecOf(cls, spec_class if isinstance(spec_class, type) else None)  # type: ignore[attr-defined]
        if "__repr__" in cls.__dict__:
            cls.__repr__ = _wrap_repr(cls.__dict__["__repr__"])  # type: ignore[method-assign]
        if "__init__" in cls.__dict__:
            cls.__init__ = _wrap_init(cls.__dict__["__init__"])  # type: ignore[method-assign]

    def __init__(self, *args: object, **kwargs: object) -> None:
        if type(self) is ExtensionType or type(self) is BatchableExtensionType:
            raise TypeError(f"{type(self).__name__} is a class to inherit from.")
        for name, value in _bind_fields(type(self), _names(type(self)), args, kwargs).items():
            object.__setattr__(self, name, value)
        if id(self) not in _building:
            _finish(self)

    def __validate__(self) -> None:
        """Check the fields: called when all of them are set."""

    def __setattr__(self, name: str, value: object) -> None:
        if id(self) not in _building or name not in _names(type(self)):
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")

    def __eq__(self, other: Any) -> Any:
        if type(other) is not type(self):
            return False
        (mine, form), (theirs, other_form) = (pytree.flatten(one) for one in (self, other))
        result: Any = form == other_form
        for a, b in zip(mine, theirs) if result else ():
            if isinstance(a, Operators) and isinstance(b, Operators):
                if a.dtype != b.dtype or tuple(a.shape) != tuple(b.shape):
                    return hf.asarray(False)
                result = hf.logical_and(result, hf.all(hf.equal(a, b)))
            elif a != b:
                return hf.asarray(False)
        return hf.asarray(result)

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return hf.logical_not(equal) if isinstance(equal, Operators) else not equal

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        is_spec = isinstance(self, type(self).Spec)  # type: ignore[attr-defined]
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(type(self)) if hasattr(self, name))
        return f"{type(self).__name__}{'.Spec' if is_spec else ''}({fields})"


@tf_export("experimental.BatchableExtensionType")
class BatchableExtensionType(ExtensionType):
    """``tf.experimental.BatchableExtensionType``: the first axis of each tensor is that of the batch."""


def _wrap_repr(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """A class's own ``__repr__``, which is for instances and not for specs."""

    @functools.wraps(text)
    def represent(self: Any) -> str:
        return ExtensionType.__repr__(self) if isinstance(self, type(self).Spec) else text(self)

    return represent


def _wrap_init(init: Callable[..., None]) -> Callable[..., None]:
    """A class's own ``__init__``, in which fields can be set."""

    @functools.wraps(init)
    def build(self: Any, *args: object, **kwargs: object) -> None:
        if id(self) in _building:  # from that of a subclass
            init(self, *args, **kwargs)
            return
        _building.add(id(self))
        try:
            init(self, *args, **kwargs)
            missing = [name for name in _names(type(self)) if not hasattr(self, name)]
            if missing:
                raise TypeError(f"{type(self).__name__}: fields are not set: {', '.join(missing)}")
            for name in missing or _names(type(self)):  # a default of the class is the instance's, too
                object.__setattr__(self, name, getattr(self, name))
        finally:
            _building.discard(id(self))
        _finish(self)

    return build


def _finish(value: Any) -> None:
    """Convert all fields to their types, and validate."""
    kind: object = type(value)
    for name, hint in _hints(kind).items():
        object.__setattr__(value, name, _convert(getattr(value, name), hint, name))
    value.__validate__()


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of fields, with names of classes in texts looked up."""
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        module = sys.modules.get(base.__module__)
        names = {**vars(typing), **(vars(module) if module else {}), base.__name__: base, kind.__name__: kind}
        for name, hint in inspect.get_annotations(base).items():
            if isinstance(hint, str):
                try:
                    hint = eval(hint, names)
                except NameError:  # of a function's locals
                    hint = Any
            hints[name] = hint
    return {name: hints[name] for name in _names(kind)}


def _convert(value: Any, hint: Any, path: str) -> Any:
    """A value as its field's type has it."""
    if isinstance(hint, (str, typing.ForwardRef)):
        return value  # a class that refers to itself
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is typing.Any:
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(value, parameters, path)
    if origin is tuple:
        return _convert_tuple(value, parameters, path)
    if origin in (list, typing.Sequence):
        return tuple(_convert(one, parameters[0], f"{path}[{k}]") for k, one in enumerate(value))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise _type_error(path, "mapping", value)
        return {
            _convert(k, parameters[0], path): _convert(v, parameters[1], f"{path}[{k!r}]") for k, v in value.items()
        }
    if _means(hint, Tensor):
        return _convert_tensor(value, path)
    if hint is TensorShape or hint is Shape or _means(hint, Shape):
        return value if isinstance(value, Shape) else TensorShape(value)
    if getattr(hint, "__name__", "") == "DType":
        return as_dtype(value)
    if hint is None:
        hint = type(None)
    is_class = isinstance(hint, type) or isinstance(getattr(type(hint), "__instancecheck__", None), types.FunctionType)
    if is_class and not isinstance(value, hint) and not (hint is float and type(value) is int):
        raise _type_error(path, getattr(hint, "__name__", repr(hint)), value)
    return value


def _means(hint: object, kind: type) -> bool:
    """Whether an annotation is a class, or stands for it."""
    return hint is kind or getattr(hint, "_kind", None) is kind


def _type_error(path: str, wanted: str, value: object) -> TypeError:
    return TypeError(f"{path}: expected a {wanted}, got {type(value).__name__!r}")


def _convert_tensor(value: TensorLike, path: str) -> Any:
    if isinstance(value, (Operators, hf.TensorSpec)) and not isinstance(value, Variable):
        return value
    if value is None or isinstance(value, (ExtensionType, Ragged)):
        raise _type_error(path, "Tensor", value)
    if type(value).__name__ == "Symbol":  # of a model that is being built
        return value
    try:
        return convert_to_tensor(list(value) if isinstance(value, range) else value)
    except (HybridflowError, TypeError, ValueError) as error:
        raise _type_error(path, "Tensor", value) from error


def _convert_union(value: TensorLike, parameters: tuple[Any, ...], path: str) -> Any:
    for hint in parameters:
        if matches(value, hint):
            return value
    for hint in parameters:
        try:
            return _convert(value, hint, path)
        except TypeError:
            continue
    raise _type_error(path, " or ".join(getattr(p, "__name__", repr(p)) for p in parameters), value)


def _convert_tuple(value: object, parameters: tuple[Any, ...], path: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise _type_error(path, "tuple", value)
    if len(parameters) == 2 and parameters[1] is Ellipsis:
        parameters = (parameters[0],) * len(value)
    if len(parameters) != len(value):
        raise TypeError(f"{path}: expected {len(parameters)} values, got {len(value)}")
    return tuple(_convert(one, hint, f"{path}[{k}]") for k, (one, hint) in enumerate(zip(value, parameters)))


@tf_export("type_spec_from_value")
def type_spec_from_value(value: ArrayLike) -> Any:
    """``tf.type_spec_from_value``: the spec of a tensor, or of what is made of tensors."""
    if isinstance(value, Operators):
        return TensorSpec(tuple(value.shape), value.dtype)
    if isinstance(value, np.ndarray | int | float | bool | str | bytes | list | tuple):
        array = convert_to_tensor(value)
        return TensorSpec(tuple(array.shape), array.dtype)
    if not pytree.is_container(value):
        raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}")
    leaves, form = pytree.flatten(value)
    return pytree.unflatten(form, [type_spec_from_value(x) if isinstance(x, Operators) else x for x in leaves])


# ---- functions that answer to such classes


def matches(value: object, hint: Any) -> bool:
    """Whether an argument has the type of an annotation, as it stands."""
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(matches(value, one) for one in parameters)
    if origin in (list, tuple, typing.Sequence) or getattr(origin, "__name__", "") in ("Sequence", "list"):
        return isinstance(value, (list, tuple)) and bool(value) and all(matches(one, parameters[0]) for one in value)
    if _means(hint, Tensor):
        return isinstance(value, Operators)
    return isinstance(value, hint) if isinstance(hint, type) or hasattr(type(hint), "__instancecheck__") else False


_handlers: dict[
    Callable[..., Any], list[tuple[Callable[..., Any], Callable[..., bool]]]
] = {}  # by what they answer for


def _handlers_of(function: Callable[..., Any]) -> list[tuple[Callable[..., Any], Callable[..., bool]]]:
    """The handlers of a public function, which from now on is asked for under all of its names."""
    for room, entries in export.ROOMS.items():
        module = sys.modules.get("hybridflow.compat.tf" if room == "." else f"hybridflow.compat.tf.{room}")
        values = module.__dict__ if module is not None else {}
        for name, value in entries.items():
            if function is value or function is values.get(name):
                if value not in _handlers:
                    _handlers[value] = []
                    export.wrap(value, functools.partial(_wrap_with_handlers, handlers=_handlers[value]))
                return _handlers[value]
    raise ArgumentError("dispatch_for_api", f"{function!r} is no public function of tf.")


def _wrap_with_handlers(function: Callable[..., Any], handlers: Iterable[Any]) -> Callable[..., Any]:
    """A function that leaves arguments to the first handler that takes them."""

    @functools.wraps(function)
    def dispatch(*args: object, **kwargs: object) -> Any:
        for handler, applies in handlers:
            if applies(args, kwargs):
                return handler(*args, **kwargs)
        return function(*args, **kwargs)

    return dispatch


@tf_export("experimental.dispatch_for_api")
def dispatch_for_api(api: Callable[..., Any], *signatures: dict[Any, Any]) -> Callable[..., Any]:
    """``tf.experimental.dispatch_for_api``: a function in the place of another for arguments of some types."""

    def enter(handler: Callable[..., Any]) -> Callable[..., Any]:
        wanted = signatures or ({k: v for k, v in _annotations(handler).items() if k != "return"},)
        parameters = inspect.signature(handler).parameters
        names = list(parameters)
        signatures_by_name = [
            {names[k] if isinstance(k, int) else k: hint for k, hint in one.items()} for one in wanted
        ]

        def applies(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
            supplied = {**dict(zip(names, args)), **kwargs}
            for by_name in signatures_by_name:
                chosen = {name: supplied[name] for name in by_name if name in supplied}
                if not any(_holds_extension(value) for value in chosen.values()):
                    continue
                rest = by_name.keys() - chosen.keys()
                if all(parameters[name].default is not inspect.Parameter.empty for name in rest) and all(
                    matches(value, by_name[name]) for name, value in chosen.items()
                ):
                    return True
            return False

        _handlers_of(api).append((handler, applies))
        return handler

    return enter


def _annotations(handler: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(handler)
    except NameError:
        return dict(handler.__annotations__)


def _holds_extension(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_extension(one) for one in value)
    return isinstance(value, ExtensionType)


def _dispatch_elementwise(names: tuple[str, ...], hints: tuple[Any, ...]) -> Callable[..., Any]:
    def enter(handler: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            function = function_named(name)
            if function is None:
                continue

            def applies(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
                operands = (*args, *kwargs.values())[: len(hints)]
                return (
                    len(operands) == len(hints)
                    and any(isinstance(x, ExtensionType) for x in operands)
                    and all(matches(x, hint) for x, hint in zip(operands, hints))
                )

            _handlers_of(function).append((_handler_of_operands(handler, function, len(hints)), applies))
        return handler

    return enter


def _handler_of_operands(handler: Callable[..., Any], function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A handler as a function of what the public one takes: it gets that one, and the operands."""

    @functools.wraps(handler)
    def answer(*args: object, **kwargs: object) -> Any:
        names = list(inspect.signature(function).parameters)[:count]
        operands = [args[k] if k < len(args) else kwargs[names[k]] for k in range(count)]
        others = {k: v for k, v in kwargs.items() if k not in names}
        return handler(lambda *xs: function(*xs, *args[count:], **others), *operands)

    return answer


@tf_export("experimental.dispatch_for_unary_elementwise_apis")
def dispatch_for_unary_elementwise_apis(x_type: object) -> Callable[..., Any]:
    """``tf.experimental.dispatch_for_unary_elementwise_apis``."""
    return _dispatch_elementwise(UNARY, (x_type,))


@tf_export("experimental.dispatch_for_binary_elementwise_apis")
def dispatch_for_binary_elementwise_apis(x_type: object, y_type: object) -> Callable[..., Any]:
    """``tf.experimental.dispatch_for_binary_elementwise_apis``."""
    return _dispatch_elementwise(BINARY, (x_type, y_type))


@tf_export("experimental.unregister_dispatch_for")
def unregister_dispatch_for(dispatch_target: Callable[..., Any]) -> None:
    """``tf.experimental.unregister_dispatch_for``: a handler answers no longer."""
    removed = 0
    for handlers in _handlers.values():
        kept = [one for one in handlers if dispatch_target not in (one[0], getattr(one[0], "__wrapped__", None))]
        removed += len(handlers) - len(kept)
        handlers[:] = kept
    if not removed:
        raise ArgumentError("unregister_dispatch_for", f"{dispatch_target!r} was not registered.")
