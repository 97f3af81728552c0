"""Documents that are made of the code say what it does."""

from __future__ import annotations

import builtins
import doctest
import inspect
import re
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core import name_hints
from tests.support import array_function_names
from tests.support.paths import ROOT

HEAD = """# Names from other libraries

Names of NumPy, TensorFlow, PyTorch and JAX, and what to write here. `hf` is hybridflow; `x` and `y` are tensors, `v` is
a variable. Names that are the same here are left out:

- those of the array API standard;
- `tf.reduce_sum`, `reduce_mean`, `reduce_max`, `reduce_min` and `reduce_prod`;
- `tf.Variable`, `tf.GradientTape`, `jax.grad`;
- the methods of tensors `{methods}`.

Python answers with this table, too: `hf.softmax` is an AttributeError that says `write hf.nn.softmax(x, axis)`.
"""


def names_page() -> str:
    found = {name: getattr(hf.Tensor, name) for name in dir(hf.ones(1)) if not name.startswith("_")}
    methods = " ".join(
        name  # what importing the names of TensorFlow adds is not ours
        for name, method in found.items()
        if callable(method) and not str(getattr(method, "__module__", "")).startswith("hybridflow.compat")
    )
    parts = [HEAD.format(methods=methods)]
    for title, table in (
        ("Functions and modules", name_hints.OF_MODULE),
        ("Attributes of tensors", name_hints.OF_TENSOR),
        *((f"In `hf.{room}`", table) for room, table in name_hints.OF_ROOM.items()),
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
    tables = (name_hints.OF_MODULE, name_hints.OF_TENSOR, *name_hints.OF_ROOM.values())
    answers = " ".join(answer for table in tables for answer in table.values())
    for path in set(re.findall(r"\bhf\.([a-z_]\w*(?:\.\w+)*)", answers)):
        found: Any = hf
        for name in path.split("."):
            found = getattr(found, name)


def test_the_page_of_array_functions(pytestconfig: pytest.Config) -> None:
    text = array_function_names.page()  # raises for a name without an answer
    if pytestconfig.getoption("--update-golden"):
        array_function_names.PAGE.write_text(text, encoding="utf-8")
    written = array_function_names.PAGE.read_text(encoding="utf-8")
    assert written == text, "run pytest tests/project/test_docs.py --update-golden"
    for path in set(re.findall(r"\bhf\.([a-z_]\w*(?:\.\w+)*)", text)):
        found: Any = hf
        for name in path.split("."):
            found = getattr(found, name)


def test_the_page_of_array_functions_has_all_of_numpy() -> None:
    version, names = array_function_names.recorded()["numpy"]
    if np.__version__ != version:
        pytest.skip(f"the names are those of NumPy {version}")
    assert names == array_function_names.names_of(np)


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


def test_types_of_every_public_name_can_be_asked_for() -> None:
    for found in PUBLIC.values():
        called = (found.__init__, getattr(found, "call", None)) if inspect.isclass(found) else (found,)
        for one in filter(inspect.isfunction, called):
            typing.get_type_hints(one)


def methods() -> Iterator[tuple[str, str, inspect.Signature]]:
    """The public methods of public classes, each once, what it says and what it takes; not other libraries'."""
    seen = set()
    for name, cls in PUBLIC.items():
        for method in dir(cls) if inspect.isclass(cls) else ():
            raw = inspect.getattr_static(cls, method)
            function = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
            if method.startswith("_") or not inspect.isfunction(function) or function in seen:
                continue
            seen.add(function)
            module = function.__module__
            if module.startswith("hybridflow") and not module.startswith("hybridflow.compat"):
                signature = inspect.signature(function)
                taken = list(signature.parameters.values())[not isinstance(raw, staticmethod) :]
                said = [vars(base)[method].__doc__ for base in cls.__mro__ if method in vars(base)]
                text = inspect.cleandoc(next(filter(None, said), ""))
                yield f"{name}.{method}", text, signature.replace(parameters=taken)


METHODS = {name: (text, signature) for name, text, signature in methods()}


@pytest.mark.code
def test_every_public_method_says_what_it_takes_and_gives() -> None:
    """As functions do; an override without a docstring has that of the method that it overrides."""
    wrong = []
    for name, (text, signature) in METHODS.items():
        sections = sections_of(text)
        gives = signature.return_annotation not in ("None", None, "NoReturn")
        errors = entries(sections.get("Raises", ""))
        is_complete = (
            text[:1].isalpha()
            and entries(sections.get("Args", "")) == list(signature.parameters)
            and (not gives or "Returns" in sections)
            and all(hasattr(hf.errors, error) or hasattr(builtins, error) for error in errors)
        )
        if not is_complete or long_sentences(text):
            wrong.append(name)
    assert wrong == []


@pytest.mark.code
def test_examples_of_public_methods_are_true() -> None:
    said: list[str] = []
    for name, (text, _) in METHODS.items():
        test = doctest.DocTestParser().get_doctest(text, {"hf": hf, "np": np}, f"hf.{name}", None, None)
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert "".join(said) == ""


def said_of(name: str) -> str:
    return inspect.getdoc(PUBLIC[name]) or ""


def sections_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(Args|Returns|Raises):\n((?:    .*\n?)+)", text, re.MULTILINE))


def entries(section: str) -> list[str]:
    return re.findall(r"^    \*{0,2}(\w+): ", section, re.MULTILINE)


@pytest.mark.code
@pytest.mark.every_case
@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_says_what_it_takes_and_gives(name: str) -> None:
    """Sections in Google's style, with an entry for each parameter; errors are those of hybridflow or Python's own."""
    sections = sections_of(said_of(name))
    assert entries(sections.get("Args", "")) == parameters(PUBLIC[name])
    assert inspect.isclass(PUBLIC[name]) or "Returns" in sections
    for error in entries(sections.get("Raises", "")):
        found = getattr(hf.errors, error, None) or getattr(builtins, error)
        assert issubclass(found, Exception)


def parameters(value: Any) -> list[str]:
    """Of classes that take none, Python says what ``object.__init__`` would be given."""
    names = list(inspect.signature(value).parameters)
    return [] if inspect.isclass(value) and value.__init__ is object.__init__ else names


@pytest.mark.code
@pytest.mark.every_case
@pytest.mark.parametrize("name", PUBLIC)
def test_sentences_of_docstrings_are_short(name: str) -> None:
    """The first one stands alone: it is what the reference's overview and an editor's tooltip show."""
    assert said_of(name)[:1].isalpha(), "it begins with the field's term, not with a formula"
    assert long_sentences(said_of(name)) == []


def long_sentences(text: str) -> list[str]:
    text = re.sub(r"^(Args|Returns|Raises):$", "", text.split(">>>")[0], flags=re.M)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=    \*{0,2}\w+: )", text)]
    sentences = [*re.split(r"(?<=[.!?])\s", paragraphs[0])[:1]]
    sentences += [sentence for part in paragraphs for sentence in re.split(r"(?<=[.:;!?])\s", part)]
    return [sentence for sentence in sentences if len(sentence.split()) > 25]
