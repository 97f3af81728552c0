"""LLVM code for the guards of a NativeCall (see ``steps`` and ``guard_program``).

Values are borrowed from what holds them while nothing but this code runs.  Reading an attribute, a dict with keys of
the user's classes or a predicate can run Python code, which may drop anything; so before that, ``own_slots`` takes a
reference to every value that a later step may use.

The steps of a group are passed over while the tags of its owner are those that its memo has (see ``versions``): then
the values that they would find are those in the memo, and what holds these is as it was.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.calls.guard_program import BEGIN, END, MODES, NAMED_ITEM, WITH_DICT
from hybridflow.runtime.calls.guard_steps import CHECK, READ, SIZED
from hybridflow.runtime.calls.record_access import is_type
from hybridflow.runtime.native import object_layout, version_tags
from hybridflow.runtime.native.ir_builder import (
    F64,
    FALSE,
    I1,
    I8,
    I32,
    I64,
    NULL,
    PTR,
    TRUE,
    VOID,
    Function,
    Module,
    i32,
    i64,
)
from hybridflow.runtime.native.records import GROUP, GUARDS, MEMO, STEP, WORD, View

HOLDS, FAILS, ERROR = 1, 0, -1

_C_NAMES = {"set": "PySet_Type", "frozenset": "PyFrozenSet_Type", "str": "PyUnicode_Type"}


def define(module: Module) -> None:
    """Add ``match_guards`` to a module."""
    _on_error(module)
    _why_null(module)
    _element(module)
    _compare(module)
    _are_referents(module)
    _predicate(module)
    _own_slots(module)
    _dict_of(module)
    _tags(module)
    if not version_tags.TAGS_OF_SPLIT_DICTS:
        _combine(module)
    _run_steps(module)
    _match_guards(module)


def _match_guards(module: Module) -> None:
    """i32 match_guards(program): HOLDS, FAILS, or ERROR with an error set: no memory, or what is no Exception."""
    f = module.function("match_guards", I32, PTR)
    (program,) = f.args
    count = GUARDS.at(f, program).slots
    owned = f.local(I64, i64(0))
    with f.room(count, i32(ERROR)) as slots:

        def release() -> None:
            with f.count(f.get(owned, I64)) as i, f.owned(f.take(f.element(slots, i, PTR))):
                pass

        with f.leaving(release):
            f.ret(f.call("run_steps", I32, program, slots, owned))


class _Slots:
    """The slots of a run: filled in their order, the first of them with references that the run owns."""

    def __init__(self, f: Function, start: ir.Value, owned: ir.Value) -> None:
        self._f, self._start, self._owned, self._filled = f, start, owned, f.local(I64, i64(0))

    def at(self, slot: ir.Value) -> ir.Value:
        """The address of a slot."""
        return self._f.element(self._start, slot, PTR)

    def value(self, slot: ir.Value) -> ir.Value:
        return self._f.get(self.at(slot), PTR)

    def own(self) -> None:
        """Before Python code may run."""
        self._f.call("own_slots", VOID, self._start, self._owned, self._f.get(self._filled, I64))

    def fill(self, value: ir.Value) -> None:
        """Put a borrowed value into the next slot."""
        self._f.set(self.at(self._f.get(self._filled, I64)), value)
        self._move(self._filled, i64(1))

    def fill_owned(self, value: ir.Value) -> None:
        """Put a new reference into the next slot; all slots before own theirs."""
        self._f.put(self.at(self._f.get(self._filled, I64)), value)
        self._move(self._filled, i64(1))
        self._move(self._owned, i64(1))

    def fill_all(self, values: ir.Value, count: ir.Value) -> None:
        """Put borrowed values into the next slots."""
        with self._f.count(count) as i:
            self.fill(self._f.get(self._f.element(values, i, PTR), PTR))

    def _move(self, count: ir.Value, by: ir.Value) -> None:
        self._f.set(count, self._f.b.add(self._f.get(count, I64), by))


def _own_slots(module: Module) -> None:
    """void own_slots(slots, i64 *owned, i64 filled): take references to the values that are borrowed so far."""
    f = module.function("own_slots", VOID, PTR, PTR, I64)
    slots, owned, filled = f.args
    with f.loop(lambda: f.b.icmp_unsigned("<", f.get(owned, I64), filled)):
        slot = f.element(slots, f.get(owned, I64), PTR)
        f.put(slot, f.incref(f.get(slot, PTR)))  # which may be null
        f.set(owned, f.b.add(f.get(owned, I64), i64(1)))
    f.ret()


def _run_steps(module: Module) -> None:
    """i32 run_steps(program, slots, i64 *owned): as ``match_guards``; counts the slots that own references."""
    f = module.function("run_steps", I32, PTR, PTR, PTR, inline=True)
    program, start, owned = f.args
    head, slots = GUARDS.at(f, program), _Slots(f, start, owned)
    position, seen = f.local(PTR, head.steps), f.local(ir.ArrayType(I64, MEMO.size))
    is_tagged = f.local(I1, FALSE)
    end = f.words_after(head.steps, f.b.mul(head.count, i64(STEP.size)))
    with f.loop(lambda: f.ne(f.get(position, PTR), end)):
        here = f.get(position, PTR)
        step = STEP.at(f, here)
        f.set(position, f.at(here, WORD * STEP.size))
        of_group = f.b.icmp_unsigned(">=", step.read, i64(BEGIN[MODES[0]]))
        with f.b.if_else(of_group) as (around, plain):
            with plain:
                _take_step(f, step, slots)
            with around:
                group = GROUP.at(f, here)
                owner = slots.value(group.owner)
                f.ret_if(f.is_null(owner), i32(FAILS))
                memo = MEMO.at(f, f.words_after(program, group.memo))
                with f.switch(group.read) as case:
                    for mode in MODES:
                        with case(BEGIN[mode]):
                            same = _is_unchanged(f, mode, owner, memo)
                            with f.b.if_then(same, likely=True):
                                slots.fill_all(memo.values, group.count)
                                skipped = f.b.mul(f.b.add(group.skipped, i64(1)), i64(STEP.size))
                                f.set(position, f.words_after(f.get(position, PTR), skipped))
                            with f.b.if_then(f.b.not_(same), likely=False):
                                f.set(is_tagged, f.call("tags", I1, owner, i64(MODES.index(mode)), seen))
                    with case(*END.values()):
                        _remember(f, owner, group, memo, seen, is_tagged, slots)
    f.ret(i32(HOLDS))


def _take_step(f: Function, step: View, slots: _Slots) -> None:
    """Read and check; return FAILS or ERROR unless the value passes."""
    value, fresh = f.local(PTR, NULL), f.local(PTR, NULL)
    _read(f, step, slots, value, fresh)
    object_read = f.get(value, PTR)
    with f.owned(f.get(fresh, PTR)) as fresh_value:
        has_slot, is_borrowed = f.b.icmp_signed(">=", step.slot, i64(0)), f.is_null(fresh_value.value)
        with f.b.if_then(f.b.and_(has_slot, is_borrowed)):
            slots.fill(object_read)
        with f.b.if_then(f.b.and_(has_slot, f.b.not_(is_borrowed)), likely=False):
            slots.fill_owned(fresh_value.given())
        with f.b.if_else(f.is_null(object_read), likely=False) as (nothing, something):
            with nothing:
                why = f.call("why_null", I32, step.read)
                with f.b.if_then(f.ne(why, i32(HOLDS))):
                    f.ret(why)
                f.ret_if(f.ne(step.check, i64(CHECK["absent"])), i32(FAILS))
            with something:
                _check(f, step, slots, object_read)


def _read(f: Function, step: View, slots: _Slots, value: ir.Value, fresh: ir.Value) -> None:
    """Set ``value`` to what the step reads, or leave it null; ``fresh`` as well where it is a new reference."""
    operand = step.operand

    def owner() -> ir.Value:
        result = slots.value(step.owner)
        f.ret_if(f.is_null(result), i32(FAILS))
        return result

    def new(reference: ir.Value) -> None:
        f.set(fresh, reference)
        f.set(value, reference)

    with f.switch(step.read) as case:
        with case(READ["root"]):
            f.set(value, operand)
        with case(READ["weak"]):
            f.set(value, referent(f, operand))
        with case(READ["slot"]):
            f.set(value, slots.value(step.owner))
        with case(READ["item"]):  # which raises where the owner is no dict
            slots.own()
            f.set(value, f.call("PyDict_GetItemWithError", PTR, owner(), operand))
        with case(NAMED_ITEM):
            mapping = owner()
            f.ret_if(f.b.not_(_is_a(f, mapping, object_layout.IS_DICT)), i32(FAILS))
            kind = f.load(f.load(mapping, object_layout.DICT_KEYS, PTR), object_layout.KEYS_KIND, I8)
            with f.b.if_then(f.eq(kind, ir.Constant(I8, 0)), likely=False):  # another key may compare itself
                slots.own()
            f.set(value, f.call("PyDict_GetItemWithError", PTR, mapping, operand))
        with case(READ["index"]):
            f.set(value, f.call("element", PTR, owner(), f.b.ptrtoint(operand, I64)))
        with case(READ["cell"]):
            cell = owner()
            f.ret_if(f.b.not_(is_type(f, cell, "PyCell_Type")), i32(FAILS))
            f.set(value, f.load(cell, object_layout.CELL_CONTENTS, PTR))
        with case(READ["code"]):
            f.set(value, f.load(_function(f, owner()), object_layout.FUNCTION_CODE, PTR))
        for name, offset in _OF_FUNCTIONS.items():
            with case(READ[name]):
                held = f.load(_function(f, owner()), offset, PTR)
                f.set(value, f.b.select(f.is_null(held), f.module.symbol("_Py_NoneStruct"), held))
        with case(READ["class"]):
            f.set(value, f.load(owner(), object_layout.TYPE, PTR))
        with case(READ["member"]):
            instance = owner()
            f.ret_if(
                f.ne(f.load(instance, object_layout.TYPE, PTR), f.load(operand, object_layout.DESCRIPTOR_TYPE, PTR)),
                i32(FAILS),
            )
            offset = f.word(f.load(operand, object_layout.DESCRIPTOR_MEMBER, PTR), object_layout.MEMBER_OFFSET)
            f.set(value, f.get(f.at(instance, offset), PTR))
        with case(READ["own"]):
            instance = owner()
            f.ret_if(_is_a(f, instance, object_layout.IS_TYPE), i32(FAILS))
            slots.own()
            new(f.call("PyObject_GenericGetDict", PTR, instance, NULL))
        with case(READ["attribute"]):
            slots.own()
            new(f.call("PyObject_GetAttr", PTR, owner(), operand))
        with case(READ["lookup"]):
            class_ = owner()
            f.ret_if(f.b.not_(_is_a(f, class_, object_layout.IS_TYPE)), i32(FAILS))
            if object_layout.finds_in_classes():
                f.set(value, f.call("_PyType_Lookup", PTR, class_, operand))
            else:
                slots.own()
                new(_in_python(f, "Python_lookup", class_, operand))
        with case(READ["mro"]):
            class_ = owner()
            f.ret_if(f.b.not_(_is_a(f, class_, object_layout.IS_TYPE)), i32(FAILS))
            f.set(value, f.load(class_, object_layout.TYPE_MRO, PTR))
        with case(READ["method"]):
            instance = owner()
            slots.own()
            if object_layout.finds_methods():
                method = f.local(PTR, NULL)
                unbound = f.call("_PyObject_GetMethod", I32, instance, operand, method)
                is_method = f.eq(unbound, i32(1))
                with f.owned(f.get(method, PTR)) as bound, f.b.if_then(is_method, likely=True):
                    new(bound.given())
            else:
                new(_in_python(f, "Python_method", instance, operand))


_OF_FUNCTIONS = {
    "defaults": object_layout.FUNCTION_DEFAULTS,
    "keyword defaults": object_layout.FUNCTION_KEYWORD_DEFAULTS,
    "closure": object_layout.FUNCTION_CLOSURE,
}


def _function(f: Function, value: ir.Value) -> ir.Value:
    """A value that must be a Python function."""
    f.ret_if(f.b.not_(is_type(f, value, "PyFunction_Type")), i32(FAILS))
    return value


# Groups


def _is_unchanged(f: Function, mode: str, owner: ir.Value, memo: View) -> ir.Value:
    """Whether the tags of what a group reads of are those in its memo."""
    holds = f.local(I1, FALSE)
    if mode == "type":
        with f.b.if_then(_is_a(f, owner, object_layout.IS_TYPE), likely=True):
            f.set(holds, f.eq(_tag_of_type(f, owner), memo.type_version))
    elif mode == "class":
        f.set(holds, f.eq(_tag_of_type(f, f.load(owner, object_layout.TYPE, PTR)), memo.type_version))
    elif mode == "dict":
        with f.b.if_then(is_type(f, owner, "PyDict_Type"), likely=True):
            f.set(holds, f.eq(f.word(owner, version_tags.DICT_VERSION), memo.dict_version))
    else:
        tag = _tag_of_type(f, f.load(owner, object_layout.TYPE, PTR))
        with f.b.if_then(f.eq(tag, memo.type_version), likely=True):  # so the dict is where it was
            f.set(holds, TRUE)
            place = memo.place
            with f.b.if_then(f.ne(place, i64(0)), likely=True):
                f.set(holds, FALSE)
                held = f.get(f.at(owner, place), PTR)
                with f.b.if_then(_is_dict_pointer(f, held), likely=True):
                    f.set(holds, f.eq(f.word(held, version_tags.DICT_VERSION), memo.dict_version))
    return f.get(holds, I1)


def _tag_of_type(f: Function, kind: ir.Value) -> ir.Value:
    return f.b.zext(f.load(kind, version_tags.TYPE_VERSION, I32), I64)


def _is_dict_pointer(f: Function, held: ir.Value) -> ir.Value:
    """Whether what lies where an instance has its dict is one: null, or an odd address, where it has none yet."""
    is_odd = f.ne(f.b.and_(f.b.ptrtoint(held, I64), i64(1)), i64(0))
    return f.b.not_(f.b.or_(f.is_null(held), is_odd))


def _dict_of(module: Module) -> None:
    """PyObject *dict_of(owner, i64 mode, i64 *place): borrowed, the exact dict that a group reads of, and where the
    owner has it; or null."""
    f = module.function("dict_of", PTR, PTR, I64, PTR)
    owner, mode, where = f.args
    held, place = f.local(PTR, owner), f.local(I64, i64(0))
    with f.b.if_then(f.eq(mode, i64(MODES.index("object")))):
        kind = f.load(owner, object_layout.TYPE, PTR)
        is_managed = f.ne(f.b.and_(f.word(kind, object_layout.TYPE_FLAGS), i64(version_tags.HAS_MANAGED_DICT)), i64(0))
        offset = f.b.select(is_managed, i64(version_tags.MANAGED_DICT), f.word(kind, version_tags.TYPE_DICT_OFFSET))
        is_known = f.b.or_(is_managed, f.b.icmp_signed(">", offset, i64(0)))  # it may be behind items of any number
        f.ret_if(f.b.not_(is_known), NULL)
        f.set(place, offset)
        f.set(held, f.get(f.at(owner, offset), PTR))
        f.ret_if(f.b.not_(_is_dict_pointer(f, f.get(held, PTR))), NULL)
    f.set(where, f.get(place, I64))
    f.ret_if(f.b.not_(is_type(f, f.get(held, PTR), "PyDict_Type")), NULL)
    f.ret(f.get(held, PTR))


def _tags(module: Module) -> None:
    """i1 tags(owner, i64 mode, seen): the tags that tell of changes of what a group reads of, and where its dict is, in
    the order of a MEMO; false where some change may not be told."""
    f = module.function("tags", I1, PTR, I64, PTR)
    owner, mode, seen = f.args
    tag = f.local(I64, i64(0))
    is_dict = f.eq(mode, i64(MODES.index("dict")))
    with f.b.if_then(f.b.not_(is_dict)):
        is_class, of_class = _is_a(f, owner, object_layout.IS_TYPE), f.eq(mode, i64(MODES.index("type")))
        f.ret_if(f.b.and_(of_class, f.b.not_(is_class)), FALSE)
        kind = f.b.select(of_class, owner, f.load(owner, object_layout.TYPE, PTR))
        f.set(tag, _tag_of_type(f, kind))
        f.ret_if(f.eq(f.get(tag, I64), i64(0)), FALSE)
    f.store(f.get(tag, I64), seen, MEMO.offset("type_version"))
    f.store(i64(0), seen, MEMO.offset("dict_version"))
    f.store(i64(0), seen, MEMO.offset("place"))
    with f.b.if_then(f.eq(mode, i64(MODES.index("object")))):
        kind = f.load(owner, object_layout.TYPE, PTR)
        no_flag = f.eq(f.b.and_(f.word(kind, object_layout.TYPE_FLAGS), i64(version_tags.HAS_MANAGED_DICT)), i64(0))
        no_offset = f.eq(f.word(kind, version_tags.TYPE_DICT_OFFSET), i64(0))
        f.ret_if(f.b.and_(no_flag, no_offset), TRUE)  # instances have no dict
    f.ret_if(f.b.icmp_unsigned(">=", mode, i64(WITH_DICT)), TRUE)
    held = f.call("dict_of", PTR, owner, mode, f.at(seen, MEMO.offset("place")))
    f.ret_if(f.is_null(held), FALSE)
    if not version_tags.TAGS_OF_SPLIT_DICTS:
        f.ret_if(f.b.not_(f.is_null(f.load(held, version_tags.DICT_VALUES, PTR))), FALSE)
    f.store(f.word(held, version_tags.DICT_VERSION), seen, MEMO.offset("dict_version"))
    f.ret(TRUE)


def _remember(
    f: Function,
    owner: ir.Value,
    group: View,
    memo: View,
    seen: ir.Value,
    is_tagged: ir.Value,
    slots: _Slots,
) -> None:
    """All steps of a group have passed: write its memo, if nothing has changed since they began."""
    code = f.b.sub(group.read, i64(END[MODES[0]]))
    with f.b.if_else(f.get(is_tagged, I1), likely=True) as (tagged, untagged):
        with tagged:
            now = f.local(ir.ArrayType(I64, MEMO.size))
            f.set(is_tagged, f.call("tags", I1, owner, code, now))
            for word in MEMO.names:
                same = f.eq(f.word(seen, MEMO.offset(word)), f.word(now, MEMO.offset(word)))
                f.set(is_tagged, f.b.and_(f.get(is_tagged, I1), same))
            with f.b.if_then(f.get(is_tagged, I1), likely=True):
                for word in MEMO.names:
                    f.set(memo.address(word), f.word(now, MEMO.offset(word)))
                with f.count(group.count) as i:
                    value = slots.value(f.b.add(group.first, i))
                    f.set(f.element(memo.values, i, PTR), value)
        with untagged:
            if not version_tags.TAGS_OF_SPLIT_DICTS:
                with f.b.if_then(f.b.icmp_unsigned("<", code, i64(WITH_DICT))):
                    f.ret_if(f.b.not_(f.call("combine", I1, owner, code)), i32(ERROR))


def _combine(module: Module) -> None:
    """i1 combine(owner, i64 mode): let the dict that a group reads of hold all its values itself, if it shares them
    with its instance; or false and an error.  What it holds stays as it is, and in order."""
    f = module.function("combine", I1, PTR, I64)
    owner, mode = f.args
    place = f.local(I64)
    held = f.call("dict_of", PTR, owner, mode, place)
    f.ret_if(f.is_null(held), TRUE)
    f.ret_if(f.is_null(f.load(held, version_tags.DICT_VALUES, PTR)), TRUE)
    f.ret_if(f.eq(f.word(held, version_tags.DICT_USED), i64(0)), TRUE)
    with f.owned(f.incref(held)):
        stack = f.local(PTR, held)
        # No other code runs between these two: the keys are texts, and the last item comes back to its place.
        taken = f.call("PyObject_VectorcallMethod", PTR, module.symbol("Name_popitem"), stack, i64(1), NULL)
        with f.owned(taken) as item:
            f.ret_if(f.is_null(item.value), FALSE)
            key, value = (f.load(item.value, object_layout.TUPLE_ITEMS + k * WORD, PTR) for k in range(2))
            f.ret(f.eq(f.call("PyDict_SetItem", I32, held, key, value), i32(0)))


def _in_python(f: Function, function: str, owner: ir.Value, name: ir.Value) -> ir.Value:
    """What a function of ``steps`` returns: a new reference, or null and an error."""
    arguments = f.local(ir.ArrayType(PTR, 2))
    f.store(owner, arguments)
    f.store(name, arguments, WORD)
    return f.call("PyObject_Vectorcall", PTR, f.module.symbol(function), arguments, i64(2), NULL)


def _is_a(f: Function, obj: ir.Value, flag: int) -> ir.Value:
    """Whether the type of an object has a flag."""
    flags = f.word(f.load(obj, object_layout.TYPE, PTR), object_layout.TYPE_FLAGS)
    return f.ne(f.b.and_(flags, i64(flag)), i64(0))


def referent(f: Function, reference: ir.Value) -> ir.Value:
    """The object of a weak reference, or null: it is None when dead, and without references while it dies."""
    target = f.load(reference, object_layout.WEAKREF_OBJECT, PTR)
    dead = f.eq(target, f.module.symbol("_Py_NoneStruct"))
    dying = f.eq(f.load(target, object_layout.REFCOUNT, I32), i32(0))
    return f.b.select(f.b.or_(dead, dying), NULL, target)


def _check(f: Function, step: View, slots: _Slots, value: ir.Value) -> None:
    """Return FAILS or ERROR unless the value passes."""
    expected = step.expected

    def require(condition: ir.Value) -> None:
        f.ret_if(f.b.not_(condition), i32(FAILS))

    with f.switch(step.check) as case:
        with case(CHECK["absent"]):
            f.ret(i32(FAILS))
        with case(CHECK["is"]):
            require(f.eq(value, expected))
        with case(CHECK["weak"]):
            require(f.eq(value, referent(f, expected)))
        with case(CHECK["referents"]):
            require(f.ne(f.call("are_referents", I32, value, expected), i32(0)))
        with case(CHECK["same"]):
            require(f.eq(value, slots.value(f.b.ptrtoint(expected, I64))))
        with case(CHECK["type"]):
            require(f.eq(f.load(value, object_layout.TYPE, PTR), expected))
        for name in ("number", "text"):
            with case(CHECK[name]), f.b.if_then(f.ne(value, expected)):
                require(f.ne(f.call("compare", I32, value, expected), i32(0)))
        with case(CHECK["length"]):
            sized = ir.Constant(ir.IntType(1), 0)
            for kind in SIZED:
                type_name = _C_NAMES.get(kind.__name__, f"Py{kind.__name__.capitalize()}_Type")
                sized = f.b.or_(sized, is_type(f, value, type_name))
            require(sized)
            require(f.eq(f.call("PyObject_Size", I64, value), f.b.ptrtoint(expected, I64)))
        with case(CHECK["call"]):
            slots.own()
            with f.owned(f.incref(value)):
                verdict = f.call("predicate", I32, expected, value)
                with f.b.if_then(f.ne(verdict, i32(HOLDS))):
                    f.ret(verdict)


def _element(module: Module) -> None:
    """PyObject *element(owner, i64 index): borrowed, of a list or tuple; null for none."""
    f = module.function("element", PTR, PTR, I64)
    owner, number = f.args
    items = f.local(PTR, NULL)
    with f.b.if_then(_is_a(f, owner, object_layout.IS_TUPLE)):
        f.set(items, f.at(owner, object_layout.TUPLE_ITEMS))
    with f.b.if_then(_is_a(f, owner, object_layout.IS_LIST)):
        f.set(items, f.load(owner, object_layout.LIST_ITEMS, PTR))
        f.ret_if(f.is_null(f.get(items, PTR)), NULL)  # an empty list
    with f.b.if_then(f.is_null(f.get(items, PTR)), likely=False):
        f.call("PyErr_BadInternalCall", VOID)
        f.ret(NULL)
    size = f.load(owner, object_layout.SIZE, I64)
    negative = f.b.icmp_signed("<", number, i64(0))
    index = f.b.select(negative, f.b.add(number, size), number)
    f.ret_if(f.b.icmp_unsigned(">=", index, size), NULL)
    f.ret(f.get(f.element(f.get(items, PTR), index, PTR), PTR))


def _are_referents(module: Module) -> None:
    """i32 are_referents(value, references): whether a value is a tuple of what the weak references of a tuple refer to,
    none of which is dead."""
    f = module.function("are_referents", I32, PTR, PTR)
    value, references = f.args
    f.ret_if(f.b.not_(is_type(f, value, "PyTuple_Type")), i32(0))
    size = f.load(value, object_layout.SIZE, I64)
    f.ret_if(f.ne(size, f.load(references, object_layout.SIZE, I64)), i32(0))
    with f.count(size) as i:
        each, reference = (f.get(f.element(f.at(t, object_layout.TUPLE_ITEMS), i, PTR), PTR) for t in f.args)
        f.ret_if(f.ne(each, referent(f, reference)), i32(0))
    f.ret(i32(1))


def _compare(module: Module) -> None:
    """i32 compare(value, expected): whether a float, int, str or bytes has the type and bits or value of another."""
    f = module.function("compare", I32, PTR, PTR)
    value, expected = f.args
    types = [f.load(obj, object_layout.TYPE, PTR) for obj in f.args]
    f.ret_if(f.ne(*types), i32(0))
    with f.b.if_then(is_type(f, value, "PyFloat_Type")):
        first, second = (f.b.bitcast(f.call("PyFloat_AsDouble", F64, obj), I64) for obj in f.args)
        f.ret(f.b.zext(f.eq(first, second), I32))
    equal = f.call("PyObject_RichCompareBool", I32, value, expected, i32(2))  # Py_EQ; of these types it cannot fail
    f.ret(equal)


def _predicate(module: Module) -> None:
    """i32 predicate(function, value): HOLDS, FAILS or ERROR."""
    f = module.function("predicate", I32, PTR, PTR)
    function, value = f.args
    with f.owned(f.call("PyObject_CallOneArg", PTR, function, value)) as answer:
        with f.b.if_then(f.is_null(answer.value), likely=False):
            f.ret(f.call("on_error", I32))
        truth = f.call("PyObject_IsTrue", I32, answer.value)
        with f.b.if_then(f.eq(truth, i32(-1)), likely=False):
            f.ret(f.call("on_error", I32))
        f.ret(truth)


def _why_null(module: Module) -> None:
    """i32 why_null(i64 read): after a read that gave null: HOLDS when there is nothing, FAILS or ERROR for an error."""
    f = module.function("why_null", I32, I64)
    (read,) = f.args
    with f.b.if_then(f.is_null(f.call("PyErr_Occurred", PTR))):
        no_method = f.eq(read, i64(READ["method"]))
        f.ret(f.b.select(no_method, i32(FAILS), i32(HOLDS)))
    missing = _matches(f, "PyExc_AttributeError")
    for name in ("attribute", "lookup"):  # own and method: not an instance of that kind
        with f.b.if_then(f.b.and_(f.eq(read, i64(READ[name])), missing)):
            f.call("PyErr_Clear", VOID)
            f.ret(i32(HOLDS))
    f.ret(f.call("on_error", I32))


def _on_error(module: Module) -> None:
    """i32 on_error(): FAILS and no error any more, for an Exception; the slow path will meet it again.  ERROR else."""
    f = module.function("on_error", I32)
    with f.b.if_then(_matches(f, "PyExc_Exception")):
        f.call("PyErr_Clear", VOID)
        f.ret(i32(FAILS))
    f.ret(i32(ERROR))


def _matches(f: Function, exception: str) -> ir.Value:
    """Whether the error that is set is such an exception."""
    kind = f.get(f.module.symbol(exception), PTR)
    return f.ne(f.call("PyErr_ExceptionMatches", I32, kind), i32(0))
