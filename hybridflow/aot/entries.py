"""What a library offers: for each signature of a saved function an entry, with the programs that answer its calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hybridflow.compiler.ir.dtypes import SHORT
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Graph, Role
from hybridflow.compiler.program import Program
from hybridflow.compiler.target import Target
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.program_cache import program_for
from hybridflow.errors import ArgumentError
from hybridflow.jit.concrete_function import RESULT, ConcreteFunction
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.saved.saved_function import Program as SavedProgram, SavedFunction

C_TYPES = {
    "bool": "uint8_t",
    **{f"{kind}{bits}": f"{word}{bits}_t" for kind, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f32": "float",
    "f64": "double",
}
_RESERVED = """
    auto bool break case char const continue default do double else enum extern false float for goto if inline int long
    register restrict return short signed sizeof static struct switch true typedef union unsigned void volatile while
    and asm catch class delete explicit export friend mutable namespace new not operator or private protected public
    template this throw try typename using virtual xor host state weights workspace shapes
"""  # of C and C++, and the parameters that all functions have
_RESERVED_OF_ARRAYS = """
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t size_t hf_host
    NULL EOF BUFSIZ RAND_MAX EXIT_FAILURE EXIT_SUCCESS errno stdin stdout stderr linux unix I
    main aligned release blocks count memory bytes status k atexit calloc exit free printf puts
"""  # what headers define, and words of the example


class Names:
    """Names for C, each given once: of functions, which have a prefix, or of arrays and extents."""

    def __init__(self, of_arrays: bool = False) -> None:
        self._taken = {*_RESERVED.split(), *(_RESERVED_OF_ARRAYS.split() if of_arrays else ())}

    def add(self, wanted: str) -> str:
        name = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "x"
        name = f"x{name}" if name[0].isdigit() else name
        result, number = name, 2
        while self._is_taken(result):
            result, number = f"{name}_{number}", number + 1
        self._taken.add(result)
        return result

    def _is_taken(self, name: str) -> bool:
        """The example counts the elements of an array ``x`` in ``count_x``."""
        return not self._taken.isdisjoint({name, f"count_{name}", name.removeprefix("count_")})


@dataclass(frozen=True)
class Array:
    """An argument or a result: its name in C, its type, and its extents, where numbers are known."""

    name: str
    dtype: str
    shape: tuple[Extent | str, ...]
    model_name: str = ""  # where the model has one that is another

    @property
    def c_type(self) -> str:
        return C_TYPES[self.dtype]


@dataclass(frozen=True)
class Choice:
    """One program of an entry, with what its graph says of the inputs."""

    graph: Graph
    program: Program
    sources: tuple[Any, ...]
    outputs: tuple[int, ...]  # of the graph, in the order of the entry's results
    conditions: tuple[Extent, ...]
    symbol: str

    @property
    def arguments(self) -> list[int]:
        """The inputs that are arguments."""
        return [k for k, node in enumerate(self.graph.inputs) if node.attrs["role"] is Role.ARGUMENT]

    @property
    def updated(self) -> list[int]:
        return sorted(self.graph.updates)


@dataclass(frozen=True)
class Entry:
    """A function of the library."""

    name: str
    text: str  # the signature in Python's words
    extents: tuple[str, ...]
    arguments: tuple[Array, ...]
    places: tuple[tuple[int | None, ...], ...]  # per argument and axis, which of the extents it is
    results: tuple[Array, ...]
    left_out: tuple[str, ...]  # results that are arguments, or plain values
    choices: tuple[Choice, ...] = field(repr=False)

    @property
    def variables(self) -> list[Variable]:
        return [source for choice in self.choices for source in choice.sources if isinstance(source, Variable)]

    @property
    def assigned(self) -> list[Variable]:
        return [choice.sources[k] for choice in self.choices for k in choice.updated]


class Ports(NamedTuple):
    """The names that a model has for its arguments and its results."""

    arguments: tuple[str, ...] = ()
    results: tuple[str, ...] = ()

    def renamed(self, names: Sequence[str], paths: Sequence[str]) -> list[str]:
        """The model's ``names`` where there are as many as ``paths``; these where not."""
        return list(names if len(names) == len(paths) else paths)


def entries_of(
    functions: Mapping[str, SavedFunction], target: Target, prefix: str, number: int, ports: Ports | None = None
) -> list[Entry]:
    """The entries of saved functions, compiled for the target of that number; the arguments and results of a single one
    have the names of ``ports``.  Raises ArgumentError for what C cannot call."""
    result: list[Entry] = []
    names = Names()
    for name, function in functions.items():
        is_model = ports is not None or name in ("serving_default", "__call__")
        c_name = "run" if len(functions) == 1 and is_model else name
        for programs in _by_signature(function):
            symbol = f"{prefix}.program{number}.{len(result)}"
            result.append(_entry(programs, target, names.add(c_name), name, symbol, ports or Ports()))
    return result


_Pair = tuple[SavedProgram, ConcreteFunction]


def _by_signature(function: SavedFunction) -> list[list[_Pair]]:
    """Programs that are for one signature together: the first is the most general one."""
    left = list(zip(function.programs, function.concretes))
    groups = []
    while left:
        groups.append([pair for pair in left if _is_part(left[0][0], pair[0])])
        left = [pair for pair in left if not _is_part(left[0][0], pair[0])]
    return groups


