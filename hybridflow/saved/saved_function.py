"""Functions of files: programs that were traced elsewhere, in the place of traces."""

from __future__ import annotations

import copy
import inspect
import itertools
import reprlib
from collections.abc import Sequence
from typing import Any

from hybridflow.array.creation import asarray
from hybridflow.compiler.ir.dtypes import SHORT
from hybridflow.compiler.ir.extents import LEAST, Dim, Extent, affine, symbols, value_at
from hybridflow.compiler.ir.graph import Graph, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import pytree
from hybridflow.core.call_binding import split
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentTypeError, ShapeError
from hybridflow.jit.cache_key import Key, LeafKey, TensorKey
from hybridflow.jit.concrete_function import ARGUMENT, RESULT, VALUE, ConcreteFunction
from hybridflow.jit.function import Function
from hybridflow.jit.native_entry import Refusal
from hybridflow.jit.tensor_spec import TensorSpec, closed_spec
from hybridflow.jit.trace_cache import Guards, Variant
from hybridflow.jit.tracer import CallRequest, Options
from hybridflow.jit.value_key import value_key
from hybridflow.saved.format import fits, unpacked
from hybridflow.saved.raised_errors import kept_errors
from hybridflow.tracing.compiled_trace import CompiledTrace
from hybridflow.tracing.shape_env import ShapeEnv, conditions_hold
from hybridflow.tracing.trace import Trace

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
_PLACES = {"output": RESULT, "argument": ARGUMENT, "value": VALUE}
_SHOWN = 4  # signatures in a message
_CACHED = 64  # programs beside those of the file: for dicts of other kinds, and for one tensor in two places


