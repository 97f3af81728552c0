"""LLVM code behind Python's operators on tensors, a module of its own: elementwise ops, conversions, subscripts.

Each operator is a slot of the Tensor class: a C function that CPython calls with the operands.  What it knows it
answers at once; for everything else (tapes, traces, other types, strided arrays, errors) it calls the operator's
function in Python, with the same operands.

``try_unary`` and ``try_binary`` apply an op through its OPERATOR record (see ``operators``).  The same ops are also
functions, which answer what they do not know with NotImplemented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import llvmlite.ir as ir
import numpy as np

from hybridflow.runtime.calls import array_match_code, entry_code, fast_path_check_code
from hybridflow.runtime.calls.record_access import is_contiguous, is_type
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import (
    F32,
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
from hybridflow.runtime.native.records import (
    APPLICATION,
    ARITHMETIC,
    COMPARISONS,
    DTYPES,
    ELEMENT_LEFT,
    ELEMENT_RIGHT,
    FIRST_REGISTERED,
    FORMS,
    OPERATOR,
    OPS_OF_SLOTS,
    OWN_DTYPES,
    RELEASE_GIL_WORK,
    SAME,
    SLOTS,
    SLOTS_OF_ONE,
    WEAK,
    WORD,
    Offsets,
)


def build(offsets: Offsets, checked: bool = False) -> str:
    """The module's text; for ``checked`` see ``entry_code``."""
    module = entry_code.new_module(checked)
    fast_path_check_code.define(module)
    array_match_code.define_array_of(module, offsets)
    entry_code.define_make_tensor(module, offsets)
    entry_code.define_run(module)
    _is_plain(module)
    _count_of(module)
    _ask_for(module)
    _application(module)
    _weak_value(module)
    _is_two(module)
    _apply(module)
    _try_unary(module)
    _try_binary(module)
    _exports(module, offsets)
    _slots(module)
    _is_index(module)
    _is_range(module)
    _views(module)
    _try_subscript(module)
    _subscript_slot(module)
    _single(module)
    _conversions(module)
    return str(module.ir)


# ---- operands


def _is_plain(module: Module) -> None:
    """i1 is_plain(array): whether it is a C-contiguous, aligned ndarray."""
    f = module.function("is_plain", I1, PTR, inline=True)
    (array,) = f.args
    f.ret_if(f.b.not_(is_type(f, array, "PyArray_Type")), FALSE)
    f.ret(is_contiguous(f, array))


def _count_of(module: Module) -> None:
    """i64 count_of(array): its elements."""
    f = module.function("count_of", I64, PTR, inline=True)
    (array,) = f.args
    count, shape = f.local(I64, i64(1)), f.load(array, object_layout.ARRAY_SHAPE, PTR)
    with f.count(f.b.sext(f.load(array, object_layout.ARRAY_NDIM, I32), I64)) as axis:
        f.set(count, f.b.mul(f.get(count, I64), f.get(f.element(shape, axis, I64), I64)))
    f.ret(f.get(count, I64))


def _may_answer(f: Function, *operands: ir.Value) -> ir.Value:
    """Whether nobody has to be told of an operation on these: nothing traces, and no tape tracks them."""
    is_untouched = f.local(I1, fast_path_check_code.is_idle(f))
    with f.b.if_then(f.b.not_(f.get(is_untouched, I1)), likely=False):
        pointers = f.local(ir.ArrayType(PTR, max(len(operands), 1)))
        for k, operand in enumerate(operands):
            f.store(operand, pointers, k * WORD)
        f.set(is_untouched, f.call("untouched_here", I1, pointers, i64(len(operands))))
    return f.get(is_untouched, I1)


