"""Functions and models as files that run without their source."""

from __future__ import annotations

import ast
import itertools
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.checkpoint import files
from hybridflow.checkpoint.checkpoint import SUFFIX
from hybridflow.compiler.index.bounds_proofs import with_conditions
from hybridflow.compiler.ir.graph import Role
from hybridflow.compiler.ir.text import to_text
from hybridflow.core import pytree
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.jit.cache_key import Key, NumberKey, TensorKey
from hybridflow.jit.concrete_function import ARGUMENT, RESULT, VALUE, ConcreteFunction
from hybridflow.jit.function import Function, function
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.jit.value_key import ValueKey
from hybridflow.module import Module
from hybridflow.saved.format import DEFAULT, KIND, WITH_CONDITIONS, WITH_ERRORS, WRITER, packed
from hybridflow.saved.loading import Loaded
from hybridflow.saved.raised_errors import numbers_kept, records_of
from hybridflow.saved.shape_variants import shape_variants, small_variants
from hybridflow.tracing.trace import State

if TYPE_CHECKING:
    from hybridflow.layers.layer import Layer


_OPEN = 2  # of so many open extents each combination of 0, 1 and more has a program of its own
_SEVERAL = 4  # of so many each one of 1 and more


def save(
    obj: object,
    path: str | os.PathLike[str],
    signatures: object = None,
    with_methods: bool = False,
    input_signature: Sequence[Any] | None = None,
) -> str:
    """Save a function, or a module with functions, in one file, which runs without the Python source.

    Without ``signatures`` a function with an ``input_signature``, or a model that knows its input, is saved as that.
    Other functions are saved with all signatures that they have been called with, and what was loaded with those that
    it has. Open extents (None) stay open, and so do those that came to be open since calls differed in them.

    The file holds the graphs as text with a format version, and the values of variables and constants in the
    safetensors format. It replaces one that is there, at once.

    Args:
        obj: a function, a module or a model.
        path: the file.
        signatures: which programs there are to be: a dict of concrete functions, of functions with an
            ``input_signature``, or one of them, which is then called "serving_default".
        with_methods: whether functions of a module's class that can be saved are in the file beside the ``signatures``,
            as attributes of what is loaded.
        input_signature: a TensorSpec, or a nest of them, for each parameter of ``obj`` itself: of a module's
            ``__call__``, decorated or not, or of any Python function.

    Returns:
        The path of the file.

    Raises:
        ArgumentError: where there is no signature.
        ArgumentTypeError: for programs that call Python (``py_function``), but to raise errors, or that have texts.

    >>> import os, tempfile
    >>> scale = hf.Variable(2.0)
    >>> @hf.function(input_signature=[hf.TensorSpec([None])])
    ... def f(x):
    ...     return {"y": scale * x}
    >>> path = hf.saved.save(f, os.path.join(tempfile.mkdtemp(), "f"))
    >>> hf.saved.load(path)(hf.asarray([1.0, 2.0, 3.0]))
    {'y': <Tensor f32[3] cpu> [2. 4. 6.]}

    >>> class Line(hf.Module):
    ...     def __init__(self):
    ...         self.slope = hf.Variable(3.0)
    ...     def __call__(self, x):
    ...         return self.slope * x
    >>> path = hf.saved.save(Line(), path, input_signature=[hf.TensorSpec([None])])
    >>> hf.saved.load(path)(hf.asarray([1.0, 2.0]))
    <Tensor f32[2] cpu> [3. 6.]
    """
    written = _Writer(obj)
    chosen = _signatures(obj, signatures, input_signature)
    methods = _methods(obj, chosen) if with_methods and isinstance(obj, Module) else {}
    programs = {name: written.programs(_completed(concrete)) for name, concrete in {**chosen, **methods}.items()}
    texts = {
        "kind": KIND,
        "version": str(written.version),
        "writer": WRITER,
        "programs": json.dumps(programs),
        "methods": json.dumps(sorted(methods)),
        "variables": json.dumps(written.variables),
    }
    folder = os.path.dirname(os.fspath(path))
    if folder:
        os.makedirs(folder, exist_ok=True)
    files.write(path, written.arrays, texts)
    return os.fspath(path)


def in_folder(path: Any) -> str:
    """The file of what is saved at a path, which may be a folder that is there."""
    name = os.fspath(path)
    return os.path.join(name, f"saved_model{SUFFIX}") if os.path.isdir(name) else name


