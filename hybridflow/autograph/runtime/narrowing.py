"""Which options of a choice are left where the running code is: conditions around it have decided about some.

``if found is not None`` leaves no ``None`` in its block.  Where a name was bound under a condition it has its value in
other blocks under the same condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hybridflow.array import elementwise
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.choices import Choice, is_choice
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.undo_log import enclosing_branches, innermost_branch
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import Kind
from hybridflow.core.tensor import Tensor
from hybridflow.tracing.symbolic_number import number_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

_DEPTH = 8
_PURE = (Kind.ELEMENTWISE, Kind.VIEW, Kind.CREATE, Kind.REDUCE)


class Fact:
    """A condition, and which options of choices (by the ids of the nodes of their codes) it leaves if it is true, and
    if it is false."""

    __slots__ = ("left", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Node] = []  # kept alive, for ids stand for them
        self.left: tuple[dict[int, frozenset[int]], dict[int, frozenset[int]]] = {}, {}

    def add(self, code: Node, if_true: frozenset[int], if_false: frozenset[int]) -> None:
        self.nodes.append(code)
        for left, ways in zip(self.left, (if_true, if_false)):
            left[id(code)] = left.get(id(code), ways) & ways


def note(pred: Tensor, code: Tensor, if_true: Iterable[int], if_false: Iterable[int]) -> None:
    """A condition decides which options of the choice that has this code are left."""
    if isinstance(pred, SymbolicTensor) and isinstance(code, SymbolicTensor):
        fact = active.facts.setdefault(_key(pred._node), Fact())
        fact.nodes.append(pred._node)
        fact.add(code._node, frozenset(if_true), frozenset(if_false))


def note_choices(pred: Tensor, choices: Iterable[Any]) -> None:
    """What a condition says of choices that were made of its two sides."""
    for one in choices:
        if one.made is not None:
            note(pred, one.made.code, *one.ways)


def note_meaning(value: object, is_and: bool, first: Tensor, second: object) -> None:
    """``value`` is ``first and second``; or it is false only where ``first`` holds and ``second`` does not."""
    if isinstance(value, SymbolicTensor) and isinstance(first, SymbolicTensor):
        parts = [(first._node, True)]
        if isinstance(second, SymbolicTensor):
            parts.append((second._node, is_and))
        active.meanings[id(value._node)] = value._node, is_and, parts


def _implied_conditions(node: Node, truth: bool) -> Iterator[tuple[Node, bool]]:
    """What follows from a condition being so, itself included."""
    yield node, truth
    name = node.op.name
    if name == "logical_not":
        yield from _implied_conditions(node.inputs[0], not truth)
    elif name in ("logical_and", "logical_or") and truth is (name == "logical_and"):
        for part in node.inputs:
            yield from _implied_conditions(part, truth)
    meaning = active.meanings.get(id(node))
    if meaning is not None and meaning[1] is truth:
        for part, value in meaning[2]:
            yield from _implied_conditions(part, value)


def _key(node: Node, depth: int = _DEPTH) -> Any:
    """What is the same for conditions that are computed alike."""
    if node.is_parameter or node.op.kind not in _PURE or depth == 0 or node.may_raise:
        return id(node)
    attrs = tuple(sorted((name, repr(value)) for name, value in node.attrs.items()))
    if any(isinstance(value, Graph) for value in node.attrs.values()):
        return id(node)
    return node.op.name, attrs, str(node.type), *(_key(part, depth - 1) for part in node.inputs)


def remaining_options(choice: Choice, within: Sequence[Branch] = ()) -> list[int]:
    """The numbers of the options that are left where the running code is, or was in these sides; all of them where that
    is none: such code never runs."""
    code: object = choice.code
    all_of_them = frozenset(range(len(choice.options)))
    if not isinstance(code, SymbolicTensor):
        return sorted(all_of_them)
    remaining, key = all_of_them & active.known.get(id(code._node), all_of_them), id(code._node)
    for side in (*within, *enclosing_branches()):
        remaining &= side.known.get(key, all_of_them)
        if side.condition is not None and active.facts:
            for node, truth in _implied_conditions(*side.condition):
                fact = active.facts.get(_key(node))
                if fact is not None:
                    remaining &= fact.left[not truth].get(key, all_of_them)
    return sorted(remaining or all_of_them)


def narrow(value: object, within: Sequence[Branch] = ()) -> Any:
    """The one option that is left of a choice, or the choice; of those in tuples, too."""
    if not active.chosen:
        return value
    if type(value) is tuple:
        parts = [narrow(part, within) for part in value]
        return value if all(one is other for one, other in zip(parts, value)) else tuple(parts)
    if not is_choice(value) or value.is_awaited:
        return value
    left = remaining_options(value, within)
    return value.options[left[0]] if len(left) == 1 else value


def exclude(choice: Choice, number: int) -> None:
    """From now on where the code runs it is not this option."""
    code, side = choice.code, innermost_branch()
    assert isinstance(code, SymbolicTensor)
    known = active.known if side is None else side.known
    key = id(code._node)
    active.alive.append(code._node)
    known[key] = known.get(key, frozenset(range(len(choice.options)))) - {number}


def is_one_of(choice: Choice, numbers: Iterable[int]) -> Any:
    """Whether a choice is one of these options: a bool, or a number of Python's that the tensor decides about."""
    left, wanted = remaining_options(choice), frozenset(numbers)
    if all(k in wanted for k in left):
        return True
    if not any(k in wanted for k in left):
        return False
    shorter, is_in = (wanted, True) if len(wanted) * 2 <= len(choice.options) else (frozenset(left) - wanted, False)
    result: Any = None
    for k in sorted(shorter & frozenset(left)):
        one = elementwise.equal(choice.code, k) if is_in else elementwise.not_equal(choice.code, k)
        result = one if result is None else (elementwise.logical_or if is_in else elementwise.logical_and)(result, one)
    note(result, choice.code, wanted, frozenset(range(len(choice.options))) - wanted)
    return number_of(result)