def _application(module: Module) -> None:
    """ptr application(operator, array, i64 form): what applies the op to operands of the array's dtype, or null; asks
    for it when it has been missing often enough, which may leave a Python error."""
    f = module.function("application", PTR, PTR, PTR, I64, inline=True)
    operator, array, form = f.args
    head, descr = OPERATOR.at(f, operator), f.load(array, object_layout.ARRAY_DESCR, PTR)
    number = f.b.sext(f.load(descr, object_layout.DESCR_NUM, I32), I64)
    registered = f.b.add(f.b.sub(number, i64(FIRST_REGISTERED)), i64(OWN_DTYPES))
    row = f.b.select(f.b.icmp_unsigned("<", number, i64(OWN_DTYPES)), number, registered)
    is_own = f.b.icmp_unsigned("<", number, i64(OWN_DTYPES))
    is_known = f.b.or_(is_own, f.b.icmp_unsigned(">=", number, i64(FIRST_REGISTERED)))
    f.ret_if(f.b.not_(f.b.and_(is_known, f.b.icmp_unsigned("<", row, i64(DTYPES)))), NULL)
    place = f.b.add(f.b.mul(row, i64(FORMS)), form)
    slot = f.element(head.table, place, I64)
    word = f.get(slot, I64)
    with f.b.if_then(f.b.icmp_unsigned("<=", word, head.wanted), likely=False):
        with f.b.if_then(f.b.icmp_unsigned("<", word, head.wanted)):
            f.set(slot, f.b.add(word, i64(1)))
            with f.b.if_then(f.eq(f.get(slot, I64), head.wanted)):
                f.call("ask_for", VOID, head.owner, place, descr)
        f.ret(NULL)
    application = f.b.inttoptr(word, PTR)
    f.ret_if(f.ne(APPLICATION.at(f, application).dtype, descr), NULL)  # of the other byte order
    f.ret(application)


def _ask_for(module: Module) -> None:
    """void ask_for(owner, i64 place, descr): call ``owner._want(place, descr)``; what it raises stays set."""
    f = module.function("ask_for", VOID, PTR, I64, PTR)
    owner, place, descr = f.args
    with f.owned(f.call("PyLong_FromSsize_t", PTR, place)) as number:
        with f.b.if_then(f.is_null(number.value)):
            f.ret()
        arguments = f.local_array(PTR, i64(3))
        for k, argument in enumerate((owner, number.value, descr)):
            f.store(argument, arguments, k * WORD)
        answer = f.call("PyObject_VectorcallMethod", PTR, module.symbol("Name_want"), arguments, i64(3), NULL)
        with f.owned(answer):
            f.ret()


def _weak_value(module: Module) -> None:
    """i1 weak_value(number, application, ptr bits): write a Python number as the dtype has it, if it has it exactly;
    a float is rounded, and is the real part of a complex number."""
    f = module.function("weak_value", I1, PTR, PTR, PTR)
    number, application, bits = f.args
    head = APPLICATION.at(f, application)
    weak = head.weak
    is_f32, is_f64, is_c64, is_c128 = (f.eq(weak, i64(WEAK[name])) for name in ("f32", "f64", "c64", "c128"))
    is_single, is_double = f.b.or_(is_f32, is_c64), f.b.or_(is_f64, is_c128)
    with f.b.if_then(is_c64):
        f.store(ir.Constant(F32, 0.0), bits, 4)
    with f.b.if_then(is_c128):
        f.store(ir.Constant(F64, 0.0), bits, 8)
    with f.b.if_then(is_type(f, number, "PyFloat_Type")):
        value = f.call("PyFloat_AsDouble", F64, number)
        with f.b.if_then(is_single):
            f.set(bits, f.b.fptrunc(value, F32))
            f.ret(TRUE)
        f.set(bits, value)
        f.ret(is_double)
    f.ret_if(f.b.not_(is_type(f, number, "PyLong_Type")), FALSE)
    f.ret_if(f.eq(weak, i64(WEAK["none"])), FALSE)
    overflow = f.local(I32)
    value = f.call("PyLong_AsLongLongAndOverflow", I64, number, overflow)
    f.ret_if(f.ne(f.get(overflow, I32), i32(0)), FALSE)
    f.ret_if(f.b.icmp_signed("<", value, head.low), FALSE)
    f.ret_if(f.b.icmp_signed(">", value, head.high), FALSE)
    with f.b.if_then(is_single):
        f.set(bits, f.b.sitofp(value, F32))
        f.ret(TRUE)
    with f.b.if_then(is_double):
        f.set(bits, f.b.sitofp(value, F64))
        f.ret(TRUE)
    f.set(bits, value)  # of which narrower ints are the first bytes
    f.ret(TRUE)


