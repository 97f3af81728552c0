"""Integrals and differential equations: ``hf.integrate``.

Adaptive methods are loops of the program.  Derivatives are those of the steps that were taken, of any order; the sizes
of steps count as constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridflow.array.creation import eye, full, ones_like, zeros, zeros_like
from hybridflow.array.decompositions import lu_factor, lu_solve
from hybridflow.array.elementwise import (
    abs as _abs,
    clip,
    divide,
    isfinite,
    isinf,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    sign,
    stop_gradient,
    where,
)
from hybridflow.array.reductions import all as _all, argmax, mean, sum as _sum
from hybridflow.array.shapes import concat, moveaxis, stack
from hybridflow.autodiff.jacobians import jacfwd, jvp
from hybridflow.compiler.ops import type_rules
from hybridflow.control.loops import while_loop
from hybridflow.control.scan import scan
from hybridflow.core import name_hints as _name_hints
from hybridflow.core.promotion import promote
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor, cast, float_operand, reshape_to
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError, entered

__all__ = ["OdeResult", "QuadResult", "odeint", "quad", "simpson", "solve_ivp"]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)


class OdeResult(NamedTuple):
    """What ``solve_ivp`` returns."""

    t: Tensor
    y: Tensor
    steps: Tensor
    success: Tensor


class QuadResult(NamedTuple):
    """What ``quad`` returns."""

    value: Tensor
    error: Tensor
    success: Tensor


# Dormand and Prince's pair of orders 5 and 4.
_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_DIFFERENCE = (-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40)
_METHODS = {"dopri5": 5, "RK45": 5, "rosenbrock23": 3, "ode23s": 3}

Field = Callable[[Tensor, Tensor], Tensor]
Step = Callable[[Tensor, Tensor, Tensor, Tensor], "tuple[Tensor, Tensor, Tensor]"]


def _combined(factors: Sequence[float], slopes: Sequence[Tensor]) -> Tensor:
    terms = [factor * slope for factor, slope in zip(factors, slopes) if factor]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _dopri5(field: Field) -> Step:
    """A step of the explicit method: the new values, the slope there, and the error."""

    def step(t: Tensor, y: Tensor, slope: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        slopes, there = [slope], y
        for node, factors in zip(_NODES, _STAGES):
            there = y + h * _combined(factors, slopes)
            slopes.append(field(t + node * h, there))
        return there, slopes[-1], h * _combined(_DIFFERENCE, slopes)

    return step


def _rosenbrock23(field: Field) -> Step:
    """A step of Shampine's L-stable method of orders 2 and 3, which solves three linear equations."""
    d, e = 1 / (2 + 2**0.5), 6 + 2**0.5

    def step(t: Tensor, y: Tensor, slope: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shape, n = y.shape, y.size
        if not isinstance(n, int):
            raise ShapeError("rosenbrock23", f"y0 is {y.type}. Expected a tensor whose size is known.")
        flat = reshape_to(y, (n,))

        def at(t: Tensor, y: Tensor) -> Tensor:
            return reshape_to(field(t, reshape_to(y, shape)), (n,))

        jacobian = jacfwd(lambda y: at(t, y))(flat)
        drift = jvp(lambda t: at(t, flat), (t,), (ones_like(t),))[1]
        factors = lu_factor(eye(n, dtype=y.dtype) - h * d * jacobian)

        def solved(x: Tensor) -> Tensor:
            return lu_solve(factors, x)

        f0 = reshape_to(slope, (n,))
        k1 = solved(f0 + h * d * drift)
        f1 = at(t + 0.5 * h, flat + 0.5 * h * k1)
        k2 = solved(f1 - k1) + k1
        new = flat + h * k2
        f2 = at(t + h, new)
        k3 = solved(f2 - e * (k2 - f1) - 2 * (k1 - f0) + h * d * drift)
        error = h / 6 * (k1 - 2 * k2 + k3)
        return reshape_to(new, shape), reshape_to(f2, shape), reshape_to(error, shape)

    return step


def _norm(x: Tensor) -> Tensor:
    return mean(x * x) ** 0.5 if x.size else zeros((), x.dtype)


def _first_step(field: Field, t: Tensor, y: Tensor, slope: Tensor, way: Tensor, tol: Any, order: int) -> Tensor:
    """A size to start with, by how fast the slope changes."""
    scale = tol[1] + tol[0] * _abs(y)
    size, speed = _norm(divide(y, scale)), _norm(divide(slope, scale))
    short = logical_or(size < 1e-5, speed < 1e-5)
    h0 = where(short, 1e-6, 0.01 * divide(size, where(short, 1.0, speed)))
    change = _norm(divide(field(t + way * h0, y + way * h0 * slope) - slope, scale)) / h0
    fastest = maximum(speed, change)
    h1 = where(
        fastest <= 1e-15, maximum(1e-6, h0 * 1e-3), (0.01 / where(fastest <= 1e-15, 1.0, fastest)) ** (1 / order)
    )
    return minimum(100 * h0, h1)


def _solve(
    stage: str, field: Field, y0: Tensor, t: Tensor, rtol: Any, atol: Any, method: str, most: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The values at all times, the number of steps, and whether all were reached."""
    order = _METHODS[method]
    step = (_dopri5 if order == 5 else _rosenbrock23)(field)
    tol = tuple(cast(as_tensor(x, stage), y0.dtype) for x in (rtol, atol))
    first, slope = t[0], field(t[0], y0)
    way = sign(t[-1] - first)
    h = stop_gradient(_first_step(field, first, y0, slope, way, tol, order))

    def to_next(state: Any, target: Tensor) -> tuple[Any, Tensor]:
        def goes_on(t: Tensor, y: Tensor, slope: Tensor, h: Tensor, steps: Tensor, failed: Tensor) -> Tensor:
            return logical_and(logical_and((target - t) * way > 0, steps < most), logical_not(failed))

        def attempt(t: Tensor, y: Tensor, slope: Tensor, h: Tensor, steps: Tensor, failed: Tensor) -> tuple[Any, ...]:
            left = (target - t) * way
            last = h >= left
            used = where(last, left, h)
            new, new_slope, error = step(t, y, slope, way * used)
            scale = tol[1] + tol[0] * maximum(_abs(y), _abs(new))
            off = stop_gradient(_norm(divide(error, scale)))
            off = where(logical_and(isfinite(off), _all(isfinite(new))), off, np.inf)
            good = off <= 1
            factor = clip(0.9 * maximum(off, 1e-10) ** (-1 / order), 0.2, 10.0)
            size = stop_gradient(used) * where(good, maximum(factor, 0.2), minimum(factor, 1.0))
            size = where(logical_and(good, last), maximum(size, h), size)
            tiny = size <= 4 * np.finfo(y.dtype).eps * _abs(stop_gradient(t))
            there = where(last, target, t + way * used)
            return (
                where(good, there, t),
                where(good, new, y),
                where(good, new_slope, slope),
                size,
                steps + 1,
                logical_and(logical_not(good), logical_or(tiny, size == 0)),
            )

        state = while_loop(goes_on, attempt, state)
        reached = logical_not((target - state[0]) * way > 0)
        return state, where(reached, state[1], np.nan)

    start = (first, y0, slope, h, 0, False)
    states = [start]
    values = [y0]
    if t.shape[0] <= 3:
        for k in range(1, t.shape[0]):
            state, value = to_next(states[-1], t[k])
            states.append(state)
            values.append(value)
        whole, last = stack(values), states[-1]
    else:
        last, whole = _iterate(to_next, start, y0, t)
    reached = logical_not((t[-1] - last[0]) * way > 0)
    return whole, as_tensor(last[4], stage), reached


def _iterate(to_next: Any, start: object, y0: Tensor, t: Tensor) -> tuple[Any, Tensor]:
    """All times after the first, one after another."""

    def iteration(carry: Any, target: Tensor) -> Any:
        state, value = to_next(carry[0], target)
        return state, value

    trajectory = scan(iteration, t[1:], (start, y0))
    state, values = trajectory
    return tuple(part[-1] for part in state), concat([y0[None], values])


def _method(stage: str, name: object) -> str:
    if name not in _METHODS:
        raise ArgumentError(stage, f"method is {name!r}. Expected one of {', '.join(sorted(_METHODS))}.")
    return str(name)


def _field(stage: str, function: object, args: tuple[Any, ...], time_first: bool, y0: Tensor) -> Field:
    if not callable(function):
        raise ArgumentTypeError(stage, f"{function!r} is not callable.")

    def field(t: Tensor, y: Tensor) -> Tensor:
        slope = as_tensor(function(t, y, *args) if time_first else function(y, t, *args), stage)
        if slope.shape != y0.shape:
            raise ShapeError(stage, f"the function returned {slope.type} for {y0.type}. Expected the same shape.")
        return cast(slope, y0.dtype)

    return field


def _times(stage: str, t: object, y: object, what: str) -> tuple[Tensor, Tensor]:
    times, y0 = float_operand(t, stage), float_operand(y, stage)
    if times.ndim != 1 or not isinstance(times.shape[0], int) or times.shape[0] < 1:
        raise ShapeError(stage, f"{what} is {times.type}. Expected one time or more along one axis.")
    dtype = promote(times.dtype, y0.dtype, stage)
    return cast(times, dtype), cast(y0, dtype)


@entered
def odeint(
    func: Callable[..., Any],
    y0: object,
    t: object,
    *args: object,
    rtol: object = 1.4e-8,
    atol: object = 1.4e-8,
    method: str = "dopri5",
    max_steps: int = 100_000,
) -> Tensor:
    """The solution of ``dy/dt = func(y, t, *args)`` at given times.

    Args:
        func: a function of ``y``, ``t`` and ``args`` that returns the derivative of ``y``.
        y0: the values at the first time, a tensor of any shape.
        t: times that rise, or fall.
        *args: more arguments of ``func``.
        rtol: the relative tolerance of a step.
        atol: the absolute tolerance of a step.
        method: "dopri5", or "rosenbrock23" for stiff equations.
        max_steps: the largest number of steps that are tried.

    Returns:
        A tensor of shape ``(len(t), *y0.shape)``; NaN at times that were not reached.

    Raises:
        ArgumentError: for another method.
        ShapeError: where times or what ``func`` returns have another shape.

    Example:
        >>> y = hf.integrate.odeint(lambda y, t: -y, 1.0, [0.0, 1.0], rtol=1e-5, atol=1e-6)
        >>> [round(v, 3) for v in y.tolist()]
        [1.0, 0.368]
    """
    stage = "integrate.odeint"
    kind = _method(stage, method)
    times, start = _times(stage, t, y0, "t")
    most = type_rules.integer(stage, "max_steps", max_steps)
    return _solve(stage, _field(stage, func, args, False, start), start, times, rtol, atol, kind, most)[0]


@entered
def solve_ivp(
    fun: Callable[..., Any],
    t_span: object,
    y0: object,
    method: str = "RK45",
    t_eval: object = None,
    args: object = (),
    rtol: object = 1e-3,
    atol: object = 1e-6,
    max_steps: int = 100_000,
) -> OdeResult:
    """The solution of ``dy/dt = fun(t, y, *args)`` from one time to another.

    Args:
        fun: a function of ``t``, ``y`` and ``args`` that returns the derivative of ``y``.
        t_span: the first and the last time.
        y0: the values at the first time, a tensor of any shape.
        method: "RK45" (the same as "dopri5"), or "rosenbrock23" (the same as "ode23s") for stiff equations.
        t_eval: times between the two at which values are wanted; the two by default.
        args: more arguments of ``fun``.
        rtol: the relative tolerance of a step.
        atol: the absolute tolerance of a step.
        max_steps: the largest number of steps that are tried.

    Returns:
        The times, the values ``(len(t), *y0.shape)``, the number of steps, and whether the last time was reached.

    Raises:
        ArgumentError: for another method.
        ShapeError: where times or what ``fun`` returns have another shape.

    Example:
        >>> found = hf.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0])
        >>> [round(v, 2) for v in found.y[-1].tolist()]
        [0.37]
    """
    stage = "integrate.solve_ivp"
    kind = _method(stage, method)
    span, start = _times(stage, t_span, y0, "t_span")
    if span.shape != (2,):
        raise ShapeError(stage, f"t_span is {span.type}. Expected two times.")
    extra = tuple(args) if isinstance(args, (list, tuple)) else (args,)
    field = _field(stage, fun, extra, True, start)
    wanted = span if t_eval is None else cast(_times(stage, t_eval, y0, "t_eval")[0], span.dtype)
    times = span if t_eval is None else concat([span[:1], wanted])
    most = type_rules.integer(stage, "max_steps", max_steps)
    y, steps, success = _solve(stage, field, start, times, rtol, atol, kind, most)
    return OdeResult(wanted, y if t_eval is None else y[1:], steps, success)


# Kronrod's 15 points and weights, and Gauss's weights of every other point.
_POINTS = (
    *(0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926),
    *(0.741531185599394439863864773280788, 0.586087235467691130294144691693013, 0.405845151377397166906606412076961),
    *(0.207784955007898467600689403773245, 0.000000000000000000000000000000000),
)
_KRONROD = (
    *(0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518),
    *(0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014),
    *(0.204432940075298892414161999234649, 0.209482141084727828012999174891714),
)
_GAUSS = (
    *(0.0, 0.129484966168869693270611432679082, 0.0, 0.279705391489276667901467771423780),
    *(0.0, 0.381830050505118944950369775488975, 0.0, 0.417959183673469387755102040816327),
)


def _both_sides(half: Sequence[float], odd: bool = False) -> np.ndarray:
    return np.array([*((-x if odd else x) for x in half), *half[-2::-1]])


@entered
def quad(
    func: Callable[..., Any],
    a: object,
    b: object,
    args: object = (),
    epsabs: float | None = None,
    epsrel: float | None = None,
    limit: int = 50,
) -> QuadResult:
    """The integral of a function from ``a`` to ``b``, which may be infinite.

    Intervals with the largest error are halved until the error is small, by rules of 15 points.

    Args:
        func: a function of a tensor of points and ``args`` that returns a value for each point.
        a: the lower end, a number.
        b: the upper end, a number.
        args: more arguments of ``func``.
        epsabs: the absolute tolerance; 1.49e-8 by default, 1e-5 in float32.
        epsrel: the relative tolerance; the same by default.
        limit: the largest number of intervals.

    Returns:
        The integral, an estimate of its error, and whether the tolerance was reached.

    Raises:
        ArgumentError: for a limit below 1.
        ShapeError: where ends are not numbers, or ``func`` returns another shape.

    Example:
        >>> round(hf.integrate.quad(lambda x: x ** 2, 0.0, 3.0).value.item(), 4)
        9.0
    """
    stage = "integrate.quad"
    if not callable(func):
        raise ArgumentTypeError(stage, f"{func!r} is not callable.")
    low, high = float_operand(a, stage), float_operand(b, stage)
    if low.shape or high.shape:
        raise ShapeError(stage, f"the ends are {low.type} and {high.type}. Expected numbers.")
    most = type_rules.integer(stage, "limit", limit)
    if most < 1:
        raise ArgumentError(stage, f"limit is {most}. Expected 1 or more.")
    dtype = promote(low.dtype, high.dtype, stage)
    low, high = cast(low, dtype), cast(high, dtype)
    usual = 1.49e-8 if dtype == np.float64 else 1e-5
    absolute, relative = (usual if x is None else x for x in (epsabs, epsrel))
    extra = tuple(args) if isinstance(args, (list, tuple)) else (args,)
    points, kronrod, gauss = (
        as_tensor(x.astype(dtype), stage)
        for x in (_both_sides(_POINTS, True), _both_sides(_KRONROD), _both_sides(_GAUSS))
    )
    endless = logical_or(isinf(low), isinf(high))
    # x = t / (1 - t**2) where an end is infinite; else x = t.
    first, last = (where(endless, where(isinf(x), sign(x), _inverse(where(isinf(x), 0.0, x))), x) for x in (low, high))

    def values(t: Tensor) -> Tensor:
        safe = where(endless, t, 0.0)
        room = 1.0 - safe * safe
        x = where(endless, safe / room, t)
        integrand = as_tensor(func(x, *extra), stage)
        if integrand.shape != x.shape:
            raise ShapeError(
                stage, f"the function returned {integrand.type} for {x.type}. Expected a value for each point."
            )
        weight = where(endless, (1.0 + safe * safe) / (room * room), 1.0)
        return cast(integrand, dtype) * weight

    def rule(begin: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        half, middle = (end - begin) * 0.5, (end + begin) * 0.5
        y = values(middle + half * points)
        fine, coarse = _sum(y * kronrod) * half, _sum(y * gauss) * half
        return fine, _abs(fine - coarse)

    places = as_tensor(np.arange(most), stage)

    def put(x: Tensor, at: object, value: Tensor) -> Tensor:
        return where(places == at, value, x)

    value, error = rule(first, last)
    blank = zeros(most, dtype)
    start = (put(blank, 0, first), put(blank, 0, last), put(blank, 0, value), put(blank, 0, stop_gradient(error)), 1)

    def enough(values: Tensor, errors: Tensor) -> Tensor:
        total = stop_gradient(_sum(values))
        return _sum(errors) <= maximum(absolute, relative * _abs(total))

    def goes_on(begins: Tensor, ends: Tensor, values: Tensor, errors: Tensor, count: Tensor) -> Tensor:
        return logical_and(count < most, logical_not(enough(values, errors)))

    def halve(begins: Tensor, ends: Tensor, values: Tensor, errors: Tensor, count: Tensor) -> tuple[Any, ...]:
        worst = argmax(errors)
        begin, end = begins[worst], ends[worst]
        middle = (begin + end) * 0.5
        left, left_error = rule(begin, middle)
        right, right_error = rule(middle, end)
        return (
            put(begins, count, middle),
            put(put(ends, worst, middle), count, end),
            put(put(values, worst, left), count, right),
            put(put(errors, worst, stop_gradient(left_error)), count, stop_gradient(right_error)),
            count + 1,
        )

    _, _, parts, errors, _ = while_loop(goes_on, halve, start)
    return QuadResult(_sum(parts), _sum(errors), enough(parts, errors))


def _inverse(x: Tensor) -> Tensor:
    """The t with ``t / (1 - t**2) == x``."""
    return divide(2 * x, 1 + (1 + 4 * x * x) ** 0.5)


@entered
def simpson(y: object, x: object = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral of samples by Simpson's rule.

    Where their number is even, the last interval is integrated by the parabola through the last three samples.

    Args:
        y: samples, of any shape.
        x: where they were taken: one axis, or the shape of ``y``; ``dx`` apart by default.
        dx: how far apart they are, without ``x``.
        axis: the axis of samples.

    Returns:
        A tensor without that axis.

    Raises:
        AxisError: for an axis out of range.
        ShapeError: where there is no sample, or ``x`` does not fit.

    Example:
        >>> hf.integrate.simpson([0.0, 1.0, 4.0, 9.0, 16.0]).item()
        21.33333396911621
    """
    stage = "integrate.simpson"
    samples = float_operand(y, stage)
    along = type_rules.axis(stage, samples.type, axis)
    samples = moveaxis(samples, along, -1)
    count = samples.shape[-1]
    if not isinstance(count, int) or count < 1:
        raise ShapeError(stage, f"y is {samples.type}. Expected one sample or more.")
    if x is None:
        steps = full((max(count - 1, 0),), dx, dtype=samples.dtype)
    else:
        places = cast(as_tensor(x, stage), samples.dtype)
        places = moveaxis(places, along, -1) if places.ndim == samples.ndim and places.ndim > 1 else places
        if places.shape not in ((count,), samples.shape):
            raise ShapeError(stage, f"x is {places.type} for y {samples.type}. Expected one place for each sample.")
        steps = places[..., 1:] - places[..., :-1]
    if count == 1:
        return zeros_like(samples[..., 0])
    if count == 2:
        return 0.5 * steps[..., 0] * (samples[..., 0] + samples[..., 1])
    pairs = (count - 1) // 2 * 2
    h0, h1 = steps[..., 0:pairs:2], steps[..., 1:pairs:2]
    y0, y1, y2 = samples[..., 0:pairs:2], samples[..., 1 : pairs + 1 : 2], samples[..., 2 : pairs + 1 : 2]
    both, ratio = h0 + h1, divide(h0, h1)
    total = _sum(
        both / 6.0 * (y0 * (2.0 - divide(1.0, ratio)) + y1 * divide(both * both, h0 * h1) + y2 * (2.0 - ratio)), axis=-1
    )
    if count % 2:
        return total
    before, last = steps[..., -2], steps[..., -1]
    alpha = divide(2 * last * last + 3 * before * last, 6 * (last + before))
    beta = divide(last * last + 3 * before * last, 6 * before)
    eta = divide(last * last * last, 6 * before * (before + last))
    return total + alpha * samples[..., -1] + beta * samples[..., -2] - eta * samples[..., -3]
