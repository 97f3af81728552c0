"""Files of functions and models, run without their source."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterator
from typing import Any

from hybridflow.checkpoint import files
from hybridflow.compiler.index.bounds_proofs import check_in_bounds, with_conditions
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.text import parse
from hybridflow.compiler.ir.types import is_static
from hybridflow.compiler.ops import TABLE
from hybridflow.core.context import suspended
from hybridflow.core.file_errors import reading
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, CheckpointError
from hybridflow.module import Module
from hybridflow.saved.format import DEFAULT, KIND, VERSION, WITH_CONDITIONS, WRITER
from hybridflow.saved.raised_errors import numbers_kept
from hybridflow.saved.saved_function import Program, SavedFunction


class Loaded(Module):
    """Loaded program: a module with the functions and variables of what was saved; ``hf.saved.load`` returns it.

    Its functions are attributes, and so are its variables; ``functions`` has all by name, and ``signatures`` those that
    were saved as signatures. Called itself it is the function called "__call__", "serving_default", or the only one.
    All are functions as ``@hf.function`` makes them: they are differentiable, and can be called in others.

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
        self.functions: dict[str, SavedFunction] = {}
        self.signatures: dict[str, Any] = {}  # by name; of what TensorFlow's names load, functions that name results
        self._called: Any = None  # what a call of the module is one of

    def _set_functions(self, functions: dict[str, SavedFunction], methods: Collection[str]) -> None:
        self.functions = functions
        self.signatures = {name: one for name, one in functions.items() if name not in methods}
        only = next(iter(functions.values())) if len(functions) == 1 else None
        self._called = functions.get("__call__", functions.get(DEFAULT, only))

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        yield from self._named.items()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self._called is None:
            names = ", ".join(self.functions)
            raise ArgumentError("saved", f"{self._path} has the functions {names}: call one of them, loaded.name.")
        return self._called(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("functions", {})
        for known in (functions, self.__dict__.get("_named", {})):
            if name in known:
                return known[name]
        raise AttributeError(f"{type(self).__name__} has no {name!r}; its functions are {', '.join(functions)}")

    def __repr__(self) -> str:
        return f"<Loaded {self._path}: {', '.join(self.signatures)}>"


class _Constants:
    """The constants of a file, each read once."""

    def __init__(self, file: files.File) -> None:
        self._file, self._known = file, dict[str, Tensor]()

    def tensor(self, name: str) -> Tensor:
        if name not in self._known:
            self._known[name] = self._file.tensor(name)
        return self._known[name]


def _sources(graph: Graph, told: dict[str, Any], variables: list[Variable], constants: _Constants) -> list[Any]:
    """What the inputs of a graph are: a variable, a tensor of the file as one, or None for an argument."""
    pairs = zip(graph.inputs, told["sources"], strict=True)
    return [_source(node, source, variables, constants) for node, source in pairs]


def _source(node: Node, source: object, variables: list[Variable], constants: _Constants) -> Any:
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
        result = constants.tensor(source)
    else:
        raise ValueError("an input is of another kind than its source")
    if result.shape != node.type.shape or result.dtype != node.type.dtype:
        raise ValueError("a constant or variable is of another type")
    return result


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
    version, writer = file.texts.get("version", ""), file.texts.get("writer", "an earlier hybridflow")
    if not (version.isascii() and version.isdigit()) or int(version) > VERSION:
        raise CheckpointError(
            "saved",
            f"{path} is of format {version!r:.20}, written by {writer:.40}; this is {WRITER}, "
            f"which reads formats up to {VERSION}. Load it with a later version, or save it again with this one.",
        )
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
    older = False
    functions = {}
    methods = json.loads(file.texts.get("methods", "[]"))
    constants = _Constants(file)
    for name, told in json.loads(file.texts["programs"]).items():
        programs = []
        for one in told:
            graph = parse(one["graph"], TABLE)
            if version < WITH_CONDITIONS and not all(is_static(node.type.shape) for node in graph.inputs):
                graph = with_conditions(graph, ())
                older = True
            check_in_bounds(graph)
            if not numbers_kept(graph, one.get("errors", [])):
                raise ValueError("a program calls Python")
            programs.append(Program(graph, one, _sources(graph, one, variables, constants)))
        functions[name] = SavedFunction(name, programs)
    loaded = Loaded(str(file.path), named)
    loaded._set_functions(functions, methods)
    if older:
        warnings.warn(
            f"{file.path} is of format {version}, whose programs do not say for which open extents they are: branches "
            "on shapes may go another way than in the function that was saved. Save it again.",
            stacklevel=5,
        )
    return loaded