def _is_two(module: Module) -> None:
    """i1 is_two(object, number): whether it is the Python number 2, or 2.0 next to a tensor of floats."""
    f = module.function("is_two", I1, PTR, PTR, inline=True)
    obj, number = f.args
    with f.b.if_then(is_type(f, number, "PyLong_Type")):
        overflow = f.local(I32)
        f.ret(f.eq(f.call("PyLong_AsLongLongAndOverflow", I64, number, overflow), i64(2)))
    f.ret_if(f.b.not_(is_type(f, number, "PyFloat_Type")), FALSE)
    f.ret_if(f.b.fcmp_unordered("!=", f.call("PyFloat_AsDouble", F64, number), ir.Constant(F64, 2.0)), FALSE)
    array = f.call("array_of", PTR, obj)
    f.ret_if(f.is_null(array), FALSE)
    f.ret_if(f.b.not_(is_type(f, array, "PyArray_Type")), FALSE)
    kind = f.load(f.load(array, object_layout.ARRAY_DESCR, PTR), object_layout.DESCR_KIND, I8)
    f.ret(f.eq(kind, ir.Constant(I8, ord("f"))))


# ---- elementwise ops


def _apply(module: Module) -> None:
    """PyObject *apply(application, shaped, buffers, i64 inputs): the op on the buffers, which has the shape of an
    array; null with an error, or ``miss`` where a check fails."""
    f = module.function("apply", PTR, PTR, PTR, PTR, I64, inline=True)
    application, shaped, buffers, inputs = f.args
    head = APPLICATION.at(f, application)
    count = f.local(I64, f.call("count_of", I64, shaped))
    size = f.b.mul(f.get(count, I64), head.itemsize)
    ndim, shape = f.load(shaped, object_layout.ARRAY_NDIM, I32), f.load(shaped, object_layout.ARRAY_SHAPE, PTR)
    work = f.b.mul(f.get(count, I64), head.work)
    f.ret_if(f.b.not_(f.call("ask", I1, application, head.owner, work)), NULL)
    out = f.call("make_tensor", PTR, head.out, ndim, shape, size)
    with f.owned(out) as tensor:
        f.ret_if(f.is_null(out), NULL)
        f.set(f.element(buffers, inputs, PTR), f.load(f.call("array_of", PTR, out), object_layout.ARRAY_DATA, PTR))
        large = f.b.icmp_signed(">=", work, i64(RELEASE_GIL_WORK))
        status = f.call("run", I32, application, buffers, count, head.arena, head.scratch, work, large)
        f.ret_if(f.ne(status, i32(0)), module.symbol("miss"))  # Python says what is wrong
        f.ret(tensor.given())


def _missing(f: Function) -> ir.Value:
    """What stands for an application that there is not: ``miss``, or null with the error of asking for it."""
    failed = f.b.not_(f.is_null(f.call("PyErr_Occurred", PTR)))
    return f.b.select(failed, NULL, f.module.symbol("miss"))


