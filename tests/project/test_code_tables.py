"""What decides by a name, of a module, a function or an op, decides by one that exists: code that moves is not lost."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybridflow as hf
from hybridflow import code_traits
from hybridflow.compiler.ops import TABLE
from hybridflow.guards import c_function_models, code_ownership
from tests.support.paths import ROOT

pytestmark = pytest.mark.code

FILES = sorted(path for room in ("hybridflow", "compiler", "runtime") for path in (ROOT / room).rglob("*.py"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in FILES}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "hybridflow" else ("hybridflow", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def traits_said(tree: ast.Module) -> tuple[str, ...]:
    """What a module's own text says, ahead of its first import; none that comes behind one counts."""
    for statement in tree.body:
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and not is_future:
            return ()
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__traits__":
            return tuple(ast.literal_eval(statement.value))
    return ()


ASSIGNED = {path: text for path, text in TEXTS.items() if "\n__traits__ = " in text}
SAID = {module_name(path): traits_said(ast.parse(text)) for path, text in ASSIGNED.items()}


def test_modules_say_their_traits_ahead_of_imports_and_in_known_words() -> None:
    assert all(SAID.values())
    of_functions = {"a step"}  # no module says it
    assert {word for traits in SAID.values() for word in traits} | of_functions == set(code_traits.MEANINGS)


@pytest.mark.parametrize("name", SAID)
def test_traits_are_found_by_name_and_by_file(name: str) -> None:
    module = importlib.import_module(name)
    assert code_traits.of_module(name) >= set(SAID[name])
    assert code_traits.of_file(str(module.__file__)) == code_traits.of_module(name)
    if hasattr(module, "__path__"):
        beneath = [path for path in FILES if module_name(path).startswith(f"{name}.")]
        assert beneath
        inside = importlib.import_module(module_name(beneath[0]))
        assert code_traits.of_file(str(inside.__file__)) >= set(SAID[name])


def test_traits_of_code_elsewhere() -> None:
    assert code_traits.of_module("numpy.random") == code_traits.of_module("hybridflow.no_such") == frozenset()
    assert code_traits.of_file(__file__) == code_traits.of_file("<string>") == frozenset()
    assert code_traits.of_function(hf.asarray) == code_traits.of_function(hf.constant) == ("makes tensors",)
    assert code_traits.of_function(len) == code_traits.of_function(hf.add) == ()


def test_a_word_that_nobody_knows_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("hybridflow.tree"), "__traits__", ("folowed",), raising=False)
    code_traits.of_module.cache_clear()
    with pytest.raises(ValueError, match="folowed"):
        code_traits.of_module("hybridflow.tree")
    code_traits.of_module.cache_clear()


@pytest.mark.parametrize("kind", [hf.Module, hf.layers.Dense, hf.losses.Huber, hf.metrics.Mean, hf.Model])
def test_classes_that_hold_what_users_set_are_followed(kind: type) -> None:
    files = {base.__init__.__code__.co_filename for base in kind.__mro__[:-1] if "__init__" in vars(base)}
    files |= {value.__code__.co_filename for value in vars(kind).values() if hasattr(value, "__code__")}
    owners = {code_ownership.owner_of(file) for file in files if file != hf.errors.__file__}
    assert owners == {code_ownership.FOLLOWED}
    assert not code_ownership.is_ours(kind) and code_ownership.is_of_hybridflow(kind)


def exists(module: str, name: str) -> bool:
    """Whether a module has a function of that name, or a class with such a method."""
    found = importlib.import_module(module)
    classes = [value for value in vars(found).values() if isinstance(value, type)]
    return hasattr(found, name) or any(name in vars(kind) for kind in classes)


LATER = {("sys", "_getframemodulename"): (3, 12)}  # the first Python that has it


@pytest.mark.parametrize("table", ["IMPURE", "OF_CALLER", "CALL_AT_ONCE"])
def test_functions_in_tables_exist(table: str) -> None:
    pairs = [pair for pair in getattr(c_function_models, table) if sys.version_info >= LATER.get(pair, (3,))]
    assert [pair for pair in pairs if not exists(*pair)] == []


def test_modules_in_tables_exist() -> None:
    models = c_function_models
    names = [*models.PURE_MODULES, *models.STATEFUL_TYPES, *models.LOOKING_MODULES, *code_ownership._FOLLOWED]
    assert [name for name in names if name not in sys.stdlib_module_names and name != "numpy.random"] == []
    installed = [name for name in models.IMPURE_MODULES if importlib.util.find_spec(name.partition(".")[0])]
    assert [name for name in installed if importlib.util.find_spec(name) is None] == []
    assert models.PURE_PACKAGES - {"hybridflow"} <= code_ownership.NUMERIC


def strings(tree: ast.AST, skipped: tuple[str, ...]) -> Iterator[ast.Constant]:
    """The strings of a module, but for the arguments of some functions."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Call) and ast.unparse(child.func).rpartition(".")[2] in skipped:
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child
        yield from strings(child, skipped)


# Names of files, a format, and what is not found without Keras.
NO_MODULES = ("hybridflow.h", "hybridflow.dataset", "hybridflow.safetensors", "hybridflow.keras_backend.modules")


def test_strings_that_name_modules_name_those_that_exist() -> None:
    for path in (path for path, text in TEXTS.items() if re.search(r"[\"']hybridflow\.", text)):
        for constant in strings(ast.parse(TEXTS[path]), ("ContextVar", "getLogger")):
            text = str(constant.value)
            if re.fullmatch(r"hybridflow(\.[a-z_]\w*)+\.?", text) and text not in NO_MODULES:
                name = text.rstrip(".")
                assert importlib.util.find_spec(name) is not None, f"{path}:{constant.lineno} names {name}"


def strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return (
        [text for one in value for text in strings_in(one)] if isinstance(value, (tuple, list, set, frozenset)) else []
    )


def _is_op_name(node: ast.Attribute) -> bool:
    return node.attr == "name" and isinstance(node.value, ast.Attribute) and node.value.attr == "op"


def op_names(path: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What a module compares names of ops with: strings, and constants of its own that hold some."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and _is_op_name(node.left):
            for other in node.comparators:
                if isinstance(other, ast.Name):
                    values = getattr(importlib.import_module(module_name(path)), other.id, ())
                elif isinstance(other, (ast.Constant, ast.Tuple, ast.Set)) and "." not in ast.unparse(other):
                    values = ast.literal_eval(other)
                else:
                    continue
                yield from ((node.lineno, text) for text in strings_in(values))


def test_names_of_ops_that_are_compared_exist() -> None:
    trees = {path: ast.parse(text) for path, text in TEXTS.items() if ".op.name" in text}
    compared = [(path, line, name) for path, tree in trees.items() for line, name in op_names(path, tree)]
    assert len(compared) > 50
    assert [entry for entry in compared if entry[2] not in TABLE] == []


def test_tracebacks_in_full_pass_over_what_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TRACEBACK", "full")

    def inner(values: dict[str, Any]) -> Any:
        return values["missing"]

    @hf.function
    def outer(x: Any) -> Any:
        return x + inner({"there": 1})

    with pytest.raises(KeyError) as caught:
        outer(hf.asarray(1.0))
    files = [frame.filename for frame in traceback.extract_tb(caught.tb)]
    between = files[files.index(__file__, 1) : len(files) - files[::-1].index(__file__)]
    assert set(between) == {__file__} and len(between) >= 2
