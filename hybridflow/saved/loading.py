"""Files of functions and models, run without their source."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import reprlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from hybridflow.array.creation import asarray
from hybridflow.checkpoint import files
from hybridflow.compiler.graph_inlining import apply_again, extents_of
from hybridflow.compiler.index.bounds_proofs import check_in_bounds, with_conditions
from hybridflow.compiler.ir.dtypes import SHORT
from hybridflow.compiler.ir.extents import LEAST, affine, symbols, value_at
from hybridflow.compiler.ir.graph import Graph, Role
from hybridflow.compiler.ir.text import parse
from hybridflow.compiler.ir.types import TensorType, is_static
from hybridflow.compiler.ops import TABLE
from hybridflow.core import pytree
from hybridflow.core.call_binding import split
from hybridflow.core.context import suspended
from hybridflow.core.file_errors import reading
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import builder
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, CheckpointError, ShapeError
from hybridflow.jit.function import function
from hybridflow.jit.tensor_spec import TensorSpec, closed_spec
from hybridflow.jit.value_key import value_key
from hybridflow.layers.module import Module
from hybridflow.saved.saving import DEFAULT, KIND, VERSION
from hybridflow.saved.structure_json import fits, unpacked
from hybridflow.tracing.shape_env import conditions_hold

_KINDS = {
    kind.name: kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
}
_SHOWN = 4  # signatures in a message
_WITH_CONDITIONS = 2  # the format since which graphs have them


class Loaded(Module):
    """Loaded program: a module with the functions and variables of what was saved; ``hf.saved.load`` returns it.

    Its functions are attributes, and so are its variables; ``signatures`` has those functions by name that were saved
    as signatures. Called itself it is the function called "__call__", "serving_default", or the only one. All are
    functions as ``@hf.function`` makes them: they are differentiable, and can be called in others.

    Args:
        path: the file it comes from.
        named: its variables by name.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    >>> loaded = hf.saved.load(hf.saved.save(model, os.path.join(tempfile.mkdtemp(), "model")))
    >>> [v.shape for v in loaded.variables], list(loaded.signatures)
    ([(3, 2), (2,)], ['serving_default'])
    """

    def __init__(self, path: str, named: dict[str, Variable]) -> None:
        self._path, self._named = path, named
        self._saved_functions: dict[str, SavedFunction] = {}
        self.signatures: dict[str, Any] = {}  # by name; of what TensorFlow's names load, functions that name results

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        yield from self._named.items()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        chosen = self._saved_functions.get("__call__", self._saved_functions.get(DEFAULT))
        if chosen is None:
            if len(self._saved_functions) != 1:
                names = ", ".join(self._saved_functions)
                raise ArgumentError("saved", f"{self._path} has the functions {names}: call one of them, loaded.name.")
            chosen = next(iter(self._saved_functions.values()))
        return chosen(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_saved_functions", {})
        for known in (functions, self.__dict__.get("_named", {})):
            if name in known:
                return known[name]
        raise AttributeError(f"{type(self).__name__} has no {name!r}; its functions are {', '.join(functions)}")

    def __repr__(self) -> str:
        return f"<Loaded {self._path}: {', '.join(self.signatures)}>"


class _Program:
    """One graph of a file, with what its inputs and results are."""

    def __init__(self, graph: Graph, told: dict[str, Any], variables: list[Variable], file: files.File) -> None:
        self.told, self.graph = told, graph
        self.parameters = [(str(name), _KINDS[kind]) for name, kind in told["parameters"]]
        self.leaves, self.structure = pytree.flatten(tuple(unpacked(told["arguments"])))
        self.results = unpacked(told["results"])
        self.sources = [
            _source(node, source, variables, file) for node, source in zip(graph.inputs, told["sources"], strict=True)
        ]
        if any(graph.inputs[place].attrs["role"] is not Role.STATE for place in graph.updates):
            raise ValueError("the graph assigns what is no variable")
        self.specs = [leaf for leaf in self.leaves if isinstance(leaf, TensorSpec)]
        self._arguments = [node for node in graph.inputs if node.attrs["role"] is Role.ARGUMENT]
        for spec, node in zip(self.specs, self._arguments, strict=True):
            if spec.dtype != node.dtype or not _is_spec_of(spec.shape, node.shape):
                raise ValueError(f"an argument is {spec}, and {node.type} in the graph")
        _assembled(self.results, graph.outputs, self.specs)  # which raises where there is no such output
        self.call = function(self._run, name=graph.name)

    def takes(self, leaves: Sequence[Any], structure: pytree.Structure) -> bool:
        """Whether the program is one for these arguments."""
        if structure != self.structure and not fits(structure, self.structure):
            return False
        sizes = self.sizes(leaves)
        return sizes is not None and conditions_hold(self.graph.conditions, sizes)

    def sizes(self, leaves: Sequence[Any]) -> dict[str, int] | None:
        """What the symbols are for these leaves; None for leaves of another signature."""
        if len(leaves) != len(self.leaves):
            return None
        sizes: dict[str, int] = {}
        pairs = []
        nodes = iter(self._arguments)
        for leaf, wanted in zip(leaves, self.leaves):
            if not isinstance(wanted, TensorSpec):
                if value_key(leaf) != value_key(wanted):  # by bits: -0.0 is not 0.0, and NaN is itself
                    return None
                continue
            node = next(nodes)
            if not isinstance(leaf, Tensor) or leaf.dtype != wanted.dtype or leaf.ndim != len(wanted.shape):
                return None
            for actual, asked, extent in zip(leaf.shape, wanted.shape, node.type.shape):
                if isinstance(asked, int):
                    if actual != asked:
                        return None
                    continue
                if actual < LEAST:
                    return None
                source = affine(extent)
                if source is not None:
                    sizes.setdefault(source[0], (actual - source[2]) // source[1])
                pairs.append((actual, extent))
        if any(size < LEAST for size in sizes.values()):
            return None
        return sizes if all(value_at(extent, sizes) == actual for actual, extent in pairs) else None

    def failing(self, leaves: Sequence[Any], structure: pytree.Structure) -> str | None:
        """Which condition does not hold for leaves that are otherwise of the signature; None for others."""
        sizes = self.sizes(leaves) if fits(structure, self.structure) else None
        if sizes is None:
            return None
        for condition in self.graph.conditions:
            if not conditions_hold((condition,), sizes):
                of = ", ".join(f"{name} is {sizes[name]}" for name in symbols(condition))
                return f"{condition} >= 0 ({of})"
        return None

    def _run(self, *tensors: Tensor) -> list[Any]:
        """The outputs of the graph, applied anew to tensors; variables are assigned what it says."""
        values: dict[Any, Any] = {}
        given = iter(tensors)
        for node, source in zip(self.graph.inputs, self.sources):
            values[node] = next(given) if source is None else as_tensor(source, self.graph.name)
        extents = extents_of({node: values[node] for node in self._arguments})
        apply_again(builder, self.graph.nodes, values, extents)
        outputs = [values[node] for node in self.graph.outputs]
        for place, node in self.graph.updates.items():
            self.sources[place].assign(values[node])
        return outputs


def _source(node: Any, source: Any, variables: list[Variable], file: files.File) -> Any:
    """What an input of a graph is: None for an argument, else a variable or a constant of the file.

    Raises ValueError, IndexError or KeyError where the file does not say it.
    """
    role = node.attrs["role"]
    if role is Role.ARGUMENT:
        if source is not None:
            raise ValueError("an argument has a source")
        return None
    result: Any
    if role is Role.STATE and type(source) is int and source >= 0:
        result = variables[source]
    elif role is Role.CAPTURE and isinstance(source, str):
        result = file.tensor(source)
    else:
        raise ValueError("an input is of another kind than its source")
    if result.shape != node.type.shape or result.dtype != node.type.dtype:
        raise ValueError("a constant or variable is of another type")
    return result


def _is_spec_of(wanted: Sequence[Any], shape: Sequence[Any]) -> bool:
    """Whether open extents and numbers of a signature are those of an input of a graph."""
    return len(wanted) == len(shape) and all(not isinstance(w, int) or w == n for w, n in zip(wanted, shape))


class SavedFunction:
    """Function of a file. It takes the arguments that were saved; plain values among them are their defaults.

    Args:
        name: what it is called.
        programs: its programs, one for each signature.

    >>> import os, tempfile
    >>> f = hf.function(lambda x, twice=False: x * 2 if twice else x)
    >>> _ = f(hf.ones((2,))), f(hf.ones((2,)), twice=True)
    >>> hf.saved.load(hf.saved.save(f, os.path.join(tempfile.mkdtemp(), "f"))).signatures["serving_default"]
    <SavedFunction serving_default(x, twice=False)>
    """

    def __init__(self, name: str, programs: list[_Program]) -> None:
        self.name, self.programs = name, programs
        first = programs[0]
        defaults = pytree.unflatten(first.structure, first.leaves)
        parameters = []
        for (parameter, kind), default in zip(first.parameters, defaults):
            is_several = kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            plain = not any(isinstance(leaf, TensorSpec) for leaf in pytree.flatten(default)[0])
            usual = default if plain and not is_several else inspect.Parameter.empty
            parameters.append(inspect.Parameter(parameter, kind, default=usual))
        self.__signature__ = inspect.Signature(_ordered(parameters))
        self._order = [name for name, _ in first.parameters]

    @property
    def specs(self) -> list[Any]:
        """The arguments that there are programs for, each with a TensorSpec for a tensor."""
        return [pytree.unflatten(program.structure, program.leaves) for program in self.programs]

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the first program takes, as a concrete function says it."""
        args, kwargs = split(self.programs[0].parameters, self.specs[0])
        return tuple(args), kwargs

    @property
    def structured_outputs(self) -> Any:
        """The result of the first program with a TensorSpec for each tensor."""
        first = self.programs[0]
        return _assembled(first.results, [closed_spec(node.type) for node in first.graph.outputs], first.specs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(self.name, f"{error}; the signature is {self.name}{self.__signature__}.") from None
        bound.apply_defaults()
        given = zip(self._order, zip(*self.specs))
        leaves, structure = pytree.flatten(tuple(self._of_lists(bound.arguments[name], specs) for name, specs in given))
        converted = self._converted(leaves)
        # Code that was given a dict may have seen in which order it holds its keys.
        known = sorted(self.programs, key=lambda program: program.structure != structure)
        for found in (leaves, converted):
            for program in known:
                if program.takes(found, structure):
                    tensors = [leaf for leaf, spec in zip(found, program.leaves) if isinstance(spec, TensorSpec)]
                    return _assembled(program.results, program.call(*tensors), tensors)
        raise ShapeError(self.name, self._refusal(leaves, converted, structure))

    def _refusal(self, leaves: Sequence[Any], converted: Sequence[Any], structure: pytree.Structure) -> str:
        """What was given, what there are programs for, and what to do."""
        told = self._told(leaves, structure)
        for program in self.programs:
            failing = program.failing(converted, structure)
            if failing is not None:
                return (
                    f"the program for ({self._told(program.leaves, program.structure)}) was traced for extents where "
                    f"{failing}, and none was saved for ({told}). Call the function with such arguments before it is "
                    "saved: then the file has a program for them."
                )
        known = dict.fromkeys(self._told(program.leaves, program.structure) for program in self.programs)
        is_open = any(isinstance(e, (str, type(None))) for p in self.programs for spec in p.specs for e in spec.shape)
        shown = [f"({one})" for one in itertools.islice(known, _SHOWN)]
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        return (
            f"no program was saved for ({told}). There are programs for {'; '.join(shown)}{more}. "
            f"{'Open extents (?) are 2 or more. ' * is_open}Give such arguments, or call the function with yours "
            "before it is saved."
        )

    def _told(self, leaves: Sequence[Any], structure: pytree.Structure) -> str:
        """Each leaf by its path, with its type or a short form of its value."""
        parts = zip(self._order, structure.children)
        paths = [path for name, part in parts for path in pytree.paths(part, name)]
        return ", ".join(f"{path}: {_type_of(leaf)}" for path, leaf in zip(paths, leaves))

    def _of_lists(self, value: Any, specs: Sequence[Any]) -> Any:
        """Lists of numbers as tensors where all programs take a tensor."""
        if isinstance(value, (list, tuple)) and all(isinstance(spec, TensorSpec) for spec in specs):
            return asarray(value, dtype=specs[0].dtype)
        return value

    def _converted(self, leaves: list[Any]) -> list[Any]:
        """Arrays and numbers as tensors where tensors are taken."""
        programs = [program for program in self.programs if len(program.leaves) == len(leaves)]
        result = []
        for place, leaf in enumerate(leaves):
            wanted = next((p.leaves[place] for p in programs if isinstance(p.leaves[place], TensorSpec)), None)
            if wanted is not None and not isinstance(leaf, (str, type(None))):
                dtype = None if hasattr(leaf, "dtype") else wanted.dtype
                leaf = as_tensor(leaf, self.name) if dtype is None else asarray(leaf, dtype=dtype)
            result.append(leaf)
        return result

    def __repr__(self) -> str:
        return f"<SavedFunction {self.name}{self.__signature__}>"


def load(path: str | os.PathLike[str]) -> Loaded:
    """Load what ``hf.saved.save`` wrote: a module that runs without the source of what was saved.

    Nothing in a file is executed as code but ops of this version of hybridflow.

    Args:
        path: the file.

    Returns:
        An ``hf.saved.Loaded``.

    Raises:
        CheckpointError: for a file that is damaged, of another kind, or of a later format.
        FileNotFoundError: where there is none.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    >>> loaded = hf.saved.load(hf.saved.save(model, os.path.join(tempfile.mkdtemp(), "model")))
    >>> x = hf.ones((5, 3))
    >>> bool(hf.all(loaded(x) == model(x)))
    True
    """
    file = files.File(path)
    if file.texts.get("kind") != KIND:
        raise CheckpointError("saved", f"{path} holds no saved function, but {file.texts.get('kind')!r}.")
    version = file.texts.get("version", "")
    if not version.isdigit() or int(version) > VERSION:
        raise CheckpointError("saved", f"{path} is of format {version!r:.20}; this hybridflow reads up to {VERSION}.")
    if not file.is_checked:
        raise CheckpointError("saved", f"{path} cannot be read: its header has no sum. The file is damaged.")
    with reading(CheckpointError, "saved", path), suspended():
        return _read(file, int(version))


def _read(file: files.File, version: int) -> Loaded:
    variables = []
    named = {}
    for number, told in enumerate(json.loads(file.texts["variables"])):
        variable = Variable(
            file.tensor(f"variables.{number}"), trainable=bool(told["trainable"]), name=str(told["name"])
        )
        variables.append(variable)
        named[str(told["name"]) if str(told["name"]) not in named else f"{told['name']}_{number}"] = variable
    loaded, older = Loaded(str(file.path), named), False
    methods = json.loads(file.texts.get("methods", "[]"))
    for name, told in json.loads(file.texts["programs"]).items():
        programs = []
        for one in told:
            graph = parse(one["graph"], TABLE)
            if version < _WITH_CONDITIONS and not all(is_static(node.type.shape) for node in graph.inputs):
                graph = with_conditions(graph, ())
                older = True
            check_in_bounds(graph)
            if graph.calls_host:
                raise ValueError("a program calls Python")
            programs.append(_Program(graph, one, variables, file))
        loaded._saved_functions[name] = SavedFunction(name, programs)
    loaded.signatures = {name: one for name, one in loaded._saved_functions.items() if name not in methods}
    if older:
        warnings.warn(
            f"{file.path} is of format {version}, whose programs do not say for which open extents they are: branches "
            "on shapes may go another way than in the function that was saved. Save it again.",
            stacklevel=5,
        )
    return loaded


def _assembled(result: Any, outputs: Sequence[Any], arguments: Sequence[Any]) -> Any:
    """A result with its outputs, arguments and plain values in their places."""
    if isinstance(result, tuple) and len(result) == 2 and result[0] in ("output", "argument", "value"):
        kind, value = result
        return outputs[value] if kind == "output" else arguments[value] if kind == "argument" else value
    if isinstance(result, dict):
        return {key: _assembled(part, outputs, arguments) for key, part in result.items()}
    return type(result)(_assembled(part, outputs, arguments) for part in result)


def _type_of(leaf: Any) -> str:
    """A leaf as messages show it: never the elements of an array."""
    if isinstance(leaf, TensorSpec):
        return str(leaf)
    dtype: Any = getattr(leaf, "dtype", None)
    shape = getattr(leaf, "shape", None)
    if dtype in SHORT and isinstance(shape, tuple):
        return str(TensorType(tuple(shape), dtype))
    return reprlib.repr(leaf)


def _ordered(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Parameters with those behind one with a default given by name alone where they have none."""
    seen = False
    found = []
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for parameter in parameters:
        seen = seen or (parameter.kind in by_place and parameter.default is not parameter.empty)
        if seen and parameter.kind in by_place and parameter.default is parameter.empty:
            parameter = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        found.append(parameter)
    return sorted(found, key=lambda p: p.kind)
