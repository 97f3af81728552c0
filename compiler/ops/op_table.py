"""The op table: one declaration per primitive op, from which everything else is derived.

Declare an op with ``define(...)`` in the module of its family.  ``TABLE`` is the only list of ops there is: the
front end's functions, the tracer, the verifier, the passes, the emitters and the tests all walk it.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Concatenate

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import Builder
from hybridflow.compiler.ir.dtypes import DType
from hybridflow.compiler.ir.graph import Effect
from hybridflow.compiler.ir.results import parts_of
from hybridflow.compiler.ir.types import Extent, TensorType, shape_fault
from hybridflow.compiler.ops.contraction_dims import Contraction
from hybridflow.compiler.ops.emitter_protocol import ElementSource, Emit, State, Val
from hybridflow.compiler.ops.lowering import Lowering
from hybridflow.compiler.ops.samples import Samples
from hybridflow.errors import ShapeError
from hybridflow.quick_dataclasses import dataclass


class Kind(enum.Enum):
    """What fusion, scheduling and lowering may assume of an op."""

    __hash__ = object.__hash__  # members are single objects; the hash of their names takes a call in Python

    ELEMENTWISE = "elementwise"  # out[i] = scalar(in0[i], in1[i], ...); all shapes equal
    REDUCE = "reduce"  # folds whole axes away
    SCAN = "scan"  # a running fold along one axis
    VIEW = "view"  # each output element is one input element: out[i] = in[map(i)]
    SEGMENT = "segment"  # the output is a disjoint union of shifted inputs (concat, pad)
    CONTRACT = "contract"  # products summed over shared axes
    CONVOLVE = "convolve"  # products summed over what a sliding window sees, or over where it is
    GATHER = "gather"  # each output element is one input element, found through indices
    SEARCH = "search"  # each output element is a position in the first input, found by looking at elements of that
    SPARSE = "sparse"  # each output element is a sum over entries of a row, which point at elements of an input
    SCATTER = "scatter"  # updates folded into a copy of the first input, in row-major order of the updates
    SORT = "sort"  # a permutation along one axis
    TRANSFORM = "transform"  # a linear map of whole lines along one axis
    CREATE = "create"  # no tensor inputs, or only a key: out[i] = f(i)
    PROJECT = "project"  # one of the results of its input, which has several
    CONTROL = "control"  # runs sub-graphs, or the host; results are always several
    COLLECTIVE = "collective"  # values of all replicas meet; in no program, see collectives.py


class _NotDifferentiable:
    def __repr__(self) -> str:
        return "NOT_DIFFERENTIABLE"


NOT_DIFFERENTIABLE: object = _NotDifferentiable()
"""Said on purpose in place of a ``vjp``: the output does not depend smoothly on any input."""

NOWHERE = (2**63 - 1, dt.int64)
"""The component of a fold's identity that is a position: larger than any that is there.  ``Folding`` narrows it, and
makes positions for folds that have one."""


class Deferred:
    """A cotangent that need not be made yet: call it for the value.  See ``indexed_slices``."""

    __slots__ = ()

    def __call__(self) -> Any:
        raise NotImplementedError

    def plus(self, other: Any) -> Deferred:
        """The sum with another one like this."""
        raise NotImplementedError


Types = tuple[TensorType, ...]
Attrs = Mapping[str, Any]
Canon = Callable[[Types, dict[str, Any]], dict[str, Any]]
Derivative = Callable[Concatenate[Builder, Any, Any, ...], Sequence[Any]]
Tangent = Callable[Concatenate[Builder, tuple[Any, ...], Any, ...], Any]
Batch = Callable[Concatenate[Builder, Any, Extent, Sequence[bool], ...], Any]
Scalar = Callable[Concatenate[Emit, ...], Val]
Element = Callable[Concatenate[ElementSource, Any, ...], Val]
Segment = tuple[int | None, Sequence[Extent], Sequence[Extent], Sequence[int]]
Segments = Callable[Concatenate[Types, TensorType, ...], Sequence[Segment]]
Lift = Callable[Concatenate[Emit, ...], State]
Combine = Callable[Concatenate[Emit, State, State, ...], State]
Init = Callable[Concatenate[DType, ...], Sequence[tuple[Any, DType]]]
Finish = Callable[Concatenate[Emit, State, DType, ...], Val]


@dataclass(frozen=True, eq=False)
class OpDef:
    """One primitive op.  See docs/contributing/add_an_op.md for declarations of each sort.

    canon(types, attrs) -> attrs     normalised, complete, hashable attributes; raises the op's argument errors
    infer(*types, **attrs) -> type   result type, a TupleType where there are several; raises ShapeError / DTypeError.
                                     Shapes and dtypes never adapt here: promotion and broadcasting are the front end's,
                                     explicit in the IR
    reference(*arrays, **attrs)      meaning in NumPy; in float64 inside where that is more exact, rounded at the end;
                                     a tuple of arrays where there are several results.  That of CONTROL ops takes
                                     ``run`` first, see control.py
    vjp(b, g, out, *ins, **attrs)    cotangents, one per input (None where there is none), through builder ``b``; an
                                     entry may be a function without arguments, called only if that cotangent is wanted,
                                     or a ``Waiting`` one, which is not called while sums of such will do
    jvp(b, tangents, out, *ins, **attrs)
                                     the result's tangent from those of the inputs (None: zero), where forward_mode does
                                     not derive it from ``vjp``
    batch(b, op, size, batched, *ins, **attrs)
                                     the op for many examples at once, where batching.py does not derive it from the
                                     kind; see batching.py
    scalar(e, *xs, **attrs) -> Val   ELEMENTWISE: the meaning of one element, through emitter ``e``
    pairs(b, *xs, **attrs)           what the op is of complex numbers, as ops on their parts: complex operands and
                                     results are ``complex_pairs.Pair``.  None where it takes none.  Kinds that move
                                     elements as they are need none; see passes/split_complex.py
    element(g, index, **attrs)       VIEW, GATHER, CREATE: one output element through element source ``g``
                                     (g.load(k, index) is input k at an index, g.e the emitter, g.value(ix) an index
                                     as an int64 value, g.check_index(value, extent, what) a bounds-checked index);
                                     SEGMENT, where it may be computed as it is read: see g.inside
    segments(types, out, **attrs)    SEGMENT: [(input or None for fill, extents, offsets, steps)], see concat_pad.py
    lift/combine/init/finish         REDUCE and SCAN: state = lift(e, *xs, i); state = combine(e, s, t); init(dtype) are
                                     the identity's components, for the (wide) dtype of the first input; finish(e,
                                     state, dtype) is the result.  All take the op's attributes too, but for ``axes``
                                     and ``axis``.  All inputs have one shape.  ``i`` is the element's position; a
                                     REDUCE has it if NOWHERE is among its identity's components; see fold_rules.py
    later(e, s, t)                   REDUCE: ``combine`` where all of t's elements come after all of s's, if that takes
                                     fewer instructions
    contraction(types, attrs)        CONTRACT: which axes of the operands it multiplies and sums (contraction_dims.py)
    contracting(contraction)         CONTRACT: the attributes that say so, for operands whose axes lie otherwise; None
                                     where its attributes cannot
    lower(types, attrs) -> Lowering  SCAN, SORT, TRANSFORM, SCATTER, CONVOLVE, CONTROL: the building block that makes it
                                     (lowering.py)
    accumulates                      CONTROL: ``vjp`` also takes ``so_far``, what has come together for each input, or
                                     None, and ``wanted``, whether its cotangent is asked for; it returns totals
    calls_host                       CONTROL: it is a function in Python, which programs call
    effect                           the most that running it does besides making its results: nothing (the default),
                                     raising (where there is ``raises``), failing a check of a result that somebody
                                     reads (CHECKED), or an effect that a token puts in order
    raises(types, attrs) -> bool     whether running it may raise (never pruned then)
    numpy                            the NumPy function whose bits IEEE 754 (or two's complement) fixes to be the op's,
                                     for the dtypes that NumPy itself has
    shares_memory                    VIEW: the elements are the input's in the same row-major order, in its memory
    origin(x, **attrs)               VIEW: where in memory its first element lies, and the attributes of the same view
                                     from x's first element on; None where the two cannot be told apart
    internal                         True where no function of the front end writes it, but passes alone, so that no
                                     program of a file may hold it; or the names of the attributes of which that is so
    paired                           GATHER and SCATTER: there is an index for each element, not for whole slices
    facts                            algebra, true of every dtype's bits: commutative, associative, idempotent
                                     (f(x, x) = x, or f(f(x)) = f(x)), involution, identity=<number>,
                                     right_identity=<number>, absorbing=<number>, exact (the reference has the
                                     compiled kernel's bits);
                                     domain=((low, high), ...) an interval per input on which the op is smooth;
                                     bounds=<rule>, what numbers a result has, see value_ranges.py
    samples(rng, dtype)              [(arrays, attrs), ...] for tests and fuzzing, edge values included
    dtypes                           input dtypes that the samples may be asked for
    """

    name: str
    kind: Kind
    arity: int | None  # None: any number of inputs
    doc: str
    infer: Callable[..., TensorType]
    reference: Callable[..., np.ndarray]
    vjp: Derivative
    samples: Samples
    dtypes: tuple[DType, ...]
    canon: Canon | None = None
    jvp: Tangent | None = None
    batch: Batch | None = None
    scalar: Scalar | None = None
    pairs: Callable[..., Any] | None = None
    element: Element | None = None
    segments: Segments | None = None
    lift: Lift | None = None
    combine: Combine | None = None
    later: Combine | None = None
    init: Init | None = None
    finish: Finish | None = None
    contraction: Callable[[Types, Attrs], Contraction] | None = None
    contracting: Callable[[Contraction], dict[str, Any] | None] | None = None
    lower: Callable[[Types, Attrs], Lowering] | None = None
    accumulates: bool = False
    calls_host: bool = False
    effect: Effect = Effect.NONE
    raises: Callable[[Types, Attrs], bool] | None = None
    numpy: Callable[..., Any] | None = None
    shares_memory: bool = False
    origin: Callable[..., tuple[Extent, dict[str, Any]] | None] | None = None
    internal: bool | tuple[str, ...] = False
    paired: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def result(self, types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> Any:
        """The result type for canonical attributes.  Raises what ``infer`` raises, and ShapeError for a shape that
        no tensor may have."""
        result = self.infer(*types, **attrs)
        for known in types:
            if result is known:  # a type that there is already has a shape that may be
                return result
        for part in parts_of(result):
            fault = shape_fault(part.shape)
            if fault is not None:
                raise ShapeError(self.name, f"the result's shape {fault}")
        return result

    @functools.cached_property
    def numpy_chars(self) -> str:
        """The letters (``dtype.char``) of the arrays for which ``numpy`` is as good as the op; none of bfloat16 and
        what else is not NumPy's own."""
        known = () if self.numpy is None else self.dtypes
        chars = "?bBhHiIlLqQefd"
        return "".join(char for char in chars if np.dtype(char) in known)

    def may_raise(self, types: tuple[TensorType, ...], attrs: Mapping[str, Any]) -> bool:
        return self.raises is not None and self.raises(types, attrs)


TABLE: dict[str, OpDef] = {}

# The fields without which an op of a kind could not be lowered.
_REQUIRED: dict[Kind, tuple[str, ...]] = {
    Kind.ELEMENTWISE: ("scalar",),
    Kind.REDUCE: ("lift", "combine", "init", "finish"),
    Kind.SCAN: ("lift", "combine", "init", "finish", "lower"),
    Kind.VIEW: ("element", "batch"),
    Kind.SEGMENT: ("segments", "batch"),
    Kind.GATHER: ("element", "raises", "batch"),
    Kind.SEARCH: ("element", "batch"),
    Kind.SPARSE: ("element", "batch"),
    Kind.SCATTER: ("raises", "lower"),
    Kind.CREATE: ("element",),
    Kind.CONTRACT: ("contraction", "contracting"),
    Kind.CONVOLVE: ("lower", "batch"),
    Kind.SORT: ("lower",),
    Kind.TRANSFORM: ("lower", "batch"),
    Kind.PROJECT: (),
    Kind.CONTROL: ("canon", "lower"),
    Kind.COLLECTIVE: ("canon", "batch"),
}


_OPTIONAL: dict[Kind, tuple[str, ...]] = {Kind.SEGMENT: ("element",), Kind.REDUCE: ("later",)}

# Those of them that mean something to these kinds alone.
_OF_KINDS = {field for fields in _REQUIRED.values() for field in fields} - {"batch", "canon", "raises"}

_FACTS = {
    *("absorbing", "associative", "bounds", "commutative", "domain", "exact"),
    *("idempotent", "identity", "involution", "right_identity"),
}


def _faults(op: OpDef) -> Iterator[str]:
    """What a declaration lacks, or has and nobody would look at."""
    missing = [field for field in _REQUIRED[op.kind] if getattr(op, field) is None]
    missing += ["vjp (or NOT_DIFFERENTIABLE)"] * (op.vjp is None) + ["doc"] * (not op.doc.strip())
    if missing:
        yield f"lacks {', '.join(missing)}"
    known = (*_REQUIRED[op.kind], *_OPTIONAL.get(op.kind, ()))
    surplus = [f for f in sorted(_OF_KINDS) if getattr(op, f) is not None and f not in known]
    surplus += ["jvp"] * (op.jvp is not None and op.vjp is NOT_DIFFERENTIABLE)
    surplus += [f"the fact {fact!r}" for fact in sorted(set(op.facts) - _FACTS)]
    if surplus:
        yield f"has no use for {', '.join(surplus)}"


def define(name: str, kind: Kind, arity: int | None, **fields: Any) -> OpDef:
    """Add an op to the table.  A declaration that is repeated, lacks something, or says something that nobody would
    look at fails at import, naming it."""
    if name in TABLE:
        raise ValueError(f"[ops] {name} is declared twice")
    if fields.get("raises") is not None:
        fields.setdefault("effect", Effect.RAISES)
    op = OpDef(name, kind, arity, **fields)
    for fault in _faults(op):
        raise ValueError(f"[ops] {name} ({kind.value}) {fault}")
    TABLE[name] = op
    return op