def _try_unary(module: Module) -> None:
    """PyObject *try_unary(operator, object): an op on one tensor, or ``miss``."""
    f = module.function("try_unary", PTR, PTR, PTR)
    operator, obj = f.args
    miss = module.symbol("miss")
    f.ret_if(f.b.not_(_may_answer(f, obj)), miss)
    array = f.call("array_of", PTR, obj)
    f.ret_if(f.is_null(array), miss)
    f.ret_if(f.b.not_(f.call("is_plain", I1, array)), miss)
    application = f.call("application", PTR, operator, array, i64(SAME))
    with f.b.if_then(f.is_null(application), likely=False):
        f.ret(_missing(f))
    buffers = f.local_array(PTR, i64(2))
    f.set(buffers, f.load(array, object_layout.ARRAY_DATA, PTR))
    with f.owned(f.incref(array)):  # the tensor may be given another one meanwhile
        f.ret(f.call("apply", PTR, application, array, buffers, i64(1)))


def _try_binary(module: Module) -> None:
    """PyObject *try_binary(operator, left, right): an op on two tensors of one dtype, of which one may have a single
    element, or on a tensor and a Python number; or ``miss``."""
    f = module.function("try_binary", PTR, PTR, PTR, PTR)
    operator, left, right = f.args
    miss = module.symbol("miss")
    f.ret_if(f.b.not_(_may_answer(f, left, right)), miss)
    x, y = (f.call("array_of", PTR, operand) for operand in (left, right))
    no_x, no_y = f.is_null(x), f.is_null(y)
    f.ret_if(f.b.and_(no_x, no_y), miss)
    buffers, bits = f.local_array(PTR, i64(3)), f.local_array(I64, i64(2))
    shaped, form = f.local(PTR, f.b.select(no_x, y, x)), f.local(I64, i64(SAME))
    f.ret_if(f.b.not_(f.call("is_plain", I1, f.get(shaped, PTR))), miss)
    with f.b.if_else(f.b.or_(no_x, no_y)) as (with_number, tensors):
        with with_number:
            f.set(form, f.b.select(no_x, i64(ELEMENT_LEFT), i64(ELEMENT_RIGHT)))
        with tensors:
            _choose_form(f, x, y, shaped, form)
    application = f.call("application", PTR, operator, f.get(shaped, PTR), f.get(form, I64))
    with f.b.if_then(f.is_null(application), likely=False):
        f.ret(_missing(f))
    for k, (operand, array, none) in enumerate(((left, x, no_x), (right, y, no_y))):
        place = f.at(buffers, k * WORD)
        with f.b.if_else(none) as (number, tensor):
            with number:
                f.ret_if(f.b.not_(f.call("weak_value", I1, operand, application, bits)), miss)
                f.set(place, bits)
            with tensor:
                f.set(place, f.load(array, object_layout.ARRAY_DATA, PTR))
    with f.owned(f.incref(x)), f.owned(f.incref(y)):  # tensors may be given other ones meanwhile
        f.ret(f.call("apply", PTR, application, f.get(shaped, PTR), buffers, i64(2)))


def _choose_form(f: Function, x: ir.Value, y: ir.Value, shaped: ir.Value, form: ir.Value) -> None:
    """For two arrays, of which the first is plain: the form, and the array whose shape the result has; or a miss."""
    miss = f.module.symbol("miss")
    f.ret_if(f.b.not_(f.call("is_plain", I1, y)), miss)
    f.ret_if(f.ne(f.load(x, object_layout.ARRAY_DESCR, PTR), f.load(y, object_layout.ARRAY_DESCR, PTR)), miss)
    ndims = [f.b.sext(f.load(array, object_layout.ARRAY_NDIM, I32), I64) for array in (x, y)]
    shapes = [f.load(array, object_layout.ARRAY_SHAPE, PTR) for array in (x, y)]
    same = f.local(I1, f.eq(*ndims))
    with f.b.if_then(f.get(same, I1), likely=True), f.count(ndims[0]) as axis:
        extents = [f.get(f.element(shape, axis, I64), I64) for shape in shapes]
        f.set(same, f.b.and_(f.get(same, I1), f.eq(*extents)))
    with f.b.if_then(f.b.not_(f.get(same, I1)), likely=False):
        counts = [f.call("count_of", I64, array) for array in (x, y)]
        right = f.b.and_(f.eq(counts[1], i64(1)), f.b.icmp_signed("<=", ndims[1], ndims[0]))
        left = f.b.and_(f.eq(counts[0], i64(1)), f.b.icmp_signed("<=", ndims[0], ndims[1]))
        f.ret_if(f.b.not_(f.b.or_(left, right)), miss)
        f.set(form, f.b.select(right, i64(ELEMENT_RIGHT), i64(ELEMENT_LEFT)))
        f.set(shaped, f.b.select(right, x, y))


