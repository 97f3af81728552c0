"""Guards as native code runs them: steps, put together in groups that are passed over while nothing has changed.

A group is what steps read of one owner: the attributes of an instance and of its class ("object"), those of its class
alone ("class"), the attributes of a class ("type"), the items of a dict ("dict").  A step belongs to one if its outcome
follows from what the owner and its class hold, or from what never changes: items of a tuple, the bits of a number.
CPython counts changes of dicts and classes (see ``versions``): while its owner has the tags that it had when all steps
of a group passed, they pass again, and find the values that they found.  What else is read of these values has steps
of its own, or is the owner of another group.  So a layer with fifty attributes takes two comparisons.

Groups say nothing that the steps do not say: where no tags can be relied on there are none, and ``steps`` runs without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hybridflow.runtime.calls.guard_steps import CHECK, HAS_OWNER, READ, GuardStep, checked
from hybridflow.runtime.native import object_layout, version_tags
from hybridflow.runtime.native.records import GROUP, GUARDS, MEMO, STEP, Writer

MODES = ("object", "dict", "class", "type")
WITH_DICT = 2  # of them, the first
NAMED_ITEM = len(READ)  # an "item" whose key is a text
BEGIN = {mode: NAMED_ITEM + 1 + k for k, mode in enumerate(MODES)}
END = {mode: code + len(MODES) for mode, code in BEGIN.items()}
LEAST = 3  # steps of a group that compares no MRO
_NEVER = -1  # no tag

Owner = tuple[str, int]  # a mode, and the step whose value is the owner


class GuardProgram:
    """Steps (see ``steps``), as a record for native code; it keeps alive what they point to.  Native code leaves in the
    record what it found.  Raises ArgumentError for a step that means nothing."""

    __slots__ = ("__weakref__", "_record", "groups", "steps")

    def __init__(self, steps: Sequence[GuardStep]) -> None:
        self.steps = checked(steps)
        self.groups = groups(self.steps) if version_tags.tracks_changes() else {}
        self._record = self._packed()

    @property
    def address(self) -> int:
        """Where the record lies."""
        return id(self._record) + object_layout.BYTES_DATA

    @property
    def checks(self) -> int:
        """What native code looks at while nothing changes: groups, and the steps of none."""
        return len(self.groups) + len(self.steps) - sum(map(len, self.groups.values()))

    def _packed(self) -> bytes:
        slots = self._slots()
        writer = Writer(GUARDS)
        around = {}  # the groups' own words, by owner
        for group, members in self.groups.items():
            filled = [slots[k] for k in members if k in slots]
            memo = MEMO.in_order(dict.fromkeys(MEMO.names, _NEVER)) + [0] * len(filled)
            around[group] = {
                "owner": slots[group[1]],
                "skipped": len(members),
                "memo": writer.section(memo),
                "first": min(filled, default=0),
                "count": len(filled),
            }
        words: list[int] = []
        count = 0
        for entry in self._in_order():
            count += 1
            if isinstance(entry, int):
                words += self._step_words(entry, slots)
            else:
                codes, owner = entry
                words += GROUP.in_order({"read": codes[owner[0]], **around[owner]})
        return writer.pack(count=count, slots=len(slots), steps=writer.section(words))

    def _in_order(self) -> Iterator[int | tuple[dict[str, int], Owner]]:
        """Steps in the order in which native code takes them, with what begins and ends groups."""
        of_step = {k: owner for owner, members in self.groups.items() for k in members}
        for k in range(len(self.steps)):
            owner = of_step.get(k)
            if owner is None:
                yield k
            elif k == self.groups[owner][0]:
                yield BEGIN, owner
                yield from self.groups[owner]
                yield END, owner

    def _slots(self) -> dict[int, int]:
        """The slots of the steps whose values others need."""
        needed = {step.owner for step in self.steps if step.read in HAS_OWNER}
        needed |= {step.expected for step in self.steps if step.check == "same"}
        needed |= {owner for _, owner in self.groups}
        filled = [k for k in self._in_order() if isinstance(k, int) and k in needed]
        return {k: slot for slot, k in enumerate(filled)}

    def _step_words(self, k: int, slots: dict[int, int]) -> list[int]:
        step = self.steps[k]
        named = step.read == "item" and type(step.operand) is str
        expected: Any = step.expected
        if step.check != "length":
            expected = slots[expected] if step.check == "same" else id(expected)
        return STEP.in_order(
            {
                "read": NAMED_ITEM if named else READ[step.read],
                "owner": slots[step.owner] if step.read in HAS_OWNER else 0,
                "operand": step.operand if step.read == "index" else id(step.operand),
                "check": CHECK[step.check],
                "expected": expected,
                "slot": slots.get(k, -1),
            }
        )


def groups(steps: Sequence[GuardStep]) -> dict[Owner, list[int]]:
    """The steps of each group, by owner, in their order.  A group's steps come where its first one is: they run no code
    of the user's, so nobody sees that they come earlier."""
    owners: list[Owner | None] = []
    for step in steps:
        owners.append(_owner(step, steps, owners) if _is_settled(step) else None)
    by_owner: dict[Owner, list[int]] = {}
    for k, owner in enumerate(owners):
        if owner is not None:
            by_owner.setdefault(owner, []).append(k)
    result = {}
    for (mode, slot), members in by_owner.items():
        reads = {steps[k].read for k in members}
        if len(members) >= LEAST or "mro" in reads:
            is_of_class = mode == "object" and reads.isdisjoint(("own", "method"))
            result["class" if is_of_class else mode, slot] = members
    return result


def _owner(step: GuardStep, steps: Sequence[GuardStep], owners: Sequence[Owner | None]) -> Owner | None:
    """The owner of the group that a step with a settled outcome belongs to, if there is one."""
    if step.read not in ("class", "own", "method", "item", "lookup", "mro", "index", "slot"):
        return None
    above, around = steps[step.owner], owners[step.owner]
    if step.read == "class" and above.check == "type":
        return around  # it is settled
    if step.read in ("class", "own", "method"):
        return "object", step.owner
    if step.read in ("lookup", "mro"):
        return around if above.read == "class" and around else ("type", step.owner)
    if step.read == "index" or (step.check == "length" and _is_exact(above, tuple)):
        return around if _is_exact(above, tuple) else None
    is_of_keys = step.check == "length" or (step.check == "call" and getattr(step.expected, "is_of_keys", False))
    if type(step.operand) in _PLAIN_KEYS if step.read == "item" else is_of_keys:
        return around if above.read == "own" else ("dict", step.owner) if _is_exact(above, dict) else None
    return None


def _is_exact(step: GuardStep, kind: type) -> bool:
    """Whether a step says that its value is of that very type."""
    is_root = step.read == "root" and type(step.operand) is kind
    return is_root or (step.check == "type" and step.expected is kind)


_PLAIN_KEYS = (str, int, bytes, float, bool, type(None))  # that compare themselves without code of the user's


def _is_settled(step: GuardStep) -> bool:
    """Whether a check always says the same of the very same object; or, of an owner, while its tags stay."""
    of_owner = step.read == "slot"
    if step.check == "type":
        return bool(step.expected.__flags__ & _IMMUTABLE)  # of others instances may be given another class
    if step.check == "call":
        return getattr(step.expected, "is_settled", False) or (of_owner and getattr(step.expected, "is_of_keys", False))
    return step.check in _SETTLED or (of_owner and step.check == "length")


_SETTLED = ("any", "absent", "is", "weak", "referents", "number", "text")


_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE of CPython's object.h