def _is_part(general: SavedProgram, other: SavedProgram) -> bool:
    """Whether a program is for some of the calls that the signature of another one allows."""
    if general.structure != other.structure or len(general.leaves) != len(other.leaves):
        return False
    return all(map(_is_part_of_leaf, general.leaves, other.leaves, general.keys, other.keys))


def _is_part_of_leaf(wanted: object, leaf: object, key: object, other: object) -> bool:
    if not isinstance(wanted, TensorSpec) or not isinstance(leaf, TensorSpec):
        return bool(key == other)
    if wanted.dtype != leaf.dtype or len(wanted.shape) != len(leaf.shape):
        return False
    return all(not isinstance(w, int) or w == n for w, n in zip(wanted.shape, leaf.shape))


def _entry(programs: Sequence[_Pair], target: Target, name: str, said: str, symbol: str, ports: Ports) -> Entry:
    saved, first = programs[0]
    names = Names(of_arrays=True)
    paths = [path for path, _ in first.arguments]
    leaves = [(path, spec) for path, spec in zip(paths, saved.leaves) if isinstance(spec, TensorSpec)]
    argument_names = ports.renamed(ports.arguments, [path for path, _ in leaves])
    leaves = [(path, spec) for path, (_, spec) in zip(argument_names, leaves)]
    extents: dict[Any, str] = {}
    places = []
    for k, (path, spec) in enumerate(leaves):
        places_of_leaf: list[int | None] = []
        for axis, extent in enumerate(spec.shape):
            if isinstance(extent, int):
                places_of_leaf.append(None)
                continue
            known = extent if isinstance(extent, str) else (k, axis)
            if known not in extents:
                extents[known] = names.add(extent if isinstance(extent, str) else f"{path}_{axis}")
            places_of_leaf.append(list(extents).index(known))
        places.append(tuple(places_of_leaf))
    order = list(extents.values())
    arguments = tuple(
        _array(
            names.add(path),
            _short(spec.dtype, said),
            tuple(e if p is None else order[p] for e, p in zip(spec.shape, places_of_leaf)),
            path if ports.arguments else "",
        )
        for (path, spec), places_of_leaf in zip(leaves, places)
    )
    plain = [f"{path}={leaf!r}" for path, leaf in zip(paths, saved.leaves) if not isinstance(leaf, TensorSpec)]
    result_paths = list(pytree.paths(first.results, "result"))
    result_names = ports.renamed(ports.results, result_paths)
    results, positions, left_out = [], [], []
    for path, (kind, value) in zip(result_names, first.plan):
        if kind != RESULT:
            left_out.append(path)
        elif value not in positions:
            positions.append(value)
            node = first.graph.outputs[value]
            dtype = _short(node.type.dtype, said)
            results.append(_array(names.add(path), dtype, node.type.shape, path if ports.results else ""))
        else:
            left_out.append(path)
    choices = []
    for k, (_, concrete) in enumerate(programs):
        if [kind for kind, _ in concrete.plan] != [kind for kind, _ in first.plan] or (
            concrete.results != first.results
        ):
            raise ArgumentError(
                "aot", f"{said} returns differently nested results for some extents, which no function of C does."
            )
        wanted = [value for kind, value in concrete.plan if kind == RESULT]
        outputs = tuple(dict.fromkeys(wanted))
        if len(outputs) != len(results):
            raise ArgumentError("aot", f"{said} returns one tensor in two places for some extents alone.")
        program = program_for(concrete.graph, target)
        if program.exchanges:
            raise ArgumentError("aot", f"{said} exchanges values with other processes, which no function of C does.")
        if program.needs_python:
            where = ", ".join(_called(program))
            raise ArgumentError(
                "aot",
                f"{said} calls {where}, which is no machine code: decompositions of all but small matrices are "
                "done by Python's LAPACK. Compute it outside, or write it in other operations.",
            )
        choices.append(
            Choice(concrete.graph, program, programs[k][0].sources, outputs, concrete.conditions, f"{symbol}.{k}")
        )
    text = f"{said}({', '.join([*(f'{a.name}: {_typed(a)}' for a in arguments), *plain])})"
    return Entry(name, text, tuple(order), arguments, tuple(places), tuple(results), tuple(left_out), tuple(choices))


def _array(name: str, dtype: str, shape: tuple[Extent | str, ...], model_name: str) -> Array:
    return Array(name, dtype, shape, "" if model_name == name else model_name)


def _called(program: Program) -> Iterable[str]:
    for callback in program.callbacks:
        if callback.retried:
            continue
        name = "a function in Python" if isinstance(callback.function, int) else callback.function.name
        yield f"{name} at {callback.where}" if callback.where else name


def _short(dtype: Any, said: str) -> str:
    name = SHORT.get(dtype)
    if name not in C_TYPES:
        raise ArgumentError("aot", f"{said} has a {dtype}, for which C has no type. Convert it in the function.")
    return name


def _typed(array: Array) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def described(array: Array) -> str:
    """The type as comments show it."""
    return _typed(array)


def bytes_of(tensor: Tensor) -> bytes:
    """The elements in the order in which machine code reads them."""
    return bytes(tensor.numpy().tobytes())