# ---- what Python calls


def _answer(f: Function, result: ir.Value) -> None:
    """Return the result, or NotImplemented for a miss."""
    f.ret_if(f.ne(result, f.module.symbol("miss")), result)
    f.ret(f.incref(f.module.symbol("_Py_NotImplementedStruct")))


def _exports(module: Module, offsets: Offsets) -> None:
    """PyObject *unary(operator, args, i64 nargs), and binary: an op as a function of as many tensors."""
    for name, count in (("unary", 1), ("binary", 2)):
        f = module.function(name, PTR, PTR, PTR, I64)
        owner, args, nargs = f.args
        result = f.local(PTR, module.symbol("miss"))
        with f.b.if_then(f.eq(nargs, i64(count)), likely=True):
            record = f.at(f.load(owner, offsets.operator_record, PTR), object_layout.BYTES_DATA)
            operands = [f.load(args, k * WORD, PTR) for k in range(count)]
            f.set(result, entry_code.balanced(f, f"try_{name}", record, *operands))
        _answer(f, f.get(result, PTR))


def _slots(module: Module) -> None:
    """The slots, by the names of their methods: ``slot_add`` ...; ``slot_functions`` holds the function behind each, in
    the order of ``SLOTS``, ``slot_operators`` the OPERATOR of each of ``OPS_OF_SLOTS``, ``slot_wholes`` what does the
    same by plans, or null."""
    module.variable("slot_functions", PTR, len(SLOTS))
    module.variable("slot_wholes", PTR, len(OPS_OF_SLOTS))
    module.variable("slot_operators", PTR, len(OPS_OF_SLOTS))
    for name in (*ARITHMETIC, *SLOTS_OF_ONE):
        operands = 1 if name in SLOTS_OF_ONE else 2
        f = module.function(f"slot_{name}", PTR, *[PTR] * (3 if name == "pow" else operands))
        if name == "pow":
            _other_powers(f)
        _answer_by_op(f, i64(SLOTS.index(name)), f.args[:operands])

    f = module.function("slot_compare", PTR, PTR, PTR, I32)
    x, y, which = f.args
    _answer_by_op(f, f.b.add(f.b.sext(which, I64), i64(SLOTS.index(COMPARISONS[0]))), (x, y))

    f = module.function("slot_matmul", PTR, PTR, PTR)
    f.ret(_call_function(f, i64(SLOTS.index("matmul")), f.args))


def _answer_by_op(f: Function, place: ir.Value, operands: Sequence[ir.Value]) -> None:
    """Return what the op of a slot gives, or else its function."""
    operator = f.get(f.element(f.module.symbol("slot_operators"), place, PTR), PTR)
    name = "try_unary" if len(operands) == 1 else "try_binary"
    result = entry_code.balanced(f, name, operator, *operands)
    f.ret_if(f.ne(result, f.module.symbol("miss")), result)
    whole = f.get(f.element(f.module.symbol("slot_wholes"), place, PTR), PTR)
    with f.b.if_then(f.b.not_(f.is_null(whole))):
        f.ret(_called(f, whole, operands))
    f.ret(_call_function(f, place, operands))


