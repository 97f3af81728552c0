"""The transformed distributions as functions: of the global generator, and of a seed alone.

Each is a method of ``Generator``, and has its parameters and what it says of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hybridflow.array.random import Generator, Stateless, global_generator
from hybridflow.core.tensor import Tensor
from hybridflow.errors import entered

_SEED = "    seed: two integers; equal seeds give equal numbers.\n"


def _finished(name: str, function: Callable[..., Tensor], parameters: list[Any], text: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    function.__signature__ = inspect.Signature(parameters, return_annotation="Tensor")  # type: ignore[attr-defined]
    return entered(function)


def _method(name: str) -> tuple[list[inspect.Parameter], str]:
    """The parameters of a method beside ``self``, and its documentation."""
    method = getattr(Generator, name)
    return [*inspect.signature(method).parameters.values()][1:], inspect.getdoc(method) or ""


def _of_global(name: str, example: str) -> Callable[..., Tensor]:
    parameters, text = _method(name)

    def function(*args: object, **kwargs: object) -> Tensor:
        return getattr(global_generator(), name)(*args, **kwargs)

    return _finished(name, function, parameters, f"{text}\n\n>>> {_called(f'hf.random.{name}', example)}")


def _of_seed(name: str, example: str) -> Callable[..., Tensor]:
    """``seed`` comes after the shape, or after what the distribution cannot do without."""
    parameters, text = _method(name)
    leading = sum(p.default is p.empty for p in parameters) or 1
    named = [p.name for p in parameters]

    def function(*args: object, **kwargs: object) -> Tensor:
        values = bound.bind(*args, **kwargs).arguments
        seed = values.pop("seed")
        return getattr(Stateless(seed), name)(**values)

    first = [p.replace(default=p.empty) for p in parameters[:leading]]
    seed = inspect.Parameter("seed", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Any")
    bound = inspect.Signature([*first, seed, *parameters[leading:]])
    if text:  # Python may be run without documentation
        before, after = text.split(f"    {named[leading]}: ", 1)
        text = f"Stateless ``{name}``: a pure function of ``seed``.\n\n{before}{_SEED}    {named[leading]}: {after}"
    return _finished(
        f"stateless_{name}",
        function,
        [*bound.parameters.values()],
        f"{text}\n\n>>> {_called(f'hf.random.stateless_{name}', example, ', seed=[1, 2]')}",
    )


def _called(path: str, example: str, more: str = "") -> str:
    """A call whose shape is shown; an example is the arguments, and the shape."""
    arguments, shape = example.split(" -> ")
    return f"{path}({arguments}{more}).shape\n{shape}"


_ONE = "(2, 3) -> (2, 3)"
_VECTOR = "[1.0, 2.0, 3.0] -> (3,)"
_NORMAL = "[0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]] -> (2,)"
_MATRIX = "3 -> (3, 3)"
_POINT = "3 -> (3,)"
_OUTCOMES = "10, [0.25, 0.75] -> (2,)"

ball = _of_global("ball", _POINT)
beta = _of_global("beta", _ONE)
cauchy = _of_global("cauchy", _ONE)
chi_square = _of_global("chi_square", _ONE)
dirichlet = _of_global("dirichlet", _VECTOR)
f = _of_global("f", _ONE)
geometric = _of_global("geometric", _ONE)
gumbel = _of_global("gumbel", _ONE)
hypergeometric = _of_global("hypergeometric", _ONE)
logistic = _of_global("logistic", _ONE)
lognormal = _of_global("lognormal", _ONE)
maxwell = _of_global("maxwell", _ONE)
multinomial = _of_global("multinomial", _OUTCOMES)
multivariate_normal = _of_global("multivariate_normal", _NORMAL)
negative_binomial = _of_global("negative_binomial", _ONE)
orthogonal = _of_global("orthogonal", _MATRIX)
pareto = _of_global("pareto", _ONE)
rayleigh = _of_global("rayleigh", _ONE)
student_t = _of_global("student_t", _ONE)
triangular = _of_global("triangular", _ONE)
von_mises = _of_global("von_mises", _ONE)
wald = _of_global("wald", _ONE)
weibull = _of_global("weibull", _ONE)

stateless_ball = _of_seed("ball", _POINT)
stateless_beta = _of_seed("beta", _ONE)
stateless_cauchy = _of_seed("cauchy", _ONE)
stateless_chi_square = _of_seed("chi_square", _ONE)
stateless_dirichlet = _of_seed("dirichlet", _VECTOR)
stateless_f = _of_seed("f", _ONE)
stateless_geometric = _of_seed("geometric", _ONE)
stateless_gumbel = _of_seed("gumbel", _ONE)
stateless_hypergeometric = _of_seed("hypergeometric", _ONE)
stateless_logistic = _of_seed("logistic", _ONE)
stateless_lognormal = _of_seed("lognormal", _ONE)
stateless_maxwell = _of_seed("maxwell", _ONE)
stateless_multinomial = _of_seed("multinomial", _OUTCOMES)
stateless_multivariate_normal = _of_seed("multivariate_normal", _NORMAL)
stateless_negative_binomial = _of_seed("negative_binomial", _ONE)
stateless_orthogonal = _of_seed("orthogonal", _MATRIX)
stateless_pareto = _of_seed("pareto", _ONE)
stateless_rayleigh = _of_seed("rayleigh", _ONE)
stateless_student_t = _of_seed("student_t", _ONE)
stateless_triangular = _of_seed("triangular", _ONE)
stateless_von_mises = _of_seed("von_mises", _ONE)
stateless_wald = _of_seed("wald", _ONE)
stateless_weibull = _of_seed("weibull", _ONE)