class Program:
    """One graph of a file, with what its inputs and results are.

    Args:
        graph: the graph, which is proved to stay inside of its arrays.
        told: what the file says of it.
        sources: a variable or a tensor for each input; None for an argument.

    Raises ValueError, IndexError, KeyError or TypeError where that does not fit together.
    """

    def __init__(self, graph: Graph, told: dict[str, Any], sources: Sequence[Any]) -> None:
        self.graph, self.told, self.sources = graph, told, tuple(sources)
        self.parameters = [(str(name), _KINDS[kind]) for name, kind in told["parameters"]]
        self.leaves, self.structure = pytree.flatten(tuple(unpacked(told["arguments"])))
        if len(self.parameters) != len(self.structure.children):
            raise ValueError("there is another number of arguments than of parameters")
        if any(graph.inputs[place].attrs["role"] is not Role.STATE for place in graph.updates):
            raise ValueError("the graph assigns what is no variable")
        variables = [id(source) for source in sources if isinstance(source, Variable)]
        if len(set(variables)) < len(variables):
            raise ValueError("two inputs are one variable")
        self.specs = [leaf for leaf in self.leaves if isinstance(leaf, TensorSpec)]
        self.keys = tuple(map(_key_of, self.leaves))
        self._raising = kept_errors(told.get("errors", []))
        self._arguments = graph.arguments
        for spec, node in zip(self.specs, self._arguments, strict=True):
            if spec.dtype != node.dtype or not _is_spec_of(spec.shape, node.shape):
                raise ValueError(f"an argument is {spec}, and {node.type} in the graph")
        places, self._results = pytree.flatten(_with_places(unpacked(told["results"])))
        self._plan = [place.entry for place in places]
        for kind, value in self._plan:
            known = graph.outputs if kind == RESULT else self.specs
            if kind != VALUE and (type(value) is not int or not 0 <= value < len(known)):
                raise ValueError("a result is none of the graph")

    def concrete(self, function: Function[..., Any]) -> ConcreteFunction:
        """The program as one of a function's signatures."""
        paths: dict[str, str] = {}
        named_leaves = zip(function._binder.paths(self.structure), self.leaves)
        tensors = [path for path, leaf in named_leaves if isinstance(leaf, TensorSpec)]
        for path, node in zip(tensors, self._arguments):
            for axis, extent in enumerate(node.type.shape):
                source = affine(extent)
                if source is not None:
                    paths.setdefault(source[0], f"{path}.shape[{axis}]")
        trace = Trace.of_graph(self.graph, self.sources, ShapeEnv(None, paths))
        trace.functions += self._raising
        staged = CompiledTrace(trace, self.graph.outputs, fastmath=False)
        key = Key(self.structure, self.keys)
        return ConcreteFunction(function._binder, key, self.leaves, staged, self._plan, self._results)

    @property
    def structured_outputs(self) -> Any:
        """The result with a TensorSpec for each tensor."""
        leaves = [
            closed_spec(self.graph.outputs[value].type)
            if kind == RESULT
            else self.specs[value]
            if kind == ARGUMENT
            else value
            for kind, value in self._plan
        ]
        return pytree.unflatten(self._results, leaves)

    def takes(self, leaves: Sequence[Any], structure: pytree.Structure) -> bool:
        """Whether the program is one for these arguments."""
        if structure != self.structure and not fits(structure, self.structure):
            return False
        sizes = self.sizes(leaves)
        return sizes is not None and conditions_hold(self.graph.conditions, sizes)

    def sizes(self, leaves: Sequence[Any]) -> dict[str, int] | None:
        """What the symbols are for these leaves; None for leaves of another signature, or that no symbols are for."""
        pairs = self._extents(leaves)
        if pairs is None:
            return None
        sizes = _sizes(pairs)
        if any(size < LEAST for size in sizes.values()):
            return None
        return sizes if all(value_at(extent, sizes) == actual for actual, extent in pairs) else None

    def _extents(self, leaves: Sequence[Any]) -> list[tuple[int, Extent]] | None:
        """The extents that are open in the signature, each with what the graph has for it; None for leaves of another
        signature."""
        if len(leaves) != len(self.leaves):
            return None
        pairs = []
        nodes = iter(self._arguments)
        for leaf, wanted, key in zip(leaves, self.leaves, self.keys):
            if not isinstance(wanted, TensorSpec):
                if value_key(leaf) != key:  # by bits: -0.0 is not 0.0, and NaN is itself
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
                pairs.append((actual, extent))
        return pairs

    def takes_specs(self, leaves: Sequence[Any], structure: pytree.Structure) -> bool:
        """Whether the program is one for arguments that TensorSpecs stand for."""
        if len(leaves) != len(self.leaves) or (structure != self.structure and not fits(structure, self.structure)):
            return False
        return all(map(_accepts_spec, self.leaves, self.keys, leaves))

    def failing(self, leaves: Sequence[Any], structure: pytree.Structure) -> str | None:
        """What the program takes for granted that is not so for leaves which are otherwise of the signature; None for
        others."""
        pairs = self._extents(leaves) if fits(structure, self.structure) else None
        if pairs is None:
            return None
        sizes = _sizes(pairs)
        for actual, extent in pairs:
            small = [name for name in symbols(extent) if sizes[name] < LEAST]
            if small:
                return f"an extent is {extent}, with {small[0]} >= {LEAST} (it is {actual})"
            if value_at(extent, sizes) != actual:
                of = ", ".join(f"{name} is {size}" for size, name in pairs if name in set(map(Dim, symbols(extent))))
                return f"an extent is {extent} (it is {actual}{', ' * bool(of)}{of})"
        for condition in self.graph.conditions:
            if not conditions_hold((condition,), sizes):
                of = ", ".join(f"{name} is {sizes[name]}" for name in symbols(condition))
                return f"{condition} >= 0 ({of})"
        return None