def _other_powers(f: Function) -> None:
    """Return what is no power by a tensor: with a modulus, or a square."""
    place = i64(SLOTS.index("pow"))
    with f.b.if_then(f.ne(f.args[2], f.module.symbol("_Py_NoneStruct")), likely=False):
        f.ret(_call_function(f, place, f.args))
    with f.b.if_then(f.call("is_two", I1, *f.args[:2])):
        square = f.get(f.at(f.module.symbol("slot_operators"), WORD * OPS_OF_SLOTS.index("square")), PTR)
        result = entry_code.balanced(f, "try_unary", square, f.args[0])
        f.ret_if(f.ne(result, f.module.symbol("miss")), result)
        f.ret(_call_function(f, place, f.args[:2]))


def _call_function(f: Function, place: ir.Value, operands: Sequence[ir.Value]) -> ir.Value:
    """What the function behind a slot gives: a new reference, or null."""
    return _called(f, f.get(f.element(f.module.symbol("slot_functions"), place, PTR), PTR), operands)


def _called(f: Function, function: ir.Value, operands: Sequence[ir.Value]) -> ir.Value:
    """What a function gives: a new reference, or null."""
    arguments = f.local_array(PTR, i64(len(operands)))
    for k, operand in enumerate(operands):
        f.store(operand, arguments, k * WORD)
    return f.call("PyObject_Vectorcall", PTR, function, arguments, i64(len(operands)), NULL)


# ---- subscripts


def _is_index(module: Module) -> None:
    """i1 is_index(object): whether it is an int."""
    f = module.function("is_index", I1, PTR, inline=True)
    f.ret(is_type(f, f.args[0], "PyLong_Type"))


def _is_range(module: Module) -> None:
    """i1 is_range(object): None, Ellipsis, or a slice of ints and None."""
    f = module.function("is_range", I1, PTR, inline=True)
    (obj,) = f.args
    none = module.symbol("_Py_NoneStruct")
    f.ret_if(f.b.or_(f.eq(obj, none), f.eq(obj, module.symbol("_Py_EllipsisObject"))), TRUE)
    f.ret_if(f.b.not_(is_type(f, obj, "PySlice_Type")), FALSE)
    for place in (object_layout.SLICE_START, object_layout.SLICE_STOP, object_layout.SLICE_STEP):
        bound = f.load(obj, place, PTR)
        with f.b.if_then(f.ne(bound, none)):
            f.ret_if(f.b.not_(is_type(f, bound, "PyLong_Type")), FALSE)
    f.ret(TRUE)


def _try_subscript(module: Module) -> None:
    """PyObject *try_subscript(tensor, key): a Tensor over the elements that a key of ints, slices, None and Ellipsis
    names, where they lie; or ``miss``, also for what is an error."""
    f = module.function("try_subscript", PTR, PTR, PTR)
    tensor, key = f.args
    miss, ellipsis = module.symbol("miss"), module.symbol("_Py_EllipsisObject")
    f.ret_if(f.b.not_(_may_answer(f, tensor)), miss)
    array = f.call("array_of", PTR, tensor)
    f.ret_if(f.is_null(array), miss)
    f.ret_if(f.b.not_(is_type(f, array, "PyArray_Type")), miss)
    with f.owned(f.incref(array)):
        with f.b.if_then(f.call("is_range", I1, key)):
            f.ret(f.call("view_of", PTR, array, key))
        with f.b.if_then(f.call("is_index", I1, key)):
            f.ret(f.call("view_by", PTR, array, _tuple_of(f, key, ellipsis)))
        f.ret_if(f.b.not_(is_type(f, key, "PyTuple_Type")), miss)
        count = f.load(key, object_layout.SIZE, I64)
        with f.count(count) as i:
            part = f.get(f.element(f.at(key, object_layout.TUPLE_ITEMS), i, PTR), PTR)
            known = f.b.or_(f.call("is_index", I1, part), f.call("is_range", I1, part))
            f.ret_if(f.b.not_(known), miss)
        f.ret(f.call("view_by_tuple", PTR, array, key))


