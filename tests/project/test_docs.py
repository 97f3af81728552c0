"""Documents that are made of the code say what it does."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core import other_names
from tests.support.paths import ROOT

HEAD = """# Names from other libraries

What NumPy, TensorFlow, PyTorch and JAX call it, and what to write here (`import hybridflow as hf`; `x` and `y` are
tensors, `v` is a variable). Names that are the same here are left out: those of the array API standard,
`tf.reduce_sum`, `reduce_mean`, `reduce_max`, `reduce_min` and `reduce_prod`, `tf.Variable`, `tf.GradientTape`,
`jax.grad`, and the methods of tensors `{methods}`.

Python answers with this table, too: `hf.softmax` is an AttributeError that says `write hf.nn.softmax(x, axis)`.
"""


def names_page() -> str:
    methods = " ".join(
        name for name in dir(hf.ones(1)) if not name.startswith("_") and callable(getattr(hf.Tensor, name))
    )
    parts = [HEAD.format(methods=methods)]
    for title, table in (
        ("Functions and modules", other_names.OF_MODULE),
        ("Attributes of tensors", other_names.OF_TENSOR),
        *((f"In `hf.{room}`", table) for room, table in other_names.OF_ROOM.items()),
    ):
        rows = [f"| `{name}` | {answer} |" for name, answer in sorted(table.items())]
        parts.append("\n".join([f"\n## {title}\n", "| there | here |", "|---|---|", *rows, ""]))
    return "".join(parts)


def test_the_page_of_names(pytestconfig: pytest.Config) -> None:
    path = ROOT / "docs" / "names.md"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(names_page(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == names_page(), "run pytest tests/project/test_docs.py --update-golden"


def test_answers_name_what_is_there() -> None:
    tables = (other_names.OF_MODULE, other_names.OF_TENSOR, *other_names.OF_ROOM.values())
    answers = " ".join(answer for table in tables for answer in table.values())
    for path in set(re.findall(r"\bhf\.([a-z_]\w*(?:\.\w+)*)", answers)):
        found: Any = hf
        for name in path.split("."):
            found = getattr(found, name)


def public(module: ModuleType = hf, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The public functions and classes by name, those of public modules too; errors are documented where they arise,
    and what other libraries call it is documented there."""
    for name in module.__all__:
        found = getattr(module, name)
        if isinstance(found, ModuleType):
            yield from public(found, f"{name}.") if found not in (hf.errors, hf.compat) else ()
        elif callable(found) and not (inspect.isclass(found) and issubclass(found, (Exception, tuple))):
            yield prefix + name, found


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example_that_is_true(name: str) -> None:
    found = PUBLIC[name]
    text = inspect.getdoc(found) or ""
    assert text.split(">>>")[0].strip(), f"hf.{name} does not say what it does"
    test = doctest.DocTestParser().get_doctest(text, {"hf": hf, "np": np}, f"hf.{name}", None, None)
    assert test.examples, f"hf.{name} has no example"
    said: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert outcome.failed == 0, "".join(said)


SECTIONS = (
    "callbacks",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "regularizers",
)


def sections_of(name: str) -> dict[str, str]:
    text = inspect.getdoc(PUBLIC[name]) or ""
    return dict(re.findall(r"^(Args|Returns|Raises):\n((?:    .*\n?)+)", text, re.MULTILINE))


def entries(section: str) -> list[str]:
    return re.findall(r"^    \*{0,2}(\w+): ", section, re.MULTILINE)


ARRAY = [
    name
    for name, value in PUBLIC.items()
    if (getattr(value, "__module__", None) or "").startswith(("hybridflow.array.", "hybridflow.nn."))
]


@pytest.mark.parametrize("name", [name for name in ARRAY if not inspect.isclass(PUBLIC[name])])
def test_array_functions_say_what_they_take_and_give(name: str) -> None:
    """Sections in Google's style, with an entry for each parameter."""
    sections = sections_of(name)
    assert entries(sections.get("Args", "")) == list(inspect.signature(PUBLIC[name]).parameters)
    assert "Returns" in sections or name == "random.set_seed"
    errors = [getattr(hf.errors, error) for error in entries(sections.get("Raises", ""))]
    assert all(issubclass(error, hf.errors.HybridflowError) for error in errors)


def test_what_parts_of_models_take_is_said() -> None:
    described = [name for name in PUBLIC if name.partition(".")[0] in SECTIONS and "Args" in sections_of(name)]
    assert len(described) > 235
    for name in described:
        assert entries(sections_of(name)["Args"]) == list(inspect.signature(PUBLIC[name]).parameters), name