def _signatures(obj: object, chosen_by_user: object, input_signature: Sequence[Any] | None) -> dict[str, list[Any]]:
    if input_signature is not None:
        if chosen_by_user is not None:
            raise ArgumentError("saved", "signatures and input_signature are given: give one of them.")
        return {DEFAULT: [_of_call(obj, input_signature)]}
    if chosen_by_user is not None:
        chosen = chosen_by_user if isinstance(chosen_by_user, Mapping) else {DEFAULT: chosen_by_user}
        return {str(name): _concrete(one, f"signatures[{name!r}]") for name, one in chosen.items()}
    if getattr(obj, "_is_model", False):
        return {DEFAULT: [of_model(obj)]}
    if isinstance(obj, Module):
        functions = obj.signatures if isinstance(obj, Loaded) else dict(functions_of(obj))
        if not functions:
            raise ArgumentError(
                "saved",
                f"{type(obj).__name__} has no @hf.function, so nothing says what its arguments are. Give "
                "input_signature=[hf.TensorSpec([None, 3])] for its __call__, or signatures.",
            )
        return {name: _concrete(one, name) for name, one in functions.items()}
    return {DEFAULT: _concrete(obj, getattr(obj, "__name__", "the function"))}


def program_of(obj: object, input_signature: Sequence[Any] | None = None) -> ConcreteFunction:
    """The one program that an object is saved as, for files that hold one.

    Raises ArgumentError where there are several or none.
    """
    programs = [one for part in _signatures(obj, None, input_signature).values() for one in part]
    for one in programs:
        _refuse_texts(one)
    if len(programs) != 1 or not isinstance(programs[0], ConcreteFunction):
        name = getattr(obj, "name", None) or getattr(obj, "__name__", type(obj).__name__)
        raise ArgumentError(
            "saved", f"{name} has {len(programs)} programs. Say which with input_signature=[hf.TensorSpec([None, 3])]."
        )
    return programs[0]