def _sizes(pairs: Sequence[tuple[int, Extent]]) -> dict[str, int]:
    """What symbols are, as far as extents say."""
    sizes: dict[str, int] = {}
    for actual, extent in pairs:
        source = affine(extent)
        if source is not None:
            sizes.setdefault(source[0], (actual - source[2]) // source[1])
    return sizes


class _Place:
    """Where a leaf of a result comes from: an entry of ``ConcreteFunction.plan``, which is no container here."""

    __slots__ = ("entry",)

    def __init__(self, kind: int, value: object) -> None:
        self.entry = kind, value


def _with_places(result: object) -> Any:
    """A nested result of a file with places in it.  Raises ValueError where it has something else."""
    if isinstance(result, tuple) and len(result) == 2 and type(result[0]) is str and result[0] in _PLACES:
        return _Place(_PLACES[result[0]], result[1])
    if isinstance(result, dict):
        return {key: _with_places(part) for key, part in result.items()}
    if isinstance(result, (list, tuple)):
        return type(result)(map(_with_places, result))
    raise ValueError("a result is neither an output nor a value")


def _key_of(leaf: object) -> LeafKey:
    key = TensorKey(leaf.shape, leaf.dtype) if isinstance(leaf, TensorSpec) else value_key(leaf)
    if key is None:
        raise ValueError("an argument is no plain value")
    return key


def _accepts_spec(wanted: object, key: LeafKey, leaf: object) -> bool:
    """Whether an argument of a program may be what a tensor or a TensorSpec stands for, or another value."""
    if not isinstance(wanted, TensorSpec):
        return not isinstance(leaf, TensorSpec) and value_key(leaf) == key
    if not isinstance(leaf, (TensorSpec, Tensor)) or leaf.dtype != wanted.dtype:
        return False
    pairs = zip(wanted.shape, leaf.shape)
    is_small = any(not isinstance(w, int) and isinstance(n, int) and n < LEAST for w, n in pairs)
    return _is_spec_of(wanted.shape, leaf.shape) and not is_small


def _is_spec_of(wanted: Sequence[Any], shape: Sequence[Any]) -> bool:
    """Whether open extents and numbers of a signature are those of an input of a graph."""
    return len(wanted) == len(shape) and all(not isinstance(w, int) or w == n for w, n in zip(wanted, shape))


class _Body:
    """What a function of a file does where it is not called as compiled code: it applies the ops of a program anew."""

    def __init__(self, name: str, programs: Sequence[Program]) -> None:
        self.__name__ = self.__qualname__ = name
        self.__signature__ = _signature(programs[0])
        self.by_place = inspect.Signature([inspect.Parameter(*parameter) for parameter in programs[0].parameters])
        self.function: Any = None

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.function.inline(args, kwargs)


class SavedFunction(Function[..., Any]):
    """Function of a file. It takes the arguments that were saved; plain values among them are their defaults.

    It is what ``@hf.function`` makes, with the programs of the file in the place of traces: calls are answered
    natively, and ``explain``, ``ir``, ``kernels``, ``profile`` and ``signatures`` look inside.

    Args:
        name: what it is called.
        programs: its programs, one for each signature.

    >>> import os, tempfile
    >>> f = hf.function(lambda x, twice=False: x * 2 if twice else x)
    >>> _ = f(hf.ones((2,))), f(hf.ones((2,)), twice=True)
    >>> loaded = hf.saved.load(hf.saved.save(f, os.path.join(tempfile.mkdtemp(), "f")))
    >>> loaded.signatures["serving_default"]
    <SavedFunction serving_default(x, twice=False)>
    >>> [node.op.name for node in loaded.serving_default.get_concrete_function(hf.ones((2,)), True).graph.nodes]
    ['constant', 'broadcast', 'multiply']
    """

    __slots__ = ()

    def __init__(self, name: str, programs: Sequence[Program]) -> None:
        body = _Body(name, programs)
        super().__init__(body, Options(None, False, len(programs) + _CACHED, name, False, False, (), False))
        body.function = self
        self.name, self.programs = name, list(programs)
        self.concretes: list[ConcreteFunction] = []  # of the programs, in their order
        self.__signature__ = body.__signature__
        self._order = self._binder.parameters
        self._add_programs()

    def _add_programs(self) -> None:
        """Let the programs answer calls.  Of those that take one the first is to answer it: the latest that the cache
        was given is tried first."""
        self.concretes = [program.concrete(self) for program in self.programs]
        for program, concrete in reversed([*zip(self.programs, self.concretes)]):
            concrete.specialise = self._specialise
            concrete.known.name_tensors(program.leaves)
            self._cache.add(concrete.key, Variant(concrete, Guards((), ())))

    @property
    def specs(self) -> list[Any]:
        """The arguments that there are programs for, each with a TensorSpec for a tensor."""
        return [pytree.unflatten(program.structure, program.leaves) for program in self.programs]

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        """What the first program takes; None where it takes something by name alone."""
        args, kwargs = self.structured_input_signature
        return None if kwargs else args

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the first program takes, as a concrete function says it."""
        args, kwargs = split(self.programs[0].parameters, self.specs[0])
        return tuple(args), kwargs

    @property
    def structured_outputs(self) -> Any:
        """The result of the first program with a TensorSpec for each tensor."""
        return self.programs[0].structured_outputs

    # Calls that native code does not answer

    def _request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallRequest:
        leaves, structure = self._bound(args, kwargs)
        leaves, number = self._matched(leaves, structure)
        return CallRequest(leaves, Key(structure, self.programs[number].keys))

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply the ops of the program for these arguments: into the trace that is going on, or eagerly.

        Args:
            args: the arguments.
            kwargs: the keyword arguments.

        Returns:
            The result of the call.
        """
        leaves, number = self._matched(*self._bound(args, kwargs))
        return self.concretes[number].inline_leaves(leaves)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], pytree.Structure]:
        """The leaves of a call's arguments, and how they are nested."""
        values = self._binder.bind(args, kwargs)
        return pytree.flatten(tuple(self._of_lists(value, specs) for value, specs in zip(values, zip(*self.specs))))

    def _matched(self, leaves: list[Any], structure: pytree.Structure) -> tuple[list[Any], int]:
        """The number of the first program that takes these leaves; arrays and numbers are tensors where it has
        tensors."""
        # Code that was given a dict may have seen in which order it holds its keys.
        known = sorted(range(len(self.programs)), key=lambda number: self.programs[number].structure != structure)
        converted = self._converted(leaves)
        for candidates in (leaves, converted):
            for number in known:
                if self.programs[number].takes(candidates, structure):
                    return candidates, number
        raise ShapeError(self.name, self._refusal_text(leaves, converted, structure))

    def _concrete_function(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        """The program for these arguments, of which a TensorSpec may stand for each tensor; without any the first."""
        if not args and not kwargs:
            return self.concretes[0]
        leaves, structure = self._bound(args, kwargs)
        if not any(isinstance(leaf, TensorSpec) for leaf in leaves):
            return self._answering(self._request(args, kwargs))
        converted = self._converted(leaves)
        for program, concrete in zip(self.programs, self.concretes):
            if program.takes_specs(converted, structure):
                return concrete
        raise ShapeError(self.name, self._refusal_text(leaves, converted, structure))

    def _refusal(self, variant: Variant, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Refusal | None:
        return super()._refusal(variant, args, kwargs) if args or kwargs else variant.refusal

    def cache_clear(self) -> None:
        """Forget what was compiled: the programs are those of the file again."""
        super().cache_clear()
        self._add_programs()

    def _refusal_text(self, leaves: Sequence[Any], converted: Sequence[Any], structure: pytree.Structure) -> str:
        """What was given, what there are programs for, and what to do."""
        described = self._describe(leaves, structure)
        for program in self.programs:
            failing = program.failing(converted, structure)
            if failing is not None:
                return (
                    f"the program for ({self._describe(program.leaves, program.structure)}) was traced for extents "
                    f"where {failing}, and none was saved for ({described}). Call the function with such arguments "
                    "before it is saved: then the file has a program for them."
                )
        known = dict.fromkeys(self._describe(program.leaves, program.structure) for program in self.programs)
        is_open = any(isinstance(e, (str, type(None))) for p in self.programs for spec in p.specs for e in spec.shape)
        shown = [f"({one})" for one in itertools.islice(known, _SHOWN)]
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        return (
            f"no program was saved for ({described}). There are programs for {'; '.join(shown)}{more}. "
            f"{'Open extents (?) are 2 or more. ' * is_open}Give such arguments, or call the function with yours "
            "before it is saved."
        )

    def _describe(self, leaves: Sequence[Any], structure: pytree.Structure) -> str:
        """Each leaf by its path, with its type or a short form of its value."""
        parts = zip(self._order, structure.children)
        paths = [path for name, part in parts for path in pytree.paths(part, name)]
        return ", ".join(f"{path}: {_type_of(leaf)}" for path, leaf in zip(paths, leaves))

    def _of_lists(self, value: Any, specs: Sequence[Any]) -> Any:
        """Lists of numbers as tensors where all programs take a tensor, and dicts of the user's classes as dicts: a
        program reads their items alone."""
        if isinstance(value, (list, tuple)) and all(isinstance(spec, TensorSpec) for spec in specs):
            return asarray(value, dtype=specs[0].dtype)
        is_of_user = isinstance(value, dict) and type(value) not in pytree.MAPPINGS
        return dict(value.items()) if is_of_user else value

    def _converted(self, leaves: list[Any]) -> list[Any]:
        """Arrays and numbers as tensors where tensors are taken."""
        programs = [program for program in self.programs if len(program.leaves) == len(leaves)]
        result = []
        for place, leaf in enumerate(leaves):
            wanted = next((p.leaves[place] for p in programs if isinstance(p.leaves[place], TensorSpec)), None)
            if wanted is not None and not isinstance(leaf, (str, type(None), TensorSpec)):
                dtype = None if hasattr(leaf, "dtype") else wanted.dtype
                leaf = as_tensor(leaf, self.name) if dtype is None else asarray(leaf, dtype=dtype)
            result.append(leaf)
        return result

    # Copies

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Itself: a function of a file is no method."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SavedFunction:
        """One with variables of its own, as far as they are not copied already."""
        programs = [
            Program(
                program.graph,
                program.told,
                [copy.deepcopy(s, memo) if isinstance(s, Variable) else s for s in program.sources],
            )
            for program in self.programs
        ]
        return SavedFunction(self.name, programs)

    def __reduce__(self) -> Any:
        raise ArgumentTypeError(
            self.name, "a function of a file cannot be pickled. Send the path, and load it there: hf.saved.load(path)."
        )

    def __repr__(self) -> str:
        return f"<SavedFunction {self.name}{self.__signature__}>"


def _signature(program: Program) -> inspect.Signature:
    """What a function takes: plain values are defaults, as far as Python has them there."""
    values = pytree.unflatten(program.structure, program.leaves)
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = []
    for (name, kind), value in zip(program.parameters, values):
        plain = not any(isinstance(leaf, TensorSpec) for leaf in pytree.flatten(value)[0])
        default = value if plain and kind not in several else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(_ordered(parameters))


def _type_of(leaf: object) -> str:
    """A leaf as messages show it: never the elements of an array."""
    if isinstance(leaf, TensorSpec):
        return str(leaf)
    dtype: Any = getattr(leaf, "dtype", None)
    shape = getattr(leaf, "shape", None)
    if dtype in SHORT and isinstance(shape, tuple):
        return str(TensorType(tuple(shape), dtype))
    return reprlib.repr(leaf)


def _ordered(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Parameters in their order: one behind another with a default is given by name alone where it has none.  Where
    ``*args`` follows, which names are behind, it is the other that has none."""
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in by_place]
    rest = parameters[len(positional) :]
    required = max((k for k, p in enumerate(positional) if p.default is p.empty), default=-1) + 1
    first = next((k for k, p in enumerate(positional[:required]) if p.default is not p.empty), required)
    if any(p.kind is p.VAR_POSITIONAL for p in rest) or any(p.kind is p.POSITIONAL_ONLY for p in positional[first:]):
        return [p.replace(default=p.empty) for p in positional[:required]] + positional[required:] + rest
    behind = next((k for k, p in enumerate(positional) if k > first and p.default is p.empty), len(positional))
    return positional[:behind] + [p.replace(kind=p.KEYWORD_ONLY) for p in positional[behind:]] + rest
