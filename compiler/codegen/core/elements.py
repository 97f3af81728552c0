"""One element (or one vector of neighbouring elements) of a node, inside a loop body.

``Elements`` is the element source ``g`` of ``ops.op_table.OpDef.element``: it evaluates what a body needs, once each,
by loading it where it lies in memory and otherwise by running the op's own rule on its inputs' elements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.shuffles import pick_lanes, spread
from hybridflow.compiler.index.index_expr import (
    ComputedAtom,
    Index,
    IndexExpr,
    LoopVar,
    Quotient,
    Remainder,
    as_index,
    atom_depends,
    computed,
)
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Literal, Node
from hybridflow.compiler.ir.types import Dim, Extent, TensorType
from hybridflow.compiler.loops.tuning import FAR_AWAY, MAX_STRIDED_LOAD, MAX_STRIDED_STORE, VECTOR_BYTES
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.emitter_protocol import ElementSource
from hybridflow.compiler.program import Check


class MemoryPlace:
    """Where values lie: a pointer, and the position of the current element in it (None: the element's own)."""

    __slots__ = ("pointer", "position")

    def __init__(self, pointer: str, position: IndexExpr | None = None) -> None:
        self.pointer, self.position = pointer, position


class Known(NamedTuple):
    """Counters that loops further out have set, and sums of the terms that depend on these alone, by the terms."""

    counters: Mapping[LoopVar, Ref]
    sums: Mapping[IndexExpr, Ref]


_NOTHING = Known({}, {})


class Elements:
    """Values at the current turn of the loops.

    ``counters`` maps loop variables to their i64 operands; ``lane_var`` is the loop whose neighbours make up a vector
    (None for scalar code); ``places`` the nodes that are read from memory; ``given`` values that are already there;
    ``turned`` the addresses of vectors that were prepared (see ``tiles``), by pointer and position; ``known`` what need
    not be computed here.  Where ``some`` is not so, no lane has an element, and no position means anything.
    """

    def __init__(
        self,
        code: KernelBuilder,
        counters: dict[LoopVar, Ref],
        lane_var: LoopVar | None,
        places: dict[Node, MemoryPlace],
        values: dict[Node, Val],
        mask: Val | None = None,
        transposed: Mapping[tuple[str, IndexExpr], str] | None = None,
        known: Known = _NOTHING,
        some: str | bool = True,
    ) -> None:
        self.code, self.e, self.known = code, code.e, known
        self.counters, self.lane_var, self.places, self.given, self.mask = counters, lane_var, places, values, mask
        self.transposed, self.some = transposed or {}, some
        # Whether lanes that are off may be far from the array: a masked load takes processors a microsecond where all
        # lanes are off and there is no memory at all.
        self.is_far = False
        self.are_there = False  # whether the axes that indices are looked up in have elements for certain
        self._values: dict[tuple[Node, IndexExpr], Val] = {}
        self._refs: dict[IndexExpr, Ref] = {}

    # Values.

    def value(self, node: Node, index: Index) -> Val:
        """The node's element at ``index``, in each lane."""
        value = self.given.get(node)
        if value is not None:
            return self.e.extract(value, 0) if self.e.width == 1 else self.e.splat(value)
        key = (node, index.linear)
        result = self._values.get(key)
        if result is None:
            place = self.places.get(node)
            if place is not None:
                position = index.linear if place.position is None else place.position
                result = self.load(place.pointer, node.dtype, position)
            elif node.op.kind is Kind.ELEMENTWISE:
                values = [self.value(source, index) for source in node.inputs]
                self.e.mask = self.mask  # lanes without an element fail no check
                result = apply_scalar(self.e, node, values)
            else:
                self.e.at(node)
                self.e.mask = self.mask
                source: ElementSource = _Source(self, node)
                result = self.e.convert(node.op.element(source, index, **node.attrs), node.dtype)
            self._values[key] = result
        return result

    # Memory.

    def load(self, pointer: str, dtype: np.dtype, position: IndexExpr) -> Val:
        e = self.e
        lane = self.lane_var
        if (pointer, position) in self.transposed:
            return e.load(self.transposed[pointer, position], dtype)
        looked_up = [extent for extent in position.gathered if extent == 0 or isinstance(extent, Dim)]
        if looked_up and not self.are_there:
            return self._load_gathered(pointer, dtype, position, looked_up)
        if lane is not None and not position.depends_on(lane):
            lane = None
        if self.some is not True and (e.width == 1 or lane is None):
            return self._load_if_some(pointer, dtype, position)
        if lane is None or (e.width == 1 and self.mask is None):
            return e.load_splat(self.code.at(pointer, self.ref(position), dtype.itemsize), dtype)
        stride = position.coefficient(lane)
        if stride == 1 or e.width == 1:
            at = self.code.at(pointer, self.ref(position), dtype.itemsize)
            if self.is_far and self.mask is not None and e.width > 1:
                at = self.code.choose_pointer(e.any(self.mask), at, pointer)
            return e.load(at, dtype, self.mask, self._alignment(position, dtype))
        if stride == -1:
            first = self.code.sub(self.ref(position), e.width - 1)
            mask = None if self.mask is None else e.reverse(self.mask)
            return e.reverse(e.load(self.code.at(pointer, first, dtype.itemsize), dtype, mask))
        if apart := self._stride_of(position, lane, self.mask is not None, MAX_STRIDED_LOAD):
            return self._load_strided(pointer, dtype, position, apart)
        return e.gather(pointer, dtype, self.lanes(position), self.mask)

    def _stride_of(self, position: IndexExpr, lane: LoopVar, masked: bool, most: int) -> int:
        """How many elements lie from one lane to the next, where reading, or writing, whole vectors with all that lies
        between is quicker than lanes one by one; else 0.  A mask keeps what is behind the last lane untouched."""
        target, stride = self.e.target, position.coefficient(lane)
        possible = target.kind == "cpu" and (target.masked or not masked)
        return stride if possible and stride is not None and 2 <= abs(stride) <= most else 0

    def _load_strided(self, pointer: str, dtype: np.dtype, position: IndexExpr, stride: int) -> Val:
        """Lanes ``stride`` apart: vectors of what lies there, from which they are picked."""
        e, code, step, width = self.e, self.code, abs(stride), self.e.width
        stored = dt.uint8 if dt.is_bool(dtype) else dtype
        first, mask = self.ref(position), self.mask
        if stride < 0:
            first = code.sub(first, (width - 1) * step)
            mask = None if mask is None else e.reverse(mask)
        begins = [k * width for k in range(step)]
        if mask is None:
            most = (width - 1) * step + 1 - width  # ends with the last lane: behind that there may be nothing
            begins = [min(begin, most) for begin in begins]
        masks = [None if mask is None else spread(e, mask, step, k) for k in range(step)]
        vectors = [
            e.load(code.at(pointer, code.add(first, begin), stored.itemsize), stored, active)
            for begin, active in zip(begins, masks)
        ]
        sources = [(at // width, at - begins[at // width]) for at in range(0, step * width, step)]
        value = pick_lanes(e, vectors, sources if stride > 0 else sources[::-1])
        return e.ne(value, 0) if dt.is_bool(dtype) else value

    def _store_strided(self, value: Val, pointer: str, position: IndexExpr, stride: int) -> None:
        """Lanes ``stride`` apart, into vectors of which nothing else is written."""
        e, code, step, width = self.e, self.code, abs(stride), self.e.width
        value = e.convert(value, dt.uint8) if dt.is_bool(value.dtype) else value
        first, mask = self.ref(position), self.mask
        if stride < 0:
            first, value = code.sub(first, (width - 1) * step), e.reverse(value)
            mask = None if mask is None else e.reverse(mask)
        for k in range(step):
            vector = e.shuffle(value, None, [(k * width + lane) // step for lane in range(width)])
            at = code.at(pointer, code.add(first, k * width), value.dtype.itemsize)
            e.store(vector, at, spread(e, mask, step, k))

    def _load_gathered(self, pointer: str, dtype: np.dtype, position: IndexExpr, extents: list[Extent]) -> Val:
        """A load at indices into axes that may have no element, in which no index is harmless: of them all something
        else is read, which has one."""
        e, code = self.e, self.code
        if 0 in extents:
            return e.zero(dtype)
        some: str | bool = True
        for extent in extents:
            some = code.both(some, code.compare("ne", code.extent(extent), 0))
        pointer = code.choose_pointer(some, pointer, e.table(np.zeros(16, np.uint8), "nothing"))
        if self.lane_var is None or (e.width == 1 and self.mask is None):
            return e.load_splat(code.at(pointer, code.choose(some, self.ref(position), 0), dtype.itemsize), dtype)
        if position.coefficient(self.lane_var) == 1:
            everywhere = e.splat(Val(str(some), dt.bool_, 1))
            mask = everywhere if self.mask is None else e.and_(self.mask, everywhere)
            return e.load(code.at(pointer, self.ref(position), dtype.itemsize), dtype, mask)
        everything = e.splat(code.value(code.choose(some, -1, 0)))
        return e.gather(pointer, dtype, e.and_(self.lanes(position), everything), self.mask)

    def _load_if_some(self, pointer: str, dtype: np.dtype, position: IndexExpr) -> Val:
        e, code, some = self.e, self.code, self.some
        if e.width == 1 and self.mask is not None:
            some = code.both(some, self.mask.ref)
        pointer = code.choose_pointer(some, pointer, e.table(np.zeros(16, np.uint8), "nothing"))
        return e.load_splat(code.at(pointer, code.choose(some, self.ref(position), 0), dtype.itemsize), dtype)

    def inside(
        self, node: Node, index: Index, where: Sequence[tuple[IndexExpr, Extent]], otherwise: Val, is_far: bool = False
    ) -> Val:
        """The node's element at ``index`` in the lanes where each expression is at least 0 and below its extent."""
        e, code = self.e, self.code
        some, lanes = self.some, self.mask
        chosen: Val | None = None
        for ix, extent in where:
            if e.width == 1 or self.lane_var is None or not ix.depends_on(self.lane_var):
                at = self.ref(ix)
                some = code.both(
                    some, code.both(code.compare("sge", at, 0), code.compare("slt", at, code.extent(extent)))
                )
                continue
            end = e.convert(e.splat(code.value(code.extent(extent))), dt.uint64)
            within = e.lt(e.convert(self.lanes(ix), dt.uint64), end)  # what is negative is a large number, too
            chosen = within if chosen is None else e.and_(chosen, within)
        if some is False:
            return otherwise
        if some is not True:
            everywhere = e.splat(Val(some, dt.bool_, 1))
            chosen = everywhere if chosen is None else e.and_(chosen, everywhere)
        if chosen is not None and e.width > 1:
            lanes = chosen if lanes is None else e.and_(lanes, chosen)
        part = Elements(code, self.counters, self.lane_var, self.places, self.given, lanes, known=self.known, some=some)
        part.is_far = is_far or self.is_far
        value = part.value(node, index)
        return value if chosen is None else e.select(chosen, value, otherwise)

    def store(self, value: Val, pointer: str, position: IndexExpr) -> None:
        e = self.e
        if e.width == 1 or self.lane_var is None or position.coefficient(self.lane_var) == 1:
            at = self.code.at(pointer, self.ref(position), value.dtype.itemsize)
            e.store(value, at, self.mask, self._alignment(position, value.dtype), pointer)
        elif apart := self._stride_of(position, self.lane_var, True, MAX_STRIDED_STORE):
            self._store_strided(value, pointer, position, apart)
        else:
            e.scatter(value, pointer, self.lanes(position), self.mask)

    def _alignment(self, position: IndexExpr, dtype: np.dtype) -> int | None:
        """Bytes of which the address of a vector is a multiple, where more is known than that of an element: on a GPU
        vectors are computed at multiples of their width, in buffers that begin where vectors may."""
        e = self.e
        if e.target.kind != "cuda" or e.width == 1:
            return None
        if any(factor % e.width for (atom, _), factor in position.terms if atom is not self.lane_var):
            return None
        return min(e.width * dtype.itemsize, VECTOR_BYTES)

    # Index expressions as operands.

    def ref(self, ix: IndexExpr) -> Ref:
        """The expression's value as an i64 operand: of the first lane, where lanes differ."""
        result = self._refs.get(ix)
        if result is None:
            code = self.code
            head = within(ix, self.known.counters) if self.known.sums else ix
            result = self.known.sums.get(head, 0)
            terms = ix.terms - head.terms if head in self.known.sums else ix.terms
            for (atom, names), factor in sorted(terms, key=_written_first):
                part: Ref = factor
                for name in names:
                    part = code.mul(part, code.name(name))
                if isinstance(atom, LoopVar):
                    part = code.mul(part, self.counters[atom])
                elif isinstance(atom, Quotient):
                    part = code.mul(part, code.div(self.ref(atom.value), self._divisor(atom)))
                elif isinstance(atom, Remainder):
                    part = code.mul(part, code.rem(self.ref(atom.value), self._divisor(atom)))
                elif isinstance(atom, ComputedAtom):
                    part = code.mul(part, self.e.extract(atom.value, 0).ref)
                result = code.add(result, part)
            self._refs[ix] = result
        return result

    def lanes(self, ix: IndexExpr) -> Val:
        """The expression's value in each lane, as int64."""
        e, lane = self.e, self.lane_var
        if e.width == 1 or lane is None or not ix.depends_on(lane):
            return e.splat(self.code.value(self.ref(ix)))
        fixed = {term: factor for term, factor in ix.terms if not atom_depends(term[0], lane)}
        total = e.splat(self.code.value(self.ref(IndexExpr(fixed))))
        for (atom, names), factor in sorted(ix.terms, key=_written_first):
            if not atom_depends(atom, lane):
                continue
            if isinstance(atom, LoopVar):
                part = e.add(e.splat(self.code.value(self.counters[atom])), e.iota())
            elif isinstance(atom, (Quotient, Remainder)):
                part = self._divided(atom)
            else:
                part = e.splat(atom.value)
            scale: Ref = factor
            for name in names:
                scale = self.code.mul(scale, self.code.name(name))
            if scale != 1:
                part = e.mul(part, e.splat(self.code.value(scale)))
            total = e.add(total, part)
        return total

    def _divisor(self, atom: Quotient | Remainder) -> Ref:
        """At least 1: where an extent is 0 no loop turns, but an index may be looked up in an empty axis, or lie in
        something else that is filled."""
        divisor = self.code.extent(atom.divisor)
        unsure = atom.value.gathered or self.some is not True or self.mask is not None
        return self.code.max(divisor, 1) if unsure else divisor

    def _divided(self, atom: Quotient | Remainder) -> Val:
        e = self.e
        unsigned = e.convert(self.lanes(atom.value), dt.uint64)  # never negative, and unsigned division is simpler
        divisor = e.splat(self.code.value(self._divisor(atom)))
        divide = e.idiv if isinstance(atom, Quotient) else e.irem
        return e.convert(divide(unsigned, e.convert(divisor, dt.uint64)), dt.int64)


def within(ix: IndexExpr, vars: Container[LoopVar]) -> IndexExpr:
    """The terms of an expression that depend on nothing but some loops."""
    return IndexExpr({term: factor for term, factor in ix.terms if _set_by(term[0], vars)})


def _set_by(atom: Any, vars: Container[LoopVar]) -> bool:
    if isinstance(atom, (Quotient, Remainder)):
        return all(_set_by(inner, vars) for inner in atom.value.atoms)
    return atom is None or (isinstance(atom, LoopVar) and atom in vars)


def _written_first(term: Any) -> tuple[int, str, tuple[str, ...]]:
    """A fixed order of an expression's terms, so that the same program always gives the same text."""
    (atom, names), factor = term
    return abs(factor), _spell_atoms(atom), tuple(map(str, names))


def _spell_atoms(atom: Any) -> str:
    """A text for each atom of an expression, the same in every process: equal factors do not make atoms equal."""
    name = type(atom).__name__
    if isinstance(atom, (Quotient, Remainder)):
        return f"{name} {sorted(map(_written_first, atom.value.terms))} {atom.divisor}"
    if isinstance(atom, ComputedAtom):
        return f"{name} {atom.value.ref}"
    return name + getattr(atom, "name", "")


def apply_scalar(e: Emitter, node: Node, values: list[Val]) -> Val:
    """The op's scalar meaning: narrow floats are computed in float32 and rounded once, at the op's end."""
    e.at(node)
    widened = [e.convert(v, dt.compute_dtype(v.dtype)) for v in values]
    return e.convert(node.op.scalar(e, *widened, **node.attrs), node.dtype)


class _Source:
    """The view of ``Elements`` that one node's ``element`` rule sees."""

    __slots__ = ("elements", "node", "read")

    def __init__(self, elements: Elements, node: Node) -> None:
        self.elements, self.node = elements, node
        self.read: dict[str, Index] = {}  # where each value lies

    @property
    def e(self) -> Emitter:
        return self.elements.e

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple(n.type for n in self.node.inputs)

    @property
    def out(self) -> TensorType:
        return self.node.type

    def load(self, k: int, index: Any) -> Val:
        source = self.node.inputs[k]
        if not isinstance(index, Index):
            index = Index(source.shape, axes=tuple(as_index(ix) for ix in index))
        return self._value(source, index)

    def load_linear(self, k: int, position: IndexExpr) -> Val:
        source = self.node.inputs[k]
        return self._value(source, Index(source.shape, linear=position))

    def _value(self, source: Node, index: Index) -> Val:
        value = self.elements.value(source, index)
        self.read[value.ref] = index
        self.e.at(self.node)  # as it was before the source's rule ran
        self.e.mask = self.elements.mask
        return value

    def inside(self, k: int, index: Any, where: Sequence[tuple[IndexExpr, Extent]], otherwise: Any) -> Val:
        source, e = self.node.inputs[k], self.e
        fill = e.splat(e.const(otherwise, source.dtype, 1))
        at, is_far = Index(source.shape, axes=tuple(map(as_index, index))), _reaches_far(source.type, self.node.type)
        value = self.elements.inside(source, at, where, fill, is_far)
        e.at(self.node)
        e.mask = self.elements.mask
        return value

    def linear(self, index: Index) -> IndexExpr:
        return index.linear

    def value(self, ix: IndexExpr | Extent) -> Val:
        return self.elements.lanes(as_index(ix))

    def begin(self, ix: IndexExpr, multiple: int) -> Val | None:
        elements = self.elements
        lane = elements.lane_var
        if lane is None or self.e.width == 1 or self.e.width % multiple or ix.coefficient(lane) != 1:
            return None
        return self.e.convert(elements.code.value(elements.ref(ix)), dt.uint64)

    def literal(self, value: Literal, index: Index) -> Val:
        array = value.array.ravel()
        if array.size == 1:
            return self.e.const(array[0], value.type.dtype)
        stored = array.astype(np.uint8) if dt.is_bool(array.dtype) else array
        name = f"{dt.SHORT[value.type.dtype]}_{hashlib.blake2b(value.data, digest_size=8).hexdigest()}"
        return self.elements.load(self.e.table(stored, name), value.type.dtype, index.linear)

    def sure(self, value: Val, extent: Extent) -> IndexExpr:
        return computed(value, extent)

    def repeat_while(
        self, start: Sequence[Val], iteration: Callable[..., Sequence[Val]], again: Callable[..., Val]
    ) -> Sequence[Val]:
        """What a turn computes is known behind the loop, whose first turn always runs."""
        e = self.e
        inside, after, before = e.new_label("inside"), e.new_label("after"), e.block
        e.branch(inside)
        e.label(inside)
        place = len(e.lines)
        values = iteration(*[e.phi((v, before)) for v in start])
        e.branch_if(e.any(again(*values)), inside, after)
        for k, v in enumerate(values):
            e.lines[place + k] += f", [ {v.ref}, %{e.block} ]"
        e.label(after)
        return values

    def fold(
        self,
        first: Val,
        last: Val,
        extent: Extent,
        of: Extent,
        start: Val,
        add: Callable[[IndexExpr, Val], Val],
        by_position: bool = False,
    ) -> Val:
        """A loop for all lanes where they begin and end as one.  Else each has its positions, until the last is done;
        or, where nothing else tells them apart, a loop of its own: to gather takes most processors longer."""
        e, code, elements = self.e, self.elements.code, self.elements
        known = dict(elements._values), dict(elements._refs)

        def fold_lane(lane: int) -> Val:
            """The fold of one lane, known in all of them."""
            alike = e.width > 1
            begin, behind = (e.convert(e.extract(v, lane) if alike else v, dt.int64).ref for v in (first, last))
            end_ = code.min(behind, code.extent(extent))
            if isinstance(of, Dim):
                end_ = code.choose(code.compare("ne", code.extent(of), 0), end_, 0)
            before, elements.are_there = elements.are_there, True
            with code.loop(code.max(begin, 0), end_, carry=(start,)) as loop:
                loop.next = [add(computed(code.value(loop.index), extent, alike), loop.carried[0])]
            elements.are_there = before
            elements._values, elements._refs = dict(known[0]), dict(known[1])
            return loop.carried[0]

        if e.width == 1 or (self._alike(first) and self._alike(last)):
            total = fold_lane(0)
        elif by_position and not e.target.masked:
            total = fold_lane(0)
            for lane in range(1, e.width):
                total = e.shuffle(total, fold_lane(lane), [*range(lane), e.width + lane, *range(lane + 1, e.width)])
        else:
            end = e.minimum(e.convert(last, dt.int64), e.splat(code.value(code.extent(extent))))

            def iteration(position: Val, total: Val) -> list[Val]:
                active = e.lt(position, end)
                there = computed(e.select(active, position, 0), extent)
                return [e.add(position, 1), e.select(active, add(there, total), total)]

            begin_ = e.maximum(e.convert(first, dt.int64), 0)
            _, total = self.repeat_while([begin_, start], iteration, lambda position, total: e.lt(position, end))
        elements._values, elements._refs = known  # what a turn has computed is known in that turn alone
        return total

    def clamp(self, value: Val, extent: Extent) -> IndexExpr:
        e, code, alike = self.e, self.elements.code, self._alike(value)
        with code.width(1 if alike else e.width):
            last = e.splat(code.value(code.sub(code.extent(extent), 1)))
            raw = e.convert(e.extract(value, 0) if alike else value, dt.int64)
            return computed(e.maximum(e.minimum(raw, last), 0), extent, alike)

    def _alike(self, value: Val) -> bool:
        """Whether a value was read where all of several lanes read."""
        lane, place = self.elements.lane_var, self.read.get(value.ref)
        return self.e.width > 1 and lane is not None and place is not None and not place.linear.depends_on(lane)

    def check_index(self, value: Val, extent: Extent, check: Check) -> IndexExpr:
        """An index read from a tensor: wrapped once when negative; recorded, and made harmless, when out of range."""
        e, code, alike = self.e, self.elements.code, self._alike(value)
        width = 1 if alike else e.width
        with code.width(width):
            bound = e.splat(code.value(code.extent(extent)))
            raw = e.convert(e.extract(value, 0) if alike else value, dt.int64)
            wrapped = e.select(e.lt(raw, 0), e.add(raw, bound), raw)
            # What is still negative is a large number without a sign.
            outside = e.ge(e.convert(wrapped, dt.uint64), e.convert(bound, dt.uint64))
        e.raise_if(outside if e.mask is None else e.splat(outside), check)
        with code.width(width):
            return computed(e.select(outside, e.const(0, dt.int64), wrapped), extent, alike)


def _reaches_far(source: TensorType, padded: TensorType) -> bool:
    """Whether positions of a padded array may mean places that are far from what it is made of."""
    if not (source.is_static and padded.is_static):
        return True
    beyond, stride = 0, source.dtype.itemsize
    for extent, whole in zip(reversed(source.shape), reversed(padded.shape)):
        beyond, stride = max(beyond, (whole - extent) * stride), stride * extent
    return beyond > FAR_AWAY