def _methods(module: Module, chosen: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The functions of a module's class that have an ``input_signature`` or were called, or those of a file, under
    other names than the signatures that are chosen."""
    if isinstance(module, Loaded):
        held: Mapping[str, Any] = module.functions
    else:
        named = functions_of(module)
        held = {name: one for name, one in named if one.input_signature is not None or one.concrete_functions()}
    return {name: _concrete(one, name) for name, one in held.items() if name not in chosen}


def functions_of(module: Module) -> Iterator[tuple[str, Any]]:
    """Those of its class, which are methods, and those among its attributes."""
    for name in dir(type(module)):
        if isinstance(getattr(type(module), name, None), Function):
            yield name, getattr(module, name)
    for name, value in sorted(vars(module).items()):
        if isinstance(value, Function):
            yield name, value


def _of_call(obj: object, input_signature: Sequence[Any]) -> ConcreteFunction:
    """What a module, or any callable, does with such arguments."""
    if not callable(obj):
        raise ArgumentTypeError("saved", f"{obj!r:.80} cannot be called, so it has no input_signature.")
    python = obj.python_function if isinstance(obj, Function) else obj
    name = getattr(obj, "name", None) if isinstance(obj, Module) else None
    concrete: ConcreteFunction = function(python, input_signature=input_signature, name=name).get_concrete_function()
    return concrete


def _concrete(function: Any, what: str) -> list[ConcreteFunction]:
    """Concrete functions, or the programs of a function that was loaded from a file."""
    if isinstance(function, ConcreteFunction):
        return [function]
    if hasattr(function, "programs"):
        return list(function.programs)
    if isinstance(function, (list, tuple)):
        return [one for part in function for one in _concrete(part, what)]
    if not hasattr(function, "get_concrete_function"):
        raise ArgumentTypeError(
            "saved",
            f"{what} is {function!r:.80}; give a function that @hf.function made, or a concrete function of it.",
        )
    if function.input_signature is not None:
        first = function.get_concrete_function()
        return [
            first,
            *(one for one in function._valid_concrete_functions() if one is not first and _can_be_saved(one)),
        ]
    result: list[Any] = function._valid_concrete_functions() or function.concrete_functions()
    exact = [one for one in result if not any(isinstance(key, NumberKey) for key in one.key.leaves)]
    if len(exact) < len(result):
        warnings.warn(
            f"{what} is saved for the first numbers that it was called with, not for any: give them as tensors",
            stacklevel=3,
        )
    result = exact
    for one in result:
        if one.is_open and one.specialise is None:
            one.specialise = function._specialise  # for extents that no call had
    if not result:
        raise ArgumentError(
            "saved",
            f"{what} has not been called, so nothing says what its arguments are. Call it, give it an input_signature, "
            "or give signatures=f.get_concrete_function(hf.TensorSpec([None, 3])).",
        )
    return result


def _can_be_saved(concrete: ConcreteFunction) -> bool:
    """Whether arguments are such that a file can say what they are."""
    return all(
        not key.is_weak if isinstance(key, TensorKey) else isinstance(key, ValueKey) and key.kind in _READ
        for key in concrete.key.leaves
    )


def of_model(model: Any) -> ConcreteFunction:
    """The call of a model that knows its input.  Raises ArgumentError for another."""
    inputs, seen = getattr(model, "inputs", None), model._seen_shape
    if not inputs and isinstance(seen, tuple):
        return _call_of(model).get_concrete_function(TensorSpec(("batch", *seen[1:]), model._seen_dtype))
    if not inputs:
        raise ArgumentError(
            "saved",
            f"{model.name} does not know its input: begin it with hf.Input, or give signatures="
            "hf.function(model).get_concrete_function(hf.TensorSpec([None, 3])).",
        )
    leaves, structure = pytree.flatten(model.input)
    specs = [
        TensorSpec(("batch", *(None if e is None else e for e in leaf.shape[1:])), leaf.dtype, leaf.name)
        if leaf.shape[0] is None
        else TensorSpec(leaf.shape, leaf.dtype, leaf.name)
        for leaf in leaves
    ]
    return _call_of(model).get_concrete_function(pytree.unflatten(structure, specs))


def _call_of(model: Layer) -> Function:
    return function(lambda inputs: model(inputs, training=False), name=model.name)


def _completed(signatures: Sequence[Any]) -> list[Any]:
    """Concrete functions, each once, with those of the same functions for extents that these are not for."""
    programs: dict[int, Any] = {}
    for one in signatures:
        _refuse_texts(one)
        small = _small_extents(one) if isinstance(one, ConcreteFunction) else ()
        for concrete in (one, *small):
            programs[id(concrete)] = concrete
            if isinstance(concrete, ConcreteFunction):
                programs.update((id(other), other) for other in shape_variants(concrete))
    return list(programs.values())


def _refuse_texts(program: Any) -> None:
    """Raise ArgumentTypeError for a program that works with the codes of texts, which mean nothing elsewhere."""
    staged = getattr(program, "staged", None)
    if staged is not None and staged.trace.has_codes:
        raise ArgumentTypeError(
            "saved",
            f"{program.name} has texts, which no file of programs can hold. Save what computes with numbers, and look "
            "texts up before it; a model's layers are kept by model.save and model.to_json.",
        )


def _small_extents(concrete: ConcreteFunction) -> Iterator[ConcreteFunction]:
    """The concrete functions that answer calls where open extents are 0 or 1."""
    names: list[Any] = []
    for place, key in enumerate(concrete.key.leaves):
        if isinstance(key, TensorKey):
            names += [
                wanted if isinstance(wanted, str) else (place, axis)
                for axis, wanted in enumerate(key.shape)
                if not isinstance(wanted, int) and (not isinstance(wanted, str) or wanted not in names)
            ]
    if not names or concrete.specialise is None:
        return
    for sizes in _combinations(len(names)):
        chosen = {name: size for name, size in zip(names, sizes) if size is not None}
        keys = tuple(_known(place, key, chosen) for place, key in enumerate(concrete.key.leaves))
        try:
            for small in small_variants(concrete, Key(concrete.key.structure, keys)):
                small.specialise = concrete.specialise
                yield small
        except KeyError:  # nobody can say what else is given
            return


def _combinations(count: int) -> list[tuple[int | None, ...]]:
    """Extents of 0, of 1 and open ones (None): all but the open ones alone, of many of them the likely ones.  One
    sample and one step of it may well come together, nothing and something else hardly."""
    if count <= _OPEN:
        return [sizes for sizes in itertools.product((None, 1, 0), repeat=count) if any(n is not None for n in sizes)]
    singles = [tuple(size if i == k else None for i in range(count)) for k in range(count) for size in (1, 0)]
    if count > _SEVERAL:
        return [*singles, (1,) * count]
    ones = [sizes for sizes in itertools.product((None, 1), repeat=count) if sizes.count(1) > 1]
    return [*singles, *ones]


def _known(place: int, key: object, sizes: Mapping[Any, int]) -> Any:
    if not isinstance(key, TensorKey):
        return key
    shape = tuple(
        wanted if isinstance(wanted, int) else sizes.get(wanted if isinstance(wanted, str) else (place, axis), wanted)
        for axis, wanted in enumerate(key.shape)
    )
    return key if shape == key.shape else TensorKey(shape, key.dtype)


class _Writer:
    """What goes into one file: arrays of constants and variables, each once."""

    def __init__(self, obj: object) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.variables: list[dict[str, Any]] = []
        self.version = WITH_CONDITIONS
        self._constants: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object gets the id of one
        named = obj.named_variables() if isinstance(obj, Module) else {}
        for name, variable in named.items():
            self._variable(variable, name)

    def _variable(self, variable: Variable, name: str | None = None) -> int:
        number = self._numbers.get(id(variable))
        if number is None:
            number = self._numbers[id(variable)] = len(self.variables)
            self._kept.append(variable)
            self.arrays[f"variables.{number}"] = variable.numpy()
            variable_name = name or variable.name or f"variable{number}"
            self.variables.append({"name": variable_name, "trainable": variable.trainable})
        return number

    def _constant(self, tensor: Any) -> str:
        name = self._constants.get(id(tensor))
        if name is None:
            name = self._constants[id(tensor)] = f"constants.{len(self._constants)}"
            self._kept.append(tensor)
            self.arrays[name] = tensor.numpy()
        return name

    def again(self, program: Any) -> dict[str, Any]:
        """A program of a file as it stood there, with its variables and constants by their numbers here."""
        told: dict[str, Any] = program.told
        if program.graph.calls_functions:
            self.version = WITH_ERRORS
        sources = [
            source
            if source is None
            else self._variable(source)
            if isinstance(source, Variable)
            else self._constant(source)
            for source in program.sources
        ]
        return told | {"sources": sources}

    def programs(self, concretes: Sequence[Any]) -> list[dict[str, Any]]:
        """The programs of one function.  Where a wrapper's ``*args`` have names in some of them, they have none in the
        file: it is the first program that says what the function takes."""
        known = {one._binder.parameters for one in concretes if isinstance(one, ConcreteFunction)}
        return [self.program(one, has_names=len(known) < 2) for one in concretes]

    def program(self, concrete: object, has_names: bool) -> dict[str, Any]:
        """One program as what JSON has: its graph as text, and what its inputs and results are."""
        if not isinstance(concrete, ConcreteFunction):
            return self.again(concrete)
        graph = concrete.graph
        records = records_of(concrete.staged.trace.functions) if graph.calls_functions else []
        if not numbers_kept(graph, records):
            raise ArgumentTypeError(
                "saved", f"{concrete.name} calls Python functions (py_function, print...), which no file can hold."
            )
        if records:
            self.version = WITH_ERRORS
        if any(not getattr(span.vjp, "is_dispensable", False) for span in concrete.staged.trace.custom_vjps):
            raise ArgumentTypeError(
                "saved", f"{concrete.name} has a custom_gradient, which is a Python function, and no file can hold it."
            )
        sources: list[Any] = []
        for node, source in zip(graph.inputs, concrete.staged.sources):
            if node.attrs["role"] is Role.ARGUMENT:
                sources.append(None)
            elif isinstance(source, State):
                sources.append(self._variable(source.variable))
            else:
                sources.append(self._constant(source))
        leaves = [_argument(concrete, key) for key in concrete.key.leaves]
        binder, arguments = concrete._binder, tuple(pytree.unflatten(concrete.key.structure, leaves))
        if not has_names:
            binder, arguments = binder.without_names(arguments)
        results = pytree.unflatten(concrete.results, [_result(concrete, *entry) for entry in concrete.plan])
        return {
            "graph": to_text(with_conditions(graph, concrete.conditions), locations=False),
            "parameters": [[name, kind.name] for name, kind in binder.kinds()],
            "arguments": packed(list(arguments), f"an argument of {concrete.name}"),
            "sources": sources,
            **({"errors": records} if records else {}),
            "results": packed(
                results if concrete.setting is None else results[0],  # what it sets is no result of it
                f"the result of {concrete.name}",
            ),
        }


def _argument(concrete: ConcreteFunction, key: object) -> Any:
    if isinstance(key, TensorKey):
        if key.is_weak:
            raise ArgumentTypeError("saved", f"{concrete.name} takes a NumPy scalar; give a tensor or a Python number.")
        return TensorSpec(key.shape, key.dtype)
    if isinstance(key, ValueKey) and key.kind in _READ:
        return _READ[key.kind](key.text)
    raise ArgumentTypeError(
        "saved", f"{concrete.name} takes {key}, which no file can hold; arguments are tensors and plain values."
    )


_READ: dict[type, Any] = {  # what keys of plain values show of them, back
    bool: lambda text: text == "True",
    int: int,
    float: float,
    str: ast.literal_eval,
    type(None): lambda text: None,
}


def _result(concrete: ConcreteFunction, kind: int, value: object) -> Any:
    """What stands in a result: the number of an output or an argument, or a plain value."""
    if kind == RESULT:
        return ("output", value)
    if kind == ARGUMENT:
        return ("argument", value)
    if kind == VALUE:
        return ("value", value)
    raise ArgumentTypeError(
        "saved", f"{concrete.name} returns a number that depends on its arguments; return a tensor of it."
    )
