"""LLVM code that calculates extents from those that arguments have (see ``dims``)."""

from __future__ import annotations

from hybridflow.runtime.native.ir_builder import FALSE, I1, I64, PTR, TRUE, Module, i64
from hybridflow.runtime.native.records import DIM_STEP, DIM_STEPS, HEAD


def define(module: Module) -> None:
    """i1 derive_dims(record, dims): fill the places of the array that arguments do not give; whether those that they
    give are what they should be, and every number fits 64 bits."""
    f = module.function("derive_dims", I1, PTR, PTR)
    record, dims = f.args
    head = HEAD.at(f, record)
    steps = head.dim_steps
    with f.count(head.dim_step_count) as i:
        step = DIM_STEP.at(f, f.element(steps, f.b.mul(i, i64(DIM_STEP.size)), I64))
        left, right = f.get(f.element(dims, step.left, I64), I64), f.local(I64, step.right)
        with f.b.if_then(f.ne(step.is_place, i64(0))):
            f.set(right, f.get(f.element(dims, f.get(right, I64), I64), I64))
        op, other = step.op, f.get(right, I64)
        target = f.element(dims, step.target, I64)
        with f.b.if_then(f.eq(op, i64(DIM_STEPS["same"]))):
            f.ret_if(f.ne(left, other), FALSE)
        for name, operation in (("add", f.b.sadd_with_overflow), ("multiply", f.b.smul_with_overflow)):
            with f.b.if_then(f.eq(op, i64(DIM_STEPS[name]))):
                result = operation(left, other)
                f.ret_if(f.b.extract_value(result, 1), FALSE)
                f.set(target, f.b.extract_value(result, 0))
        with f.b.if_then(f.eq(op, i64(DIM_STEPS["divide"]))):
            f.ret_if(f.b.icmp_signed("<=", other, i64(0)), FALSE)
            whole, rest = f.b.sdiv(left, other), f.b.srem(left, other)
            below = f.b.icmp_signed("<", rest, i64(0))
            f.set(target, f.b.select(below, f.b.sub(whole, i64(1)), whole))
    f.ret(TRUE)
