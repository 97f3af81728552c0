"""Minima and roots of functions: ``hf.optimize``.

Iterations are loops of the program.  The derivative of a solution is that of the equation which it solves, whatever the
way to it was: it reaches what the function is computed of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TYPE_CHECKING as _TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.array.creation import eye, full, ones_like, zeros, zeros_like
from hybridflow.array.decompositions import solve as linear_solve
from hybridflow.array.elementwise import (
    abs as _abs,
    divide,
    isfinite,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    negative,
    sign,
    stop_gradient,
    where,
)
from hybridflow.array.linalg import outer
from hybridflow.array.reductions import max as _max, sum as _sum
from hybridflow.array.shapes import concat
from hybridflow.autodiff.custom import custom_gradient
from hybridflow.autodiff.functional import grad, value_and_grad
from hybridflow.autodiff.jacobians import jacfwd, jvp
from hybridflow.compiler.ops import type_rules
from hybridflow.control.loops import while_loop
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor, cast, float_operand, reshape_to
from hybridflow.effects.runtime_raise import check_all
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError, entered
from hybridflow.linalg.krylov import cg

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


__all__ = ["OptimizeResult", "RootResult", "minimize", "root_scalar"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)

_DENSE = 1000  # elements up to which the Hessian is made, and its equation solved at once
_TRIALS = 40  # steps that a line search looks at
_DECREASE, _CURVATURE = 1e-4, 0.9


class OptimizeResult(NamedTuple):
    """What ``minimize`` returns."""

    x: Tensor
    fun: Tensor
    grad: Tensor
    iterations: Tensor
    evaluations: Tensor
    converged: Tensor


class RootResult(NamedTuple):
    """What ``root_scalar`` returns."""

    root: Tensor
    iterations: Tensor
    converged: Tensor


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return _sum(x * y)


def _is_double(x: Tensor) -> bool:
    return x.dtype == np.float64


class _Step(NamedTuple):
    """What a line search ends with."""

    t: Tensor
    x: Tensor
    value: Tensor
    slope: Tensor
    evaluations: Tensor
    done: Tensor


def _line_search(evaluate: Callable[[Tensor], Any], x: Tensor, value: Tensor, slope: Tensor, way: Tensor) -> _Step:
    """A step along ``way`` that fulfils the weak Wolfe conditions, by doubling and halving."""
    steep = _dot(slope, way)
    zero = zeros_like(value)

    def search(low: Tensor, high: Tensor, t: Tensor, count: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        there = x + t * way
        new_value, new_slope = evaluate(there)
        falls = new_value <= value + _DECREASE * t * steep
        flat = _dot(new_slope, way) >= _CURVATURE * steep
        done = logical_and(falls, flat)
        high = where(logical_or(falls, done), high, t)
        low = where(logical_and(falls, logical_not(flat)), t, low)
        following = where(isfinite(high), (low + high) * 0.5, 2 * t)
        return (
            low,
            high,
            where(done, t, following),
            count + 1,
            there,
            new_value,
            new_slope,
            logical_or(done, falls),
            done,
        )

    start = (zero, zero + np.inf, zero + 1, 0, x, value, slope, False, False)
    state = while_loop(lambda *s: logical_and(logical_not(s[-1]), s[3] < _TRIALS), search, start)
    _, _, t, count, there, new_value, new_slope, falls, _ = state
    return _Step(t, there, new_value, new_slope, count, falls)


def _updated(h: Tensor, s: Tensor, y: Tensor, first: Tensor) -> Tensor:
    """The inverse Hessian after a step, by the formula of Broyden, Fletcher, Goldfarb and Shanno."""
    curvature = _dot(s, y)
    usable = curvature > 0
    scale = where(usable, curvature, 1.0)
    h = where(logical_and(first, usable), h * divide(scale, maximum(_dot(y, y), np.finfo(h.dtype).tiny)), h)
    rho, hy = divide(1.0, scale), h @ y
    new = h - rho * (outer(s, hy) + outer(hy, s)) + rho * (1.0 + rho * _dot(y, hy)) * outer(s, s)
    return where(usable, new, h)


def _direction(slope: Tensor, steps: Tensor, changes: Tensor, rho: Tensor, scale: Tensor) -> Tensor:
    """The product of the slope with the inverse Hessian of the last steps, newest last."""
    count, shares, q = steps.shape[0], [], slope
    for k in reversed(range(count)):
        shares.append(rho[k] * _dot(steps[k], q))
        q = q - shares[-1] * changes[k]
    q = q * scale
    for k in range(count):
        q = q + (shares[count - 1 - k] - rho[k] * _dot(changes[k], q)) * steps[k]
    return q


def _function(stage: str, fun: object, args: object, shape: tuple[Any, ...]) -> Callable[[Tensor], Tensor]:
    if not callable(fun):
        raise ArgumentTypeError(stage, f"{fun!r} is not callable.")
    extra = tuple(args) if isinstance(args, (list, tuple)) else (args,)

    def value(x: Tensor) -> Tensor:
        result = as_tensor(fun(reshape_to(x, shape), *extra), stage)
        if result.shape:
            raise ShapeError(stage, f"the function returned {result.type}. Expected a number.")
        return cast(result, x.dtype)

    return value


@entered
def minimize(
    fun: Callable[..., Any],
    x0: object,
    args: object = (),
    method: str = "bfgs",
    tol: float | None = None,
    maxiter: int | None = None,
    memory: int = 10,
) -> OptimizeResult:
    """A local minimum of a smooth function, from its gradients.

    It stops where no element of the gradient is larger than ``tol``, or no step along the way makes progress.

    The derivative of ``x`` is that of the equation "the gradient is zero": with the Hessian, or by
    conjugate gradients for more than 1000 elements (``hf.grad`` alone then).

    Args:
        fun: a function of ``x`` and ``args`` that returns a number.
        x0: where to start: a float tensor of any shape.
        args: more arguments of ``fun``.
        method: "bfgs", which keeps a matrix, or "lbfgs", which keeps the last steps.
        tol: the largest element of the gradient; 1e-5 by default, 1e-4 in float32.
        maxiter: the largest number of iterations; 200 for each element by default, at most 15000.
        memory: how many steps "lbfgs" keeps.

    Returns:
        ``x``, the value and gradient there, the numbers of iterations and evaluations, and whether it converged.

    Raises:
        ArgumentError: for another method, or a bad number.
        ShapeError: where the function returns no number.

    Example:
        >>> found = hf.optimize.minimize(lambda x: hf.sum((x - 3.0) ** 2), [0.0, 1.0])
        >>> [round(v, 3) for v in found.x.tolist()]
        [3.0, 3.0]
    """
    stage = "optimize.minimize"
    if method not in ("bfgs", "lbfgs"):
        raise ArgumentError(stage, f"method is {method!r}. Expected 'bfgs' or 'lbfgs'.")
    start = float_operand(x0, stage)
    shape, n = start.shape, start.size
    if not isinstance(n, int):
        raise ShapeError(stage, f"x0 is {start.type}. Expected a tensor whose size is known.")
    most = min(200 * n, 15000) if maxiter is None else type_rules.integer(stage, "maxiter", maxiter)
    kept = type_rules.integer(stage, "memory", memory)
    if most < 0 or kept < 1:
        raise ArgumentError(stage, f"maxiter is {most} and memory {kept}. Expected at least 0 and 1.")
    limit = cast(as_tensor((1e-5 if _is_double(start) else 1e-4) if tol is None else tol, stage), start.dtype)
    value_of = _function(stage, fun, args, shape)
    evaluate = value_and_grad(value_of)
    x = reshape_to(start, (n,))
    value, slope = evaluate(x)
    one = ones_like(value)
    if method == "bfgs":
        memory_: tuple[Tensor, ...] = (eye(n, dtype=x.dtype),)
    else:
        memory_ = (zeros((kept, n), x.dtype), zeros((kept, n), x.dtype), zeros(kept, x.dtype), one)

    def goes_on(k: Tensor, _: Tensor, stuck: Tensor, x: Tensor, value: Tensor, slope: Tensor, *rest: Tensor) -> Tensor:
        far = logical_not(_largest(slope) <= limit)
        return logical_and(logical_and(k < most, far), logical_not(stuck))

    def iteration(
        k: Tensor, count: Tensor, _: Tensor, x: Tensor, value: Tensor, slope: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        way = negative(rest[0] @ slope if method == "bfgs" else _direction(slope, *rest))
        # The first step, of which nothing is known, is no longer than 1.
        length = _dot(slope, slope) ** 0.5
        way = where(k == 0, way * minimum(one, divide(one, maximum(length, np.finfo(x.dtype).tiny))), way)
        way = where(_dot(way, slope) < 0, way, negative(slope))
        step = _line_search(evaluate, x, value, slope, way)
        new_x, new_value = where(step.done, step.x, x), where(step.done, step.value, value)
        new_slope = where(step.done, step.slope, slope)
        s, y = new_x - x, new_slope - slope
        if method == "bfgs":
            following: tuple[Tensor, ...] = (where(step.done, _updated(rest[0], s, y, k == 0), rest[0]),)
        else:
            curvature = _dot(s, y)
            usable = logical_and(step.done, curvature > 0)
            safe = where(usable, curvature, one)
            added = (s[None], y[None], reshape_to(divide(one, safe), (1,)))
            moved = [where(usable, concat([old[1:], new]), old) for old, new in zip(rest, added)]
            scale = where(usable, divide(safe, maximum(_dot(y, y), np.finfo(x.dtype).tiny)), rest[3])
            following = (*moved, scale)
        stuck = logical_or(logical_not(step.done), _largest(s) == 0)
        return k + 1, count + step.evaluations, stuck, new_x, new_value, new_slope, *following

    state = while_loop(goes_on, iteration, (0, 1, False, x, value, slope, *memory_))
    iterations, evaluations, _, x, *_ = state
    x = _at_minimum(value_of, stop_gradient(x))
    value, slope = evaluate(x)
    converged = _largest(slope) <= limit
    return OptimizeResult(
        reshape_to(x, shape), value, reshape_to(slope, shape), as_tensor(iterations, stage), evaluations, converged
    )


def _largest(x: Tensor) -> Tensor:
    return _max(_abs(x)) if x.size else full((), 0, dtype=x.dtype)


def _at_minimum(value_of: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """``x`` with the derivative of the equation that the gradient is zero there."""
    slope_of = grad(value_of)

    def solve(cotangent: Tensor) -> Tensor:
        if x.shape[0] <= _DENSE:
            return linear_solve(jacfwd(slope_of)(x), cotangent)
        tolerance = 1e-10 if _is_double(x) else 1e-6
        return cg(lambda v: jvp(slope_of, (x,), (v,))[1], cotangent, tol=tolerance).solution

    @custom_gradient
    def correction(residual: ArrayLike) -> Any:
        return zeros_like(residual), solve

    return x + correction(negative(slope_of(x)))


@entered
def root_scalar(
    f: Callable[..., Any],
    args: object = (),
    method: str | None = None,
    bracket: object = None,
    x0: object = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int = 100,
) -> RootResult:
    """A root of a function of one number.

    "brentq" needs a bracket, at whose ends the function has different signs.  "newton" needs a place to start, and
    takes the derivative of the function.

    The derivative of the root is that of the equation ``f(x) == 0``.

    Args:
        f: a function of ``x`` and ``args`` that returns a number.
        args: more arguments of ``f``.
        method: "brentq" or "newton"; the first where there is a bracket.
        bracket: two numbers.
        x0: where to start.
        xtol: the absolute tolerance; 2e-12 by default, 1e-6 in float32.
        rtol: the relative tolerance; four times the dtype's epsilon by default.
        maxiter: the largest number of iterations.

    Returns:
        The root, the number of iterations, and whether it converged.

    Raises:
        ArgumentError: for another method, without a bracket or a start, and where the signs are the same.
        ShapeError: where the function returns no number.

    Example:
        >>> found = hf.optimize.root_scalar(lambda x: x ** 2 - 2.0, bracket=(0.0, 2.0))
        >>> round(found.root.item(), 4)
        1.4142
    """
    stage = "optimize.root_scalar"
    name = ("newton" if bracket is None else "brentq") if method is None else method
    if name not in ("brentq", "newton"):
        raise ArgumentError(stage, f"method is {method!r}. Expected 'brentq' or 'newton'.")
    needed = bracket if name == "brentq" else x0
    if needed is None:
        raise ArgumentError(stage, f"{name!r} needs {'a bracket' if name == 'brentq' else 'x0, a place to start'}.")
    start = float_operand(needed, stage)
    if start.shape != ((2,) if name == "brentq" else ()):
        raise ShapeError(stage, f"{'bracket' if name == 'brentq' else 'x0'} is {start.type}. Expected numbers.")
    most = type_rules.integer(stage, "maxiter", maxiter)
    absolute = cast(as_tensor((2e-12 if _is_double(start) else 1e-6) if xtol is None else xtol, stage), start.dtype)
    relative = cast(as_tensor(4 * np.finfo(start.dtype).eps if rtol is None else rtol, stage), start.dtype)
    function = _function(stage, f, args, ())
    if name == "brentq":
        root, count, done = _brent(stage, function, start, absolute, relative, most)
    else:
        root, count, done = _newton(function, start, absolute, relative, most)
    root = stop_gradient(root)

    @custom_gradient
    def correction(residual: ArrayLike) -> Any:
        return zeros_like(residual), lambda cotangent: divide(cotangent, grad(function)(root))

    return RootResult(root + correction(negative(function(root))), as_tensor(count, stage), done)


def _newton(f: Callable[[Tensor], Tensor], x: Tensor, xtol: Tensor, rtol: Tensor, most: int) -> tuple[Any, Any, Any]:
    evaluate = value_and_grad(f)

    def iteration(x: Tensor, k: Tensor, done: Tensor) -> tuple[Tensor, ...]:
        value, slope = evaluate(x)
        step = where(value == 0, 0.0, divide(value, slope))
        new = x - step
        return new, k + 1, _abs(step) <= xtol + rtol * _abs(new)

    state: tuple[Any, Any, Any] = while_loop(
        lambda x, k, done: logical_and(logical_not(done), k < most), iteration, (x, 0, full((), False))
    )
    return state


def _brent(
    stage: str, f: Callable[[Tensor], Tensor], bracket: Tensor, xtol: Tensor, rtol: Tensor, most: int
) -> tuple[Any, Any, Any]:
    """Inverse quadratic interpolation, the secant, or halves, whichever is sure to get closer."""
    first, last = bracket[0], bracket[1]
    low, high = f(first), f(last)
    same = sign(low) * sign(high) > 0
    said = "the function has the same sign at both ends of the bracket."
    check_all(logical_not(same), ArgumentError, lambda: ArgumentError(stage, said), (), said)
    done = logical_or(low == 0, high == 0)
    zero = zeros_like(first)
    start = (first, where(low == 0, first, last), zero, low, where(low == 0, low, high), zero, zero, zero, 0, done)

    def iteration(*state: Tensor) -> tuple[Tensor, ...]:
        before, here, other, f_before, f_here, f_other, s_before, s_here, k, _ = state
        changed = sign(f_before) * sign(f_here) < 0
        other, f_other = where(changed, before, other), where(changed, f_before, f_other)
        s_before, s_here = where(changed, here - before, s_before), where(changed, here - before, s_here)
        closer = _abs(f_other) < _abs(f_here)
        before, f_before = where(closer, here, before), where(closer, f_here, f_before)
        here, f_here, other, f_other = (
            where(closer, other, here),
            where(closer, f_other, f_here),
            where(closer, before, other),
            where(closer, f_before, f_other),
        )
        least, half = (xtol + rtol * _abs(here)) * 0.5, (other - here) * 0.5
        done = logical_or(f_here == 0, _abs(half) < least)
        secant = divide(-f_here * (here - before), f_here - f_before)
        one, two = divide(f_before - f_here, before - here), divide(f_other - f_here, other - here)
        quadratic = divide(-f_here * (f_other * two - f_before * one), two * one * (f_other - f_before))
        tried = where(before == other, secant, quadratic)
        short = 2 * _abs(tried) < minimum(_abs(s_before), 3 * _abs(half) - least)
        taken = logical_and(logical_and(_abs(s_before) > least, _abs(f_here) < _abs(f_before)), short)
        s_before, s_here = where(taken, s_here, half), where(taken, tried, half)
        moved = here + where(_abs(s_here) > least, s_here, where(half > 0, least, -least))
        new = where(done, here, moved)
        return here, new, other, f_here, f(new), f_other, s_before, s_here, k + 1, done

    last_state = while_loop(lambda *s: logical_and(logical_not(s[-1]), s[-2] < most), iteration, start)
    return last_state[1], last_state[-2], last_state[-1]