def _tuple_of(f: Function, *values: ir.Value) -> ir.Value:
    """A new tuple of borrowed objects, or null and an error."""
    result = f.call("PyTuple_New", PTR, i64(len(values)))
    f.ret_if(f.is_null(result), NULL)
    for k, value in enumerate(values):
        f.store(f.incref(value), result, object_layout.TUPLE_ITEMS + WORD * k)
    return result


def _views(module: Module) -> None:
    """PyObject *view_of(array, key): a Tensor over ``array[key]``, which is an array; or ``miss`` for an error.

    PyObject *view_by(array, key): the same, and gives back the key, which may be null.
    PyObject *view_by_tuple(array, key): the same for a tuple, to which an Ellipsis is added where there is none, so
    that no element comes out of its array.
    """
    miss = module.symbol("miss")
    f = module.function("view_of", PTR, PTR, PTR)
    view = f.call("PyObject_GetItem", PTR, *f.args)
    with f.b.if_then(f.is_null(view), likely=False):
        f.call("PyErr_Clear", VOID)
        f.ret(miss)
    f.ret(f.call("tensor_over", PTR, view))

    f = module.function("view_by", PTR, PTR, PTR)
    with f.owned(f.args[1]) as key:
        f.ret_if(f.is_null(key.value), NULL)
        f.ret(f.call("view_of", PTR, f.args[0], key.value))

    f = module.function("view_by_tuple", PTR, PTR, PTR)
    array, key = f.args
    ellipsis = module.symbol("_Py_EllipsisObject")
    count = f.load(key, object_layout.SIZE, I64)
    with f.count(count) as i:
        part = f.get(f.element(f.at(key, object_layout.TUPLE_ITEMS), i, PTR), PTR)
        with f.b.if_then(f.eq(part, ellipsis)):
            f.ret(f.call("view_of", PTR, array, key))
    longer = f.call("PyTuple_New", PTR, f.b.add(count, i64(1)))
    f.ret_if(f.is_null(longer), NULL)
    with f.count(count) as i:
        part = f.get(f.element(f.at(key, object_layout.TUPLE_ITEMS), i, PTR), PTR)
        f.call("PyTuple_SetItem", I32, longer, i, f.incref(part))
    f.call("PyTuple_SetItem", I32, longer, count, f.incref(ellipsis))
    f.ret(f.call("view_by", PTR, array, longer))


def _subscript_slot(module: Module) -> None:
    """PyObject *slot_getitem(self, key)."""
    f = module.function("slot_getitem", PTR, PTR, PTR)
    result = entry_code.balanced(f, "try_subscript", *f.args)
    f.ret_if(f.ne(result, module.symbol("miss")), result)
    f.ret(_call_function(f, i64(SLOTS.index("getitem")), f.args))


# ---- conversions

_SIGNED: dict[str, ir.Type] = {f"int{bits}": ir.IntType(bits) for bits in (8, 16, 32, 64)}
_UNSIGNED: dict[str, ir.Type] = {f"uint{bits}": ir.IntType(bits) for bits in (8, 16, 32, 64)}
_FLOATS: dict[str, ir.Type] = {"float32": F32, "float64": F64}
Conversion = Callable[[ir.Value], ir.Value]


def _single(module: Module) -> None:
    """ptr single(object): the array of a tensor of one element, which lies where its data are, or null."""
    f = module.function("single", PTR, PTR, inline=True)
    f.ret_if(f.b.not_(_may_answer(f)), NULL)
    array = f.call("array_of", PTR, f.args[0])
    f.ret_if(f.is_null(array), NULL)
    f.ret_if(f.b.not_(is_type(f, array, "PyArray_Type")), NULL)
    flags = f.b.and_(f.load(array, object_layout.ARRAY_FLAGS, I32), i32(object_layout.ALIGNED))
    f.ret_if(f.eq(flags, i32(0)), NULL)
    f.ret_if(f.ne(f.call("count_of", I64, array), i64(1)), NULL)
    f.ret(array)


def _number_of(f: Function, array: ir.Value) -> ir.Value:
    """The number of the dtype of an array in this machine's byte order, -1 of another one."""
    descr = f.load(array, object_layout.ARRAY_DESCR, PTR)
    swapped = f.eq(f.load(descr, object_layout.DESCR_ORDER, I8), ir.Constant(I8, ord(">")))
    return f.b.select(swapped, i32(-1), f.load(descr, object_layout.DESCR_NUM, I32))


def _conversions(module: Module) -> None:
    """i32 slot_bool(self), PyObject *slot_float(self), slot_int(self), slot_index(self), i64 slot_len(self)."""
    f = module.function("slot_bool", I32, PTR)

    def is_set(value: ir.Value) -> ir.Value:
        zero = ir.Constant(value.type, 0)
        return f.b.zext(f.ne(value, zero), I32)

    def is_not_zero(value: ir.Value) -> ir.Value:
        return f.b.zext(f.b.fcmp_unordered("!=", value, ir.Constant(value.type, 0.0)), I32)

    _of_element(f, ({"bool": I8} | _SIGNED | _UNSIGNED, is_set), (_FLOATS, is_not_zero))
    with f.owned(_call_function(f, i64(SLOTS.index("bool")), f.args), counted=False) as answer:
        f.ret_if(f.is_null(answer.value), i32(-1))
        f.ret(f.call("PyObject_IsTrue", I32, answer.value))

    f = module.function("slot_float", PTR, PTR)

    def as_float(value: ir.Value) -> ir.Value:
        return f.call("PyFloat_FromDouble", PTR, value if value.type == F64 else f.b.fpext(value, F64))

    _of_element(f, (_FLOATS, as_float))
    f.ret(_call_function(f, i64(SLOTS.index("float")), f.args))
    for name in ("int", "index"):
        _int_slot(module, name)

    f = module.function("slot_len", I64, PTR)
    array = f.call("array_of", PTR, f.args[0])
    with f.b.if_then(f.b.not_(f.is_null(array))), f.b.if_then(is_type(f, array, "PyArray_Type")):
        has_axes = f.ne(f.load(array, object_layout.ARRAY_NDIM, I32), i32(0))
        with f.b.if_then(has_axes):
            f.ret(f.get(f.load(array, object_layout.ARRAY_SHAPE, PTR), I64))
    with f.owned(_call_function(f, i64(SLOTS.index("len")), f.args), counted=False) as answer:
        f.ret_if(f.is_null(answer.value), i64(-1))
        f.ret(f.call("PyLong_AsSsize_t", I64, answer.value))


def _int_slot(module: Module, name: str) -> None:
    f = module.function(f"slot_{name}", PTR, PTR)

    def signed(value: ir.Value) -> ir.Value:
        return f.call("PyLong_FromLongLong", PTR, value if value.type == I64 else f.b.sext(value, I64))

    def unsigned(value: ir.Value) -> ir.Value:
        return f.call("PyLong_FromUnsignedLongLong", PTR, value if value.type == I64 else f.b.zext(value, I64))

    _of_element(f, (_SIGNED, signed), (_UNSIGNED, unsigned))
    f.ret(_call_function(f, i64(SLOTS.index(name)), f.args))


def _of_element(f: Function, *kinds: tuple[Mapping[str, ir.Type], Conversion]) -> None:
    """Return what becomes of the one element of a tensor of one of these dtypes."""
    array = f.call("single", PTR, f.args[0])
    with f.b.if_then(f.b.not_(f.is_null(array))), f.switch(_number_of(f, array)) as case:
        for types, convert in kinds:
            for name, type_ in types.items():
                with case(np.dtype(name).num):
                    f.ret(convert(f.get(f.load(array, object_layout.ARRAY_DATA, PTR), type_)))
