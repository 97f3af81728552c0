"""Renames modules, names and attributes of the whole tree by the tables in ``tools/renames/*.toml``.

    python tools/rename.py            apply the tables to the tree that this file lies in
    python tools/rename.py --dry      say what would change, and what needs a look
    python tools/rename.py --check OLD_TREE
                                      compare the syntax trees of OLD_TREE with this one, modulo the tables
    python tools/rename.py --surface  print the public names and signatures, to compare before and after

Keys are always the old names, values the new ones:

    [modules]                                   a module or a package: all that is below a package moves along
    "hybridflow.tracing.flow" = "hybridflow.autograph.runtime"
    "hybridflow.tracing.flow.forks" = "hybridflow.autograph.runtime.conditional"
    "tests.tracing.test_forks" = "tests.autograph.test_conditional"

    [packages]                                  docstrings of new packages
    "hybridflow.autograph" = "Control flow ..."

    [names."hybridflow.tracing.flow.forks"]     what a module binds: classes, functions, constants
    Fork = "Conditional"

    [attributes]                                methods and attributes of all classes of the project
    asked = "finish_iteration"
    [attributes."hybridflow.tracing.flow.sides.Side"]    those of one class, with what overrides them
    twin = "sibling"

    [receivers]                                 what a variable holds where mypy sees Any
    side = "hybridflow.tracing.flow.sides.Side"

    "hybridflow.tracing.flow.paths:left" = "..."   in one module

    [locals."hybridflow.tracing.flow.forks"]    variables of all functions of a module
    [locals."hybridflow.tracing.flow.forks:Fork.joined"]  or of one
    found = "merged"

    [returned]                                  variables that a function returns, wherever they stand
    found = "result"

    [strings."hybridflow.tracing.convert.flow"] strings of a module that are just this
    joined = "merge"

    [text."tests/project/test_layers.py"]       texts that are replaced as they stand (after all else)
    "7.42" = "12"

Entries that match nothing are reported and do no harm, so the tables can be applied to a tree that has moved.  Needs
Python 3.12 or later (positions in f-strings) with mypy and ruff.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import collections
import contextlib
import importlib
import io
import json
import keyword
import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CODE = ("hybridflow", "tests", "benchmarks", "examples", "docs")
# Other files that hold names of modules and paths.
TEXTS = (".md", ".toml", ".yml", ".yaml", ".cfg", ".sh", ".ipynb", ".json", "")
DOTTED = re.compile(r"\b(?:hybridflow|tests|benchmarks)(?:\.\w+)+")
FROM = re.compile(
    r"\bfrom (hybridflow[\w.]*|tests[\w.]*|benchmarks[\w.]*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)"
)
PATH = re.compile(r"(?<![\w/])(?:[\w.-]+/)+(?:\w+\.py\b)?")
PAIR = re.compile(r"(?<![\w.])(\w+)\.(\w+)\b")
TICKED = re.compile(r"(`+)(\w+)((?:\.\w+|\(\))*)(`+)")
ROOMS = ("", "hybridflow/", "hybridflow/jit/", "hybridflow/tracing/", "hybridflow/jit/guards/", "compiler/", "runtime/")


class Table:
    """What is to be renamed."""

    def __init__(self, files: list[Path]):
        self.modules: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.names: dict[tuple[str, str], str] = {}
        self.attributes: dict[str, str] = {}
        self.members: dict[tuple[str, str], str] = {}
        self.receivers: dict[str, str] = {}
        self.locals: dict[tuple[str, str], dict[str, str]] = {}
        self.text: dict[str, dict[str, str]] = collections.defaultdict(dict)
        self.returned: dict[str, str] = {}
        self.levels: dict[str, float] = {}
        self.subjects: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.strings: dict[str, dict[str, str]] = collections.defaultdict(dict)
        for file in files:
            self.add(file.name, tomllib.loads(file.read_text(encoding="utf-8")))

    def add(self, file: str, data: dict[str, Any]) -> None:
        unknown = set(data) - {"modules", "packages", "names", "attributes", "receivers", "locals", "text", "returned"}
        unknown -= {"strings", "levels", "subjects", "files"}
        self.levels |= data.get("levels", {})
        self.subjects |= data.get("subjects", {})
        self.files |= data.get("files", {})
        if unknown:
            sys.exit(f"{file}: unknown sections {unknown}")
        self.modules |= data.get("modules", {})
        self.packages |= data.get("packages", {})
        self.receivers |= data.get("receivers", {})
        self.returned |= data.get("returned", {})
        for module, strings in data.get("strings", {}).items():
            self.strings[module] |= strings
        for module, names in data.get("names", {}).items():
            for old, new in names.items():
                self.names[module, old] = new
        for key, value in data.get("attributes", {}).items():
            if isinstance(value, str):
                self.attributes[key] = value
            else:
                for old, new in value.items():
                    self.members[key, old] = new
        for key, names in data.get("locals", {}).items():
            module, _, function = key.partition(":")
            self.locals.setdefault((module, function), {}).update(names)
        for path, texts in data.get("text", {}).items():
            self.text[path] |= texts
        every = [*self.names.values(), *self.attributes.values(), *self.members.values()]
        every += [new for names in self.locals.values() for new in names.values()]
        for new in every:
            if not new.isidentifier() or keyword.iskeyword(new):
                sys.exit(f"{file}: {new!r} is no name")

    def module(self, name: str) -> str:
        """The new name of a module."""
        if name.endswith(":stub"):
            return self.module(name.removesuffix(":stub")) + ":stub"
        prefix, rest = name, ""
        while prefix:
            if prefix in self.modules:
                return self.modules[prefix] + rest
            prefix, _, last = prefix.rpartition(".")
            rest = f".{last}{rest}"
        return name


class Class:
    def __init__(self, name: str, bases: list[tuple[str, ...]], members: set[str], plain_init: bool):
        self.name = name
        self.bases = bases
        self.members = members
        self.plain_init = plain_init  # keywords of a call are names of fields


class Module:
    """What other modules can see of a file."""

    def __init__(self, name: str, path: str):
        self.name = name
        self.path = path  # relative to the root
        self.bindings: dict[str, tuple[str, ...]] = {}  # ("def",), ("from", module, name), ("import", module)
        self.classes: dict[str, Class] = {}


def dotted_of(path: str) -> str:
    if path.endswith(".pyi"):
        return dotted_of(path.removesuffix("i")) + ":stub"
    parts = path.split(".")[0].split("/")
    if parts[0] in ("compiler", "runtime"):
        parts.insert(0, "hybridflow")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(module: str, package: bool) -> str:
    if module.endswith(":stub"):
        return path_of(module.removesuffix(":stub"), package) + "i"
    parts = module.split(".")
    if parts[:2] in (["hybridflow", "compiler"], ["hybridflow", "runtime"]):
        del parts[0]  # what is there is a link
    return "/".join(parts) + ("/__init__.py" if package else ".py")


def dotted(node: ast.AST) -> list[str] | None:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        left = dotted(node.value)
        return None if left is None else [*left, node.attr]
    return None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, also below ``if``, ``try`` and ``with``."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from statements(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from statements(handler.body)


def import_bindings(node: ast.stmt, modules: set[str], package: str) -> dict[str, tuple[str, ...]]:
    bound: dict[str, tuple[str, ...]] = {}
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                bound[alias.asname] = ("import", alias.name)
            else:
                top = alias.name.partition(".")[0]
                bound[top] = ("import", top)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            source = f"{node.module}.{alias.name}"
            bound[alias.asname or alias.name] = (
                ("import", source) if source in modules else ("from", str(node.module), alias.name)
            )
    return bound


def targets_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from targets_of(part)
    elif isinstance(node, ast.Starred):
        yield from targets_of(node.value)


def read_class(node: ast.ClassDef, qualified: str, out: dict[str, Class]) -> None:
    members: set[str] = set()
    init = False
    for part in statements(node.body):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            members.add(part.name)
            init |= part.name in ("__init__", "__new__")
            first = [*part.args.posonlyargs, *part.args.args][:1]
            owner = first[0].arg if first else None
            for inner in ast.walk(part):
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.ctx, ast.Store)
                    and isinstance(inner.value, ast.Name)
                    and inner.value.id == owner
                ):
                    members.add(inner.attr)
        elif isinstance(part, ast.ClassDef):
            members.add(part.name)
            read_class(part, f"{qualified}.{part.name}", out)
        elif isinstance(part, ast.Assign):
            for target in part.targets:
                names = set(targets_of(target))
                members |= names
                if "__slots__" in names:
                    members |= {
                        c.value
                        for c in ast.walk(part.value)
                        if isinstance(c, ast.Constant) and isinstance(c.value, str)
                    }
        elif isinstance(part, ast.AnnAssign):
            members |= set(targets_of(part.target))
    bases = []
    for base in node.bases:
        if isinstance(base, ast.Subscript):
            base = base.value
        path = dotted(base)
        if path:
            bases.append(tuple(path))
    out[qualified] = Class(qualified, bases, members, not init)


class Index:
    """All modules of the project, and what their names stand for."""

    def __init__(self, root: Path, table: Table):
        self.root = root
        self.table = table
        self.modules: dict[str, Module] = {}
        self.trees: dict[str, ast.Module] = {}
        self.sources: dict[str, bytes] = {}
        for path in python_files(root):
            module = Module(dotted_of(path), path)
            self.modules[module.name] = module
        self.known = {name for name in self.modules if ":" not in name}
        for name in list(self.known):
            while "." in name:
                name = name.rpartition(".")[0]
                self.known.add(name)
        for module in self.modules.values():
            self.read(module)
        self.classes: dict[str, Class] = {}
        for module in self.modules.values():
            self.classes |= {f"{module.name}.{name}": c for name, c in module.classes.items()}
        self.parents: dict[str, list[str]] = {}
        self.foreign: dict[str, list[str]] = collections.defaultdict(list)
        for name, made in self.classes.items():
            self.parents[name] = self.resolved_bases(name, made)
        self.children: dict[str, list[str]] = collections.defaultdict(list)
        for name, bases in self.parents.items():
            for base in bases:
                self.children[base].append(name)
        self.definers: dict[str, set[str]] = collections.defaultdict(set)
        for name, made in self.classes.items():
            for member in made.members:
                self.definers[member].add(name)
        self.getters = {
            (module.name, node.name): found
            for module in self.modules.values()
            for node in (self.trees[module.name].body if module.name in self.trees else [])
            if isinstance(node, ast.FunctionDef) and (found := self.module_returned(node))
        }
        self.member_renames: dict[tuple[str, str], str] = {}
        self.unmatched: list[str] = []
        self.spread()
        self.renamed_members = {member for _, member in self.member_renames}
        self.pairs = self.text_pairs()
        self.files: dict[str, set[str]] = collections.defaultdict(set)  # the last parts of modules' names
        for name in self.modules:
            if name.startswith("hybridflow"):
                self.files[name.rpartition(".")[2]].add(table.module(name).rpartition(".")[2])
        self.tests = {
            name.rpartition(".")[2]: table.module(name).rpartition(".")[2]
            for name in self.modules
            if name.startswith("tests.")
        }
        self.ticked = self.text_names()
        self.paths = self.text_paths()
        self.foreign_attributes = foreign_attributes()

    def getter(self, function: tuple[str, str], part: int | None) -> str | None:
        """The module that a function of a module returns, or that is a part of the tuple that it returns."""
        if part is None:
            return self.getters.get(function)
        module, name = function
        for node in self.trees[module].body if module in self.trees else []:
            if isinstance(node, ast.FunctionDef) and node.name == name and isinstance(node.body[-1], ast.Return):
                value = node.body[-1].value
                bound: dict[str, tuple[str, ...]] = {}
                for inner in node.body:
                    bound |= import_bindings(inner, self.known, module)
                if isinstance(value, ast.Tuple) and part < len(value.elts):
                    item = value.elts[part]
                    binding = bound.get(item.id) if isinstance(item, ast.Name) else None
                    return binding[1] if binding is not None and binding[0] == "import" else None
        return None

    def read(self, module: Module) -> None:
        source = (self.root / module.path).read_bytes()
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return
        self.trees[module.name], self.sources[module.name] = tree, source
        for node in statements(tree.body):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                module.bindings |= import_bindings(node, self.known, module.name)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                module.bindings[node.name] = ("def",)
                if isinstance(node, ast.ClassDef):
                    read_class(node, node.name, module.classes)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    for name in targets_of(target):
                        module.bindings[name] = ("def",)
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
                for name in targets_of(node.target):
                    module.bindings[name] = ("def",)
            elif isinstance(node, (ast.For, ast.With)):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        module.bindings.setdefault(inner.id, ("def",))
            elif hasattr(ast, "TypeAlias") and isinstance(node, ast.TypeAlias):
                module.bindings[node.name.id] = ("def",)
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):
                for name in node.names:
                    module.bindings.setdefault(name, ("def",))

    def module_returned(self, node: ast.FunctionDef) -> str | None:
        """The module that a function imports and returns, which its callers do without until then."""
        bound: dict[str, tuple[str, ...]] = {}
        for part in node.body:
            bound |= import_bindings(part, self.known, "")
        last = node.body[-1]
        binding = (
            bound.get(last.value.id) if isinstance(last, ast.Return) and isinstance(last.value, ast.Name) else None
        )
        return binding[1] if binding and binding[0] == "import" and binding[1] in self.modules else None

    def defined(self, module: str, name: str) -> tuple[str, str] | str | None:
        """Where a module's name is defined: (module, name), or the module that it is."""
        for _ in range(20):
            if f"{module}.{name}" in self.modules and name not in getattr(self.modules.get(module), "bindings", {}):
                return f"{module}.{name}"
            if module not in self.modules:
                return None
            binding = self.modules[module].bindings.get(name)
            if binding is None:
                return f"{module}.{name}" if f"{module}.{name}" in self.known else None
            if binding[0] == "def":
                return module, name
            if binding[0] == "import":
                return binding[1]
            _, module, name = binding
        return None

    def exported(self, module: str, name: str) -> str:
        """The new name of what a module binds."""
        if (module, name) in self.table.names:
            return self.table.names[module, name]
        binding = self.modules[module].bindings.get(name) if module in self.modules else None
        if binding is None:
            return name
        if binding[0] == "from" and binding[2] == name:
            return self.exported(binding[1], binding[2])
        if binding[0] == "import" and binding[1].rpartition(".")[2] == name:
            return self.table.module(binding[1]).rpartition(".")[2]
        return name

    def resolved_bases(self, name: str, made: Class) -> list[str]:
        module = name.removesuffix("." + made.name)
        found = []
        for base in made.bases:
            target = self.resolve_path(module, base)
            if target in self.classes:
                found.append(str(target))
            else:
                self.foreign[name].append(".".join(base) if target is None else str(target))
        return found

    def resolve_path(self, module: str, path: tuple[str, ...]) -> str | None:
        """A dotted name as seen at a module's level: the class or module it stands for, or what is outside."""
        own = self.modules[module]
        binding = own.bindings.get(path[0])
        if binding is None:
            return ".".join(path) if hasattr(builtins, path[0]) else None
        where: tuple[str, str] | str | None
        where = (module, path[0]) if binding[0] == "def" else self.defined(module, path[0])
        if where is None and binding[0] == "from":
            where = f"{binding[1]}.{binding[2]}"
        for part in path[1:]:
            if isinstance(where, str):
                where = self.defined(where, part) or f"{where}.{part}"
            elif where is not None:
                where = f"{'.'.join(where)}.{part}"
        return ".".join(where) if isinstance(where, tuple) else where

    def mro(self, name: str) -> list[str]:
        order, queue = [], [name]
        while queue:
            here = queue.pop(0)
            if here not in order:
                order.append(here)
                queue += self.parents.get(here, [])
        return order

    def family(self, name: str, member: str) -> set[str]:
        """The classes that define a member, as far as they inherit from each other."""
        seen: set[str] = set()
        queue = [name]
        while queue:
            here = queue.pop()
            if here in seen:
                continue
            seen.add(here)
            queue += [c for c in self.mro(here) if member in self.classes[c].members]
            queue += self.children.get(here, [])
        return {c for c in seen if member in self.classes[c].members}

    def has_foreign(self, name: str, member: str) -> bool:
        """Whether a base outside of the project defines a member."""
        for c in self.mro(name):
            for base in self.foreign.get(c, []):
                module, _, last = base.rpartition(".")
                with contextlib.suppress(Exception):
                    known = getattr(importlib.import_module(module) if module else builtins, last)
                    if hasattr(known, member):
                        return True
        return False

    def spread(self) -> None:
        table = self.table
        for (name, member), new in table.members.items():
            if name not in self.classes:
                self.unmatched.append(f"no class {name}")
                continue
            family = self.family(name, member)
            if not family:
                self.unmatched.append(f"no attribute {name}.{member}")
            for c in family:
                before = self.member_renames.setdefault((c, member), new)
                if before != new:
                    self.unmatched.append(f"{c}.{member} would be {before} and {new}")
        for member, new in table.attributes.items():
            if member not in self.definers:
                self.unmatched.append(f"no attribute {member}")
            for c in self.definers.get(member, ()):
                if not self.has_foreign(c, member):
                    self.member_renames.setdefault((c, member), new)
        for (c, member), new in self.member_renames.items():
            for other in self.mro(c) + self.children.get(c, []):
                if new in self.classes[other].members and self.member_renames.get((other, new)) is None:
                    self.unmatched.append(f"{c}.{member} -> {new}, which {other} has")
        for module, name in table.names:
            if module not in self.modules:
                self.unmatched.append(f"no module {module}")
            elif self.modules[module].bindings.get(name, ("",))[0] != "def":
                self.unmatched.append(f"no name {module}.{name}")
        for (module, name), new in table.names.items():
            bindings = self.modules[module].bindings if module in self.modules else {}
            if new in bindings and self.exported(module, new) == new:
                self.unmatched.append(f"{module}.{name} -> {new}, which is there")
        news: dict[str, str] = {}
        for old in self.known:
            new = table.module(old)
            if new in news and old in self.modules and news[new] in self.modules:
                self.unmatched.append(f"{old} and {news[new]} -> {new}")
            news[new] = old
        for old in table.modules:
            if old not in self.known:
                self.unmatched.append(f"no module {old}")
        for module, _ in table.locals:
            if module not in self.modules:
                self.unmatched.append(f"no module {module}, whose locals are named")

    def member(self, name: str, member: str) -> str | None:
        """The new name of a member that a class has, None where the class is not known to have it."""
        for c in self.mro(name):
            if c in self.classes and member in self.classes[c].members:
                return self.member_renames.get((c, member), member)
        # a base class that leaves a method to those below it
        for c in self.children.get(name, []):
            if member in self.classes[c].members:
                return self.member_renames.get((c, member), member)
        return None

    def unique_member(self, member: str) -> str | None:
        """The new name of a member of an unknown object; None if there is more than one answer."""
        news = {self.member_renames.get((c, member), member) for c in self.definers.get(member, ())}
        if not news:
            return member
        if member in self.foreign_attributes:
            news.add(member)
        return news.pop() if len(news) == 1 else None

    def text_pairs(self) -> dict[tuple[str, str], str]:
        """``module.name`` as comments say it: the new pair, where there is no doubt."""
        seen: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
        for name, module in self.modules.items():
            if not name.startswith("hybridflow"):
                continue
            last = name.rpartition(".")[2]
            new = self.table.module(name).rpartition(".")[2]
            for bound, kind in module.bindings.items():
                if kind[0] == "def":
                    seen[last, bound].add(f"{new}.{self.table.names.get((name, bound), bound)}")
        for name, made in self.classes.items():
            if not name.startswith("hybridflow"):
                continue
            module, _, last = name.rpartition(".")
            new = self.table.names.get((module, last), last)
            for member in made.members:
                seen[last, member].add(f"{new}.{self.member_renames.get((name, member), member)}")
        return {k: v.pop() for k, v in seen.items() if len(v) == 1 and v != {".".join(k)}}

    def text_names(self) -> dict[str, str]:
        """Names between backquotes, where there is no doubt."""
        seen: dict[str, set[str]] = collections.defaultdict(set)
        for name, module in self.modules.items():
            if name.startswith("hybridflow"):
                for bound, kind in module.bindings.items():
                    if kind[0] == "def":
                        seen[bound].add(self.table.names.get((name, bound), bound))
        for member, owners in self.definers.items():
            for c in owners:
                if c.startswith("hybridflow"):
                    seen[member].add(self.member_renames.get((c, member), member))
        for name, news in self.files.items():
            if "_" in name:  # else it may be a word of Python's, or of English
                seen[name] |= news
        return {k: v.pop() for k, v in seen.items() if len(v) == 1 and v != {k} and (len(k) > 4 or k[0].isupper())}

    def text_paths(self) -> dict[str, str]:
        found = {}
        for name in self.known:
            new = self.table.module(name)
            if new == name:
                continue
            module = self.modules.get(name)
            if module and not module.path.endswith("__init__.py"):
                found[path_of(name, False)] = path_of(new, False)
            elif name in self.table.modules:
                found[path_of(name, True).removesuffix("__init__.py")] = path_of(new, True).removesuffix("__init__.py")
        return found


def python_files(root: Path) -> list[str]:
    found = []
    for top in (*CODE, "compiler", "runtime"):
        for folder, folders, files in os.walk(root / top):
            folders[:] = [f for f in folders if f != "__pycache__" and not os.path.islink(os.path.join(folder, f))]
            where = os.path.relpath(folder, root)
            found += [f"{where}/{file}" for file in files if file.endswith((".py", ".pyi"))]
    programs = ("tests/data/tf_programs", "tests/data/tf1_printed", "tests/data/tf1_programs")
    return sorted(p for p in found if not p.startswith(programs))


def foreign_attributes() -> set[str]:
    """Attributes of what is no object of the project's, as far as it is met here."""
    import dis
    import inspect
    import logging
    import pathlib
    import queue
    import random
    import threading
    import types
    import weakref
    from concurrent.futures import Future

    known: list[Any] = [
        str,
        bytes,
        list,
        dict,
        set,
        frozenset,
        tuple,
        int,
        float,
        complex,
        memoryview,
        slice,
        range,
        type,
    ]
    known += [collections.deque, collections.OrderedDict, collections.Counter, pathlib.Path, io.BytesIO, io.StringIO]
    known += [threading.Thread, threading.Lock(), threading.Condition, threading.Event, re.Match, re.Pattern, Future]
    known += [types.CodeType, types.FunctionType, types.FrameType, types.MethodType, types.TracebackType, BaseException]
    known += [inspect.Signature, inspect.Parameter, weakref.ref, queue.Queue, random.Random, dis.Instruction]
    known += [
        inspect.BoundArguments,
        subprocess.Popen,
        subprocess.CompletedProcess,
        logging.Logger,
        types.GeneratorType,
    ]
    with contextlib.suppress(ImportError):
        import numpy as np

        known += [np.ndarray, np.generic, np.dtype, np.random.Generator]
    found = {name for thing in known for name in dir(thing)}
    found |= {
        field for thing in vars(ast).values() if isinstance(thing, type) for field in getattr(thing, "_fields", ())
    }
    return found | {"left", "line", "args", "test", "orelse", "body", "value", "func", "target", "targets"}


# ---------------------------------------------------------------------------------------------------------------------
# Receivers of attributes, by mypy.

ORACLE = """
import glob, json, os, sys
from mypy import build, nodes, types
from mypy.main import process_options
from mypy.modulefinder import BuildSource
sources, opts = process_options([], stdout=sys.stdout, stderr=sys.stderr)
opts.incremental = False; opts.export_types = True; opts.preserve_asts = True; opts.cache_dir = os.devnull
opts.check_untyped_defs = True
tests = [p for top in ("tests", "benchmarks") for p in glob.glob(top + "/**/*.py", recursive=True)]
for p in tests:
    if "/data/" not in p and not p.endswith("__init__.py"):
        sources.append(BuildSource(p, p[:-3].replace("/", "."), None))
result = build.build(sources, opts)

def names(t, depth=0):
    t = types.get_proper_type(t)
    if t is None or depth > 4:
        return []
    if isinstance(t, types.Instance):
        return [] if t.type.fullname == "builtins.object" else [t.type.fullname]
    if isinstance(t, types.UnionType):
        return [n for item in t.items for n in names(item, depth + 1)]
    if isinstance(t, types.TypeVarType):
        return names(t.upper_bound, depth + 1)
    if isinstance(t, types.TupleType):
        return names(t.partial_fallback, depth + 1)
    if isinstance(t, types.LiteralType):
        return names(t.fallback, depth + 1)
    if isinstance(t, types.TypeType):
        return names(t.item, depth + 1)
    if isinstance(t, types.CallableType):
        return names(t.ret_type, depth + 1) if t.is_type_obj() else ["builtins.function"]
    if isinstance(t, types.Overloaded):
        return names(t.items[0], depth + 1)
    return []

# The links from a name to what it stands for are no part of the tree.
LINKS = {"node", "info", "type", "fullname", "unanalyzed_type", "unanalyzed_items", "analyzed", "var", "names",
         "imports", "alias_deps", "plugin_deps",
         "def_or_infer_vars", "method_type", "inferred_item_type", "inferred_item_types",
         "is_final_def", "type_annotation", "original_def", "defn", "special_sig", "ignored_lines", "path"}
attributes = {}

def children(node):
    cls = type(node)
    if cls not in attributes:
        attributes[cls] = [a for a in dict.fromkeys(a for c in cls.__mro__ for a in getattr(c, "__mypyc_attrs__", ()))
                           if a not in LINKS]
    for name in attributes[cls]:
        try:
            value = getattr(node, name)
        except AttributeError:
            continue
        stack = [value]
        while stack:
            value = stack.pop()
            if isinstance(value, nodes.Node) and not isinstance(value, nodes.MypyFile):
                yield value
            elif isinstance(value, (list, tuple)):
                stack += value

out = {}
for name, state in result.graph.items():
    if name.partition(".")[0] not in ("hybridflow", "tests", "benchmarks") or state.path is None or state.tree is None:
        continue
    here = out[os.path.relpath(os.path.realpath(state.path))] = {}
    seen, queue = set(), list(state.tree.defs)
    while queue:
        e = queue.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        queue += children(e)
        callee = e.callee if isinstance(e, nodes.CallExpr) else None
        is_replace = isinstance(callee, nodes.RefExpr) and callee.name == "replace" and bool(e.args)
        if isinstance(e, nodes.MemberExpr) or is_replace:
            found = names(result.types.get(e.args[0] if is_replace else e.expr))
            found = [n for n in found if n != "builtins.NoneType"]
            if found:
                here[f"{e.end_line}:{e.end_column}"] = sorted(set(found))
json.dump(out, open(sys.argv[1], "w"))
"""


def start_oracle(root: Path, where: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", ORACLE, str(where)], cwd=root, stdout=subprocess.DEVNULL)


# ---------------------------------------------------------------------------------------------------------------------
# One file.


class Scope:
    def __init__(self, kind: str, parent: Scope | None, name: str, owner: str = ""):
        self.kind = kind
        self.parent = parent
        self.name = name  # qualified, without the module
        self.owner = owner  # the class, for the scope of one
        self.bound: set[str] = set()
        self.imports: dict[str, tuple[str, ...]] = {}
        self.outer: set[str] = set()  # global and nonlocal names
        self.returned: set[str] = set()
        self.called: dict[str, tuple[ast.Call, int | None]] = {}  # variables that hold what a call gives, or a part
        self.parameters: set[str] = set()
        self.globals: set[str] = set()
        self.first: str | None = None  # the parameter that holds the object

    def find(self, name: str) -> Scope | None:
        """The scope that binds a name, None for builtins."""
        here: Scope | None = self
        first = True
        while here is not None:
            if name in here.globals:
                while here.parent is not None:
                    here = here.parent
                return here
            if name in here.bound and name not in here.outer and (first or here.kind != "class"):
                return here
            first = False
            here = here.parent
        return None


class Binder(ast.NodeVisitor):
    """Scopes and what is bound in them."""

    def __init__(self, index: Index, module: str):
        self.index = index
        self.module = module
        self.scopes: dict[ast.AST, Scope] = {}
        self.here = Scope("module", None, "")

    def enter(self, node: ast.AST, kind: str, name: str, owner: str = "") -> Scope:
        scope = Scope(kind, self.here, f"{self.here.name}.{name}" if self.here.name else name, owner)
        self.scopes[node] = scope
        return scope

    def function(self, node: Any) -> None:
        name = getattr(node, "name", "<lambda>")
        if not isinstance(node, ast.Lambda):
            self.here.bound.add(name)
            for decorator in node.decorator_list:
                self.visit(decorator)
        args = node.args
        for default in [*args.defaults, *[d for d in args.kw_defaults if d is not None]]:
            self.visit(default)
        scope = self.enter(node, "function", name)
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        every += [a for a in (args.vararg, args.kwarg) if a is not None]
        scope.bound |= {a.arg for a in every}
        scope.parameters |= {a.arg for a in every}
        if self.here.kind == "class" and not any(
            dotted(d) == ["staticmethod"] for d in getattr(node, "decorator_list", [])
        ):
            scope.first = next((a.arg for a in [*args.posonlyargs, *args.args]), None)
            scope.owner = self.here.owner
        outside, self.here = self.here, scope
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(part)
        self.here = outside

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.here.bound.add(node.name)
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        scope = self.enter(node, "class", node.name)
        scope.owner = f"{self.module}.{scope.name}"
        outside, self.here = self.here, scope
        for part in node.body:
            self.visit(part)
        self.here = outside

    def comprehension(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        scope = self.enter(node, "comprehension", "<comprehension>")
        outside, self.here = self.here, scope
        for i, part in enumerate(node.generators):
            self.visit(part.target)
            if i:
                self.visit(part.iter)
            for test in part.ifs:
                self.visit(test)
        for name in ("elt", "key", "value"):
            if getattr(node, name, None) is not None:
                self.visit(getattr(node, name))
        self.here = outside

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        scope = self.here
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        scope.bound |= set(targets_of(node.target))
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.here.bound.add(node.id)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.here.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.here.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.here.bound.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.here.bound.add(node.rest)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Call) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                self.here.called[target.id] = node.value, None
            elif isinstance(target, ast.Tuple):
                for k, part in enumerate(target.elts):
                    if isinstance(part, ast.Name):
                        self.here.called[part.id] = node.value, k
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Name):
            self.here.returned.add(node.value.id)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.here.globals |= set(node.names)
        self.here.outer |= set(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.here.outer |= set(node.names)

    def imported(self, node: Any) -> None:
        found = import_bindings(node, self.index.known, self.module)
        self.here.bound |= set(found)
        self.here.imports |= found

    visit_Import = visit_ImportFrom = imported


Renames = dict[tuple[Scope | None, str], str]
Occurrence = tuple[int, int, Scope, str]  # start, end, the scope where it is used, kind


class File(ast.NodeVisitor):
    """The edits of one file."""

    def __init__(
        self, index: Index, module: str, path: str, source: bytes, tree: ast.Module, oracle: dict[str, list[str]]
    ):
        self.index, self.table, self.module, self.path = index, index.table, module, path
        self.source, self.tree, self.oracle = source, tree, oracle
        self.edits: dict[tuple[int, int], str] = {}
        self.looks: list[str] = []
        self.counts: dict[str, int] = collections.Counter()
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        binder = Binder(index, module)
        binder.visit(tree)
        self.scopes = binder.scopes
        self.here = self.top = binder.here
        self.uses: dict[tuple[Scope | None, str], list[Occurrence]] = collections.defaultdict(list)
        self.import_nodes: list[tuple[Any, Scope]] = []
        self.shift: int | None = None  # where the text of an annotation begins that is a string
        self.code_strings: set[int] = set()

    # positions

    def offset(self, line: int, column: int) -> int:
        if self.shift is not None:
            return self.shift + column
        return self.lines[line - 1] + column

    def span(self, node: Any) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def edit(self, start: int, end: int, new: str) -> None:
        self.edits[start, end] = new

    def look(self, node: Any, text: str) -> None:
        self.looks.append(f"{self.path}:{getattr(node, 'lineno', 0)}: {text}")

    # names

    def use(self, name: str, start: int, end: int, kind: str = "name", scope: Scope | None = None) -> None:
        scope = scope or self.here
        self.uses[scope.find(name), name].append((start, end, scope, kind))

    def visit_Name(self, node: ast.Name) -> None:
        self.use(node.id, *self.span(node))

    def named(self, node: Any, after: int, before: str, scope: Scope | None = None) -> None:
        match = re.compile(rf"{before}({re.escape(node.name)})\b".encode()).search(self.source, after)
        if match:
            self.use(node.name, *match.span(1), kind="def", scope=scope)

    def annotation(self, node: ast.AST | None) -> None:
        """An annotation, which may be a string."""
        if node is None:
            return
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                self.string_code(part)
        self.visit(node)

    def string_code(self, node: ast.Constant) -> None:
        start, end = self.span(node)
        text = self.source[start:end].decode()
        if text[:1] in "\"'" and text[1:-1] == node.value and "\\" not in text:
            with contextlib.suppress(SyntaxError):
                tree = ast.parse(text[1:-1], mode="eval")
                self.code_strings.add(start)
                self.shift = start + 1
                self.visit(tree.body)
                self.shift = None

    def function(self, node: Any) -> None:
        if not isinstance(node, ast.Lambda):
            for decorator in node.decorator_list:
                self.visit(decorator)
            self.named(node, self.span(node)[0], r"def\s+")
            self.annotation(node.returns)
        args = node.args
        for default in [*args.defaults, *[d for d in args.kw_defaults if d is not None]]:
            self.visit(default)
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        every += [a for a in (args.vararg, args.kwarg) if a is not None]
        for arg in every:
            self.annotation(arg.annotation)
        outside, self.here = self.here, self.scopes[node]
        for arg in every:
            start = self.span(arg)[0]
            self.use(arg.arg, start, start + len(arg.arg.encode()), "arg")
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(part)
        self.here = outside

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.named(node, self.span(node)[0], r"class\s+")
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        outside, self.here = self.here, self.scopes[node]
        for part in node.body:
            self.visit(part)
        self.here = outside

    def comprehension(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        outside, self.here = self.here, self.scopes[node]
        for i, part in enumerate(node.generators):
            self.visit(part.target)
            if i:
                self.visit(part.iter)
            for test in part.ifs:
                self.visit(test)
        for name in ("elt", "key", "value"):
            if getattr(node, name, None) is not None:
                self.visit(getattr(node, name))
        self.here = outside

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        self.annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {name for target in node.targets for name in targets_of(target)}
        if self.here is self.top and isinstance(node.value, ast.Subscript):  # a type by another name
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    self.string_code(part)
        for part in ast.walk(node.value) if names & {"__slots__", "__match_args__", "__all__", "state_fields"} else ():
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                start, end = self.span(part)
                if "__all__" in names:
                    new = self.index.exported(self.module, part.value)
                else:
                    new = self.index.member(self.here.owner, part.value) or part.value
                if new != part.value and self.source[start + 1 : end - 1].decode() == part.value:
                    self.edit(start + 1, end - 1, new)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name and node.type:
            self.named(node, self.span(node.type)[1], r"\bas\s+")
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            end = self.span(node)[1]
            self.use(node.name, end - len(node.name.encode()), end)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            end = self.span(node)[1]
            self.use(node.name, end - len(node.name.encode()), end)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self.generic_visit(node)
        owner = self.class_of(node.cls)
        at = self.span(node.cls)[1]
        for name, pattern in zip(node.kwd_attrs, node.kwd_patterns):
            match = re.compile(rf"\b{name}\s*=".encode()).search(self.source, at)
            at = self.span(pattern)[1]
            new = (self.index.member(owner, name) if owner else self.index.unique_member(name)) or name
            if match and new != name:
                self.edit(match.start(), match.start() + len(name), new)

    def scoped(self, node: Any) -> None:
        start, end = self.span(node)
        for name in node.names:
            for match in re.finditer(rf"\b{name}\b".encode(), self.source[start:end]):
                self.use(name, start + match.start(), start + match.end())

    visit_Global = visit_Nonlocal = scoped

    def imported(self, node: Any) -> None:
        self.import_nodes.append((node, self.here))

    visit_Import = visit_ImportFrom = imported

    # what expressions stand for

    def resolve(self, node: ast.AST) -> tuple[str, str] | str | None:
        """The module, or (module, name), that an expression stands for; "?" for something outside the project."""
        if isinstance(node, ast.Name):
            scope = self.here.find(node.id)
            if scope is None:
                return None
            if node.id in scope.imports:
                binding = scope.imports[node.id]
                if binding[0] == "import":
                    return binding[1] if binding[1] in self.index.known else "?"
                if binding[1] not in self.index.known:
                    return "?"
                return self.index.defined(binding[1], binding[2])
            if node.id in scope.called and scope is not self.top:
                call, part = scope.called.pop(node.id)  # for it may call itself
                made = self.resolve(call.func)
                scope.called[node.id] = call, part
                return self.index.getter(made, part) if isinstance(made, tuple) else None
            return (self.module, node.id) if scope is self.top and self.module in self.index.modules else None
        if isinstance(node, ast.Attribute):
            left = self.resolve(node.value)
            if left == "?":
                return "?"
            if isinstance(left, str):
                return self.index.defined(left, node.attr)
            if left is not None:
                return left[0], f"{left[1]}.{node.attr}"
        if isinstance(node, ast.Call):
            made = self.resolve(node.func)
            return self.index.getter(made, None) if isinstance(made, tuple) else None
        return None

    def class_of(self, node: ast.AST) -> str | None:
        found = self.resolve(node)
        name = ".".join(found) if isinstance(found, tuple) else None
        return name if name in self.index.classes else None

    def receiver(self, node: ast.Attribute) -> list[str]:
        """The classes that the object of an attribute may have."""
        value = node.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
            scope: Scope | None = self.here
            while scope is not None:
                if scope.kind == "class":
                    return [scope.owner]
                scope = scope.parent
        if self.shift is None:
            known = self.oracle.get(f"{node.end_lineno}:{node.end_col_offset}")
            if known:
                return known
        if isinstance(value, ast.Name):
            scope = self.here.find(value.id)
            if scope is not None and scope.first == value.id and scope.owner:
                return [scope.owner]
        last = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
        if isinstance(value, ast.Call):
            made = self.class_of(value.func)
            if made:
                return [made]
        owner = self.class_of(value)
        if owner:
            return [owner]
        hint = self.table.receivers.get(f"{self.module}:{last}") or self.table.receivers.get(last)
        return [hint] if hint else []

    def visit_Attribute(self, node: ast.Attribute) -> None:
        end = self.span(node)[1]
        start = end - len(node.attr.encode())
        left = self.resolve(node.value)
        if isinstance(left, str):
            if left != "?":
                self.module_attribute(node, left, start, end)
            self.visit(node.value)
            return
        new = self.new_attribute(node)
        if new != node.attr:
            self.edit(start, end, new)
            self.counts[f"{node.attr} -> {new}"] += 1
        self.visit(node.value)

    def module_attribute(self, node: ast.Attribute, module: str, start: int, end: int) -> None:
        name = node.attr
        below = f"{module}.{name}"
        bindings = self.index.modules[module].bindings if module in self.index.modules else {}
        if below in self.index.known and name not in bindings:
            old, new = module, self.table.module(below)
            if new == f"{self.table.module(old)}.{name}":
                return
            if new.rpartition(".")[0] == self.table.module(old):
                self.edit(start, end, new.rpartition(".")[2])
                return
            path = dotted(node)
            if path and ".".join(path) == below:
                self.edit(*self.span(node), new)
                self.skipped = node
            else:
                self.look(node, f"{below} is now {new}")
            return
        new = self.index.exported(module, name)
        if new != name:
            self.edit(start, end, new)

    def new_attribute(self, node: ast.Attribute) -> str:
        name = node.attr
        if name not in self.index.renamed_members:
            return name
        owners = self.receiver(node)
        news = set()
        for owner in owners:
            if owner in self.index.classes:
                new = self.index.member(owner, name)
                if new is not None:
                    news.add(new)
            elif not owner.startswith(("hybridflow", "tests", "benchmarks")):
                news.add(name)
        if len(news) > 1 and name in news and all(o in self.index.classes for o in owners):
            self.look(node, f".{name} of one of {owners}")
        if len(news) == 1:
            return news.pop()
        unique = self.index.unique_member(name)
        if unique is None:
            self.look(node, f".{name} of what is not known")
            return name
        return unique

    # calls: keywords, and names in strings

    def visit_Call(self, node: ast.Call) -> None:
        owner = self.class_of(node.func)
        path = dotted(node.func) or [""]
        for part in node.keywords:
            if part.arg is None:
                continue
            new = part.arg
            if owner is not None and self.is_plain(owner):
                new = self.index.member(owner, part.arg) or part.arg
            elif path[-1] in ("replace", "_replace"):
                new = self.new_field(node, path[-1], part.arg)
            elif path[-1] == "cls" and self.class_scope():
                new = self.index.member(self.class_scope(), part.arg) or part.arg
            else:
                new = self.new_parameter(node, part.arg)
            if new != part.arg:
                start = self.span(part)[0]
                self.edit(start, start + len(part.arg.encode()), new)
        if (
            path[-1] in ("getattr", "setattr", "hasattr", "delattr", "__setattr__", "delenv", "object")
            and len(node.args) > 1
        ):
            self.string_attribute(node, node.args[0], node.args[1])
        if path[-1] in ("attrgetter", "methodcaller") and node.args:
            self.string_attribute(node, None, node.args[0])
        if (
            path[-1] == "cast"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            self.string_code(node.args[0])
        self.generic_visit(node)

    def new_field(self, node: ast.Call, function: str, name: str) -> str:
        """A keyword of ``replace(object, ...)`` or ``object._replace(...)``."""
        owners: list[str] = []
        if function == "_replace" and isinstance(node.func, ast.Attribute):
            owners = self.receiver(node.func)
        elif node.args and self.shift is None:
            owners = self.oracle.get(f"{node.end_lineno}:{node.end_col_offset}", [])
            first = node.args[0]
            scope = self.here.find(first.id) if isinstance(first, ast.Name) else None
            if not owners and scope is not None and scope.first == first.id and scope.owner:
                owners = [scope.owner]
        news = {new for o in owners if o in self.index.classes and (new := self.index.member(o, name)) is not None}
        if len(news) == 1:
            return news.pop()
        unique = self.index.unique_member(name)
        if unique is None:
            self.look(node, f"the keyword {name} of what is not known")
        return unique or name

    def class_scope(self) -> str:
        scope: Scope | None = self.here
        while scope is not None:
            if scope.kind == "class":
                return scope.owner
            scope = scope.parent
        return ""

    def is_plain(self, owner: str) -> bool:
        return all(self.index.classes[c].plain_init for c in self.index.mro(owner))

    def new_parameter(self, node: ast.Call, name: str) -> str:
        where = self.resolve(node.func)
        functions = {where} if isinstance(where, tuple) else set()
        if not functions and where != "?" and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            for owner in self.receiver(node.func):
                definers = [c for c in self.index.mro(owner) if c in self.index.classes]
                definer = next((c for c in definers if method in self.index.classes[c].members), None)
                if definer is not None:
                    last = self.index.classes[definer].name
                    functions.add((definer.removesuffix("." + last), f"{last}.{method}"))
        news = set()
        for module, function in functions:
            names = {**self.table.locals.get((module, ""), {}), **self.table.locals.get((module, function), {})}
            news.add(names.get(name, name))
        return news.pop() if len(news) == 1 else name

    def string_attribute(self, node: Any, owner: ast.AST | None, text: ast.AST) -> None:
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            return
        name = text.value
        left = self.resolve(owner) if owner is not None else None
        new: str | None = name
        if isinstance(left, str) and left != "?":
            new = self.index.exported(left, name)
        elif left != "?":
            known = self.class_of(owner) if owner is not None else None
            if known is None and isinstance(owner, ast.Name):
                scope = self.here.find(owner.id)
                known = scope.owner if scope is not None and scope.first == owner.id and scope.owner else None
                known = known or self.table.receivers.get(owner.id)
            new = self.index.member(known, name) if known in self.index.classes else None
            new = new or self.index.unique_member(name)
        if new is None:
            self.look(node, f"the string {name!r} may be an attribute that is renamed")
        elif new != name:
            start, end = self.span(text)
            if self.source[start + 1 : end - 1].decode() == name:
                self.edit(start + 1, end - 1, new)

    # the whole

    def run(self) -> bytes:
        self.visit(self.tree)
        renames = self.scope_renames()
        self.check_collisions(renames)
        for (scope, name), new in renames.items():
            for start, end, _, _ in self.uses.get((scope, name), ()):
                self.edit(start, end, new)
        for node, scope in self.import_nodes:
            self.rewrite_import(node, scope, renames)
        self.rewrite_texts()
        return self.applied()

    def applied(self) -> bytes:
        out, at = [], 0
        for (start, end), new in sorted(self.edits.items()):
            if start < at:
                continue  # inside of what is replaced as a whole
            out += [self.source[at:start], new.encode()]
            at = end
        return b"".join([*out, self.source[at:]])

    def scope_renames(self) -> Renames:
        """The new names of what scopes bind."""
        found: Renames = {}
        for name, binding in self.top.imports.items() if self.path.endswith("__init__.py") else ():
            new = self.new_binding(name, binding)
            if new != name and not name.startswith("_"):
                self.look(None, f"PUBLIC: {name} -> {new}")
        for name in self.top.bound:
            if name not in self.top.imports:
                new = self.table.names.get((self.module, name))
                if new:
                    found[self.top, name] = new
        for scope in [self.top, *self.scopes.values()]:
            for name, binding in scope.imports.items():
                new = self.new_binding(name, binding)
                if new != name:
                    found[scope, name] = new
            if scope.kind == "class":
                for name in scope.bound:
                    new = self.index.member(scope.owner, name)
                    if new and new != name and scope.owner in self.index.classes:
                        found[scope, name] = new
            if scope.kind in ("function", "comprehension"):
                names = self.local_table(scope)
                for name in scope.returned & set(self.table.returned) - scope.parameters:
                    new = self.table.returned[name]
                    if name in scope.bound and self.module.startswith("hybridflow"):
                        names.setdefault(name, new)
                for name in scope.bound - set(scope.imports):
                    if name in names and name not in scope.outer:
                        found[scope, name] = names[name]
        return found

    def local_table(self, scope: Scope) -> dict[str, str]:
        names: dict[str, str] = dict(self.table.locals.get((self.module, ""), {}))
        here: Scope | None = scope
        chain = []
        while here is not None and here.kind != "module":
            chain.append(here.name)
            here = here.parent
        for name in reversed(chain):
            names |= self.table.locals.get((self.module, name), {})
        return names

    def new_binding(self, local: str, binding: tuple[str, ...]) -> str:
        """What an import is to bind."""
        if self.module.endswith(":stub"):
            return local  # what is public stays
        if binding[0] == "import":
            old = binding[1].rpartition(".")[2]
            new = self.table.module(binding[1]).rpartition(".")[2] if binding[1] in self.index.known else old
        else:
            old = binding[2]
            new = self.index.exported(binding[1], old)
        if local == old:
            return new
        if local == f"_{old}":
            return f"_{new}"
        return local

    def check_collisions(self, renames: Renames) -> None:
        """Names that are taken: imports and variables get or keep another one, all else is told."""
        self.becoming: dict[tuple[Scope | None, str], list[str]] = collections.defaultdict(list)
        for (scope, name), new in renames.items():
            self.becoming[scope, new].append(name)
        self.called: dict[str, list[tuple[Scope | None, str]]] = collections.defaultdict(list)
        for scope, name in self.uses:
            self.called[renames.get((scope, name), name)].append((scope, name))
        for (scope, name), new in list(renames.items()):
            problem = self.collision(scope, name, new, renames)
            if problem is None:
                continue
            assert scope is not None
            if name in scope.imports:
                binding = scope.imports[name]
                parent = self.table.module(binding[1]).rpartition(".")[2]
                if binding[0] == "import":
                    parent = self.table.module(binding[1]).split(".")[-2]
                other = f"{'_' if new.startswith('_') else ''}{parent}_{new.lstrip('_')}"
                if self.collision(scope, name, other, renames) is None:
                    renames[scope, name] = other
                    self.look(None, f"{name} -> {other}, as {new} is taken: {problem}")
                    continue
            if scope.kind in ("function", "comprehension"):
                del renames[scope, name]
                self.becoming[scope, new].remove(name)
                self.look(None, f"{scope.name}: {name} stays, as {new} is taken: {problem}")
            else:
                self.look(None, f"TAKEN: {scope.name}: {name} -> {new}: {problem}")

    def collision(self, scope: Scope | None, name: str, new: str, renames: Renames) -> str | None:
        assert scope is not None
        if new in scope.bound and renames.get((scope, new), new) == new:
            return f"bound in {scope.name or 'the module'}"
        twice = [n for n in self.becoming.get((scope, new), ()) if n != name]
        if twice:
            return f"{twice[0]} becomes it, too"
        if scope.kind == "class":
            return None
        for _, _, use, _ in self.uses.get((scope, name), ()):
            here: Scope | None = use
            while here is not None and here is not scope:
                if here.kind != "class" or here is use:
                    if new in here.bound and new not in here.outer and renames.get((here, new), new) == new:
                        return f"bound in {here.name}"
                    if self.becoming.get((here, new)):
                        return f"bound in {here.name} by the table"
                here = here.parent
        for bound, other in self.called.get(new, ()):
            if bound is scope:
                continue
            for _, _, use, _ in self.uses[bound, other]:
                # a use of the name from outside, within the scope that is to bind it
                inner: Scope | None = use
                while inner is not None and inner is not bound:
                    if inner is scope:
                        return f"used in {use.name or 'the module'} for something else"
                    inner = inner.parent
        return None

    def rewrite_import(self, node: Any, scope: Scope, renames: Renames) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                new = self.table.module(alias.name) if alias.name in self.index.known else alias.name
                start, end = self.span(alias)
                if alias.asname:
                    local = renames.get((scope, alias.asname), alias.asname)
                    if (new, local) != (alias.name, alias.asname):
                        self.edit(start, end, f"{new} as {local}")
                elif new != alias.name:
                    self.edit(start, end, new)
            return
        if node.module is None or node.module not in self.index.known or node.level:
            return
        parts = []
        for alias in node.names:
            below = f"{node.module}.{alias.name}"
            bindings = self.index.modules[node.module].bindings if node.module in self.index.modules else {}
            if alias.name == "*":
                source, name = self.table.module(node.module), "*"
            elif below in self.index.known and alias.name not in bindings:
                source, _dot, name = self.table.module(below).rpartition(".")
            else:
                source, name = self.table.module(node.module), self.index.exported(node.module, alias.name)
            local = renames.get((scope, alias.asname or alias.name), alias.asname or alias.name)
            again = alias.asname == alias.name or local != name
            parts.append((source, f"{name} as {local}" if again and name != "*" else name, alias))
        start, end = self.span(node)
        sources = list(dict.fromkeys(source for source, _text, _alias in parts))
        if len(sources) == 1:
            if sources[0] != node.module:
                match = re.compile(rb"from\s+([\w.]+)").match(self.source, start)
                assert match
                self.edit(*match.span(1), sources[0])
            for _source, text, alias in parts:
                old = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
                if text != old:
                    self.edit(*self.span(alias), text)
            return
        indent = b" " * (start - (self.source.rfind(b"\n", 0, start) + 1))
        if b"#" in self.source[start:end]:
            self.look(node, "comments of an import that is divided are lost")
        lines = [f"from {s} import {', '.join(t for source, t, _a in parts if source == s)}" for s in sources]
        self.edit(start, end, ("\n" + indent.decode()).join(lines))

    # texts

    def rewrite_texts(self) -> None:
        prose = {id(d) for d in docstrings(self.tree)}
        starts = {self.span(d)[0] for d in docstrings(self.tree)}
        del prose
        offset = self.lines
        try:
            tokens = list(tokenize.tokenize(io.BytesIO(self.source).readline))
        except (tokenize.TokenError, SyntaxError):
            return
        lines = self.source.decode().splitlines(keepends=True)

        def at(position: tuple[int, int]) -> int:
            line, column = position
            return offset[line - 1] + len(lines[line - 1][:column].encode()) if line <= len(lines) else len(self.source)

        middle = getattr(tokenize, "FSTRING_MIDDLE", -1)
        for token in tokens:
            if token.type not in (tokenize.STRING, tokenize.COMMENT, middle):
                continue
            start, end = at(token.start), at(token.end)
            strings = self.table.strings.get(self.module)
            if strings and token.type == tokenize.STRING and token.string[1:-1] in strings:
                self.edit(start + 1, end - 1, strings[token.string[1:-1]])
                continue
            if start in self.code_strings or any(s >= start and e <= end for s, e in self.near(start, end)):
                continue
            text = self.source[start:end].decode()
            new = text
            is_prose = token.type == tokenize.COMMENT or start in starts
            if token.type == tokenize.STRING and not is_prose:
                new = self.snippet(text)
            new = replaced_text(self.index, new, is_prose)
            if self.path.startswith("hybridflow/compat/tables/"):
                new = re.sub(r"(?<=: )[a-z_]+(?:\.\w+)+", self.target, new)
            if new != text:
                self.edit(start, end, wrapped(new, self.source, start) if is_prose else new)
            elif token.type == tokenize.STRING and not is_prose:
                self.suspicious(token)

    def target(self, match: re.Match[str]) -> str:
        return replaced_text(self.index, f"hybridflow.{match[0]}", False).removeprefix("hybridflow.")

    def near(self, start: int, end: int) -> list[tuple[int, int]]:
        if not hasattr(self, "_sorted") or len(self._sorted) != len(self.edits):
            self._sorted = sorted(self.edits)
        import bisect

        i = bisect.bisect_left(self._sorted, (start, 0))
        return self._sorted[i : i + 1] if i < len(self._sorted) and self._sorted[i][0] < end else []

    def snippet(self, text: str) -> str:
        """A string that is a program."""
        match = re.fullmatch(r"[rRuU]?(\"\"\"|'''|\"|')(.*)\1", text, re.DOTALL)
        if not match or "import" not in text or ("hybridflow" not in text and "hf" not in text):
            return text
        body = match[2]
        lead = "\\\n" if body.startswith("\\\n") else ""
        body = body[len(lead) :]
        one_line = "\\n" in body and len(match[1]) == 1
        program = body.replace("\\n", "\n") if one_line else body
        if "\\" in program or (one_line and "\n" in body):
            return text
        flat = textwrap.dedent(program)
        indent = program.find(flat.strip("\n").split("\n")[0]) - (
            program.rfind("\n", 0, program.find(flat.strip("\n").split("\n")[0])) + 1
        )
        try:
            tree = ast.parse(flat)
        except SyntaxError:
            return text
        if not any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.walk(tree)):
            return text
        inner = File(self.index, "<text>", self.path, flat.encode(), tree, {})
        made = inner.run().decode()
        if made == flat:
            return text
        if not one_line and indent > 0:
            made = textwrap.indent(made, " " * indent)
            if (
                program != textwrap.indent(flat, " " * indent)
                and program.rstrip() != textwrap.indent(flat, " " * indent).rstrip()
            ):
                tail = program[len(program.rstrip(" ")) :]
                if program.rstrip(" ") != textwrap.indent(flat, " " * indent).rstrip(" "):
                    self.looks.append(f"{self.path}: a program in a string is left as it is")
                    return text
                made = made.rstrip(" ") + tail
        if one_line:
            made = made.replace("\n", "\\n")
        head = text[: match.start(2)]
        return f"{head}{lead}{made}{match[1]}"

    def suspicious(self, token: tokenize.TokenInfo) -> None:
        match = re.fullmatch(r"[\"'](\w+)[\"']", token.string)
        if match and (match[1] in self.index.ticked or match[1] in self.table.attributes):
            self.looks.append(
                f"{self.path}:{token.start[0]}: the string {token.string} is the name of something renamed"
            )


def docstrings(tree: ast.Module) -> list[ast.Constant]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found.append(first.value)
    return found


def wrapped(text: str, source: bytes, start: int) -> str:
    """Lines of prose that have become longer than 120 are broken."""
    lead = start - (source.rfind(b"\n", 0, start) + 1)
    before = source[start - lead : start].decode()
    lines = (before + text).split("\n")
    out: list[str] = []
    carry = last_indent = ""
    for i, line in enumerate(lines):
        if carry:
            indent = re.match(r"\s*", line)
            assert indent
            if line.strip() and line.strip() not in ('"""',) and not line.strip().startswith((">>>", "-", "*", "...")):
                line = f"{indent[0]}{carry} {line.strip()}"
            else:
                out.append(f"{last_indent}{carry}")
            carry = ""
        comment = text.startswith("#")
        limit = 120
        while len(line) > limit and not line.strip().startswith(">>>"):
            cut = line.rfind(" ", 0, limit)
            indent = re.match(r"\s*", line)
            assert indent
            if cut <= len(indent[0]) + 2:
                break
            last_indent = indent[0] if i or not comment else " " * lead
            if comment:
                if before.strip():
                    break  # behind code: to be seen to by hand
                out.append(line[:cut])
                line = f"{' ' * lead}# {line[cut + 1 :]}"
                continue
            rest = line[cut + 1 :]
            if i + 1 < len(lines):
                line, carry = line[:cut], f"{carry} {rest}".strip() if carry else rest
                break
            out.append(line[:cut])
            line = f"{last_indent}{rest}"
        out.append(line)
    if carry:
        out.append(f"{last_indent}{carry}")
    return "\n".join(out)[len(before) :]


def replaced_text(index: Index, text: str, prose: bool) -> str:
    """Names of modules and files within a text; in prose also names of what is in them."""
    table = index.table

    def module(match: re.Match[str]) -> str:
        parts = match[0].split(".")
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if name in index.known:
                rest = parts[end:]
                if rest:
                    rest[0] = index.exported(name, rest[0])
                    if len(rest) > 1 and f"{name}.{parts[end]}" in index.classes:
                        rest[1] = index.member(f"{name}.{parts[end]}", rest[1]) or rest[1]
                return ".".join([table.module(name), *rest])
        return match[0]

    def imports(match: re.Match[str]) -> str:
        if match[1] not in index.known:
            return match[0]
        groups: dict[str, list[str]] = {}
        for part in match[2].split(", "):
            name, _, local = part.partition(" as ")
            below = f"{match[1]}.{name}"
            if below in index.known:
                source, _, new = table.module(below).rpartition(".")
            else:
                source, new = table.module(match[1]), index.exported(match[1], name)
            groups.setdefault(source, []).append(f"{new} as {local}" if local else new)
        return "; ".join(f"from {source} import {', '.join(names)}" for source, names in groups.items())

    def path(match: re.Match[str]) -> str:
        for room in ROOMS:
            new = index.paths.get(room + match[0])
            if new is not None:
                if room in ("compiler/", "runtime/"):
                    return new.removeprefix(room)
                for other in ROOMS[::-1][1:] if room else ("",):
                    if new.startswith(other) and (other in ("", "hybridflow/") or other == room):
                        return new.removeprefix(other)
        return match[0]

    def pair(match: re.Match[str]) -> str:
        return index.pairs.get((match[1], match[2]), match[0])

    def ticked(match: re.Match[str]) -> str:
        if match[3] in (".py", ".pyi"):
            files = index.files.get(match[2], {match[2]})
            return f"{match[1]}{min(files) if len(files) == 1 else match[2]}{match[3]}{match[4]}"
        new = index.ticked.get(match[2])
        return f"{match[1]}{new}{match[3]}{match[4]}" if new else match[0]

    bare = re.fullmatch(r"[\"'](\w+(?:\.\w+)+)[\"']", text)
    if bare and f"hybridflow.{bare[1]}" in index.modules:
        new = table.module(f"hybridflow.{bare[1]}")
        return f"{text[0]}{new.removeprefix('hybridflow.')}{text[0]}"
    text = re.sub(r"\b(test_\w+)\.py\b", lambda match: f"{index.tests.get(match[1], match[1])}.py", text)
    text = FROM.sub(imports, text)
    text = DOTTED.sub(module, text)
    text = PATH.sub(path, text)
    if prose:
        text = PAIR.sub(pair, text)
        text = TICKED.sub(ticked, text)
    return text


# ---------------------------------------------------------------------------------------------------------------------
# The whole tree.

INDEX: Index
ANSWERS: dict[str, dict[str, list[str]]] = {}


def one(name: str) -> tuple[str, bytes | None, list[str], dict[str, int]]:
    module = INDEX.modules[name]
    if name not in INDEX.trees:
        return name, None, [f"{module.path}: no Python"], {}
    file = File(INDEX, name, module.path, INDEX.sources[name], INDEX.trees[name], ANSWERS.get(module.path, {}))
    sys.setrecursionlimit(10000)
    made = file.run()
    try:
        ast.parse(made)
    except SyntaxError as error:
        file.looks.append(f"{module.path}: no Python any more: {error}")
    return name, made if made != INDEX.sources[name] else None, file.looks, dict(file.counts)


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def apply(root: Path, dry: bool, oracle_file: Path | None) -> None:
    global INDEX, ANSWERS
    table = Table(sorted((HERE / "renames").glob("*.toml")))
    where = oracle_file or Path(os.environ.get("TMPDIR", "/tmp")) / f"rename-oracle-{os.getpid()}.json"
    oracle = None if where.exists() else start_oracle(root, where)
    INDEX = Index(root, table)
    for text in INDEX.unmatched:
        print("table:", text)
    if oracle is not None:
        oracle.wait()
    if where.exists():
        ANSWERS = json.loads(where.read_text())
        if oracle_file is None:
            where.unlink()
    else:
        print("mypy gave no answers: attributes are renamed only where they are unique")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        done = pool.map(one, sorted(INDEX.modules), chunksize=16)
    for _name, _made, looks, _counts in done:
        for text in looks:
            print("look:", text)
    texts = []
    for path in git(root, "ls-files").splitlines():
        full = root / path
        if (
            path.startswith(("tools/", "tests/data/"))
            or full.suffix not in TEXTS
            or full.is_symlink()
            or not full.is_file()
        ):
            continue
        with contextlib.suppress(UnicodeDecodeError):
            old = full.read_text(encoding="utf-8")
            new = replaced_text(INDEX, old, full.suffix == ".md")
            if new != old:
                texts.append((full, new))
    if dry:
        print(sum(made is not None for _, made, _, _ in done), "files of Python would change,", len(texts), "texts")
        return
    for name, made, _, _ in done:
        if made is not None:
            (root / INDEX.modules[name].path).write_bytes(made)
    for full, new in texts:
        full.write_text(new, encoding="utf-8")
    move(root, INDEX)
    for source, target in table.files.items():
        (root / target).write_text((root / source).read_text(encoding="utf-8"), encoding="utf-8")
        git(root, "add", target)
    levels(root, table)
    replace_texts(root, table)
    tidy(root)


def move(root: Path, index: Index) -> None:
    moves = []
    for name, module in index.modules.items():
        package = "/__init__.py" in module.path
        new = path_of(index.table.module(name), package)
        if new != module.path:
            moves.append((module.path, new))
    # by way of names that nobody has, as one may move to where another was
    for old, new in moves:
        target = root / f"{new}.moving"
        target.parent.mkdir(parents=True, exist_ok=True)
        git(root, "mv", old, str(target.relative_to(root)))
    for _, new in moves:
        git(root, "mv", f"{new}.moving", new)
    for package, text in index.table.packages.items():
        file = root / path_of(package, True)
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(f'"""{text}"""\n', encoding="utf-8")
            git(root, "add", str(file.relative_to(root)))
    for folder, folders, files in os.walk(root / "hybridflow", topdown=False, followlinks=True):
        kept = [f for f in files if not f.endswith(".pyc")]
        below = [f for f in folders if f != "__pycache__" and os.path.isdir(os.path.join(folder, f))]
        if kept == ["__init__.py"] and not below:
            git(root, "rm", "-fq", os.path.relpath(os.path.realpath(os.path.join(folder, "__init__.py")), root))
        elif kept and "__init__.py" not in kept and "__pycache__" not in folder:
            file = Path(os.path.realpath(folder), "__init__.py")
            print("a package without a docstring:", folder)
            file.write_text('"""A package."""\n', encoding="utf-8")
            git(root, "add", str(file.relative_to(root)))
    packages(root)


def packages(root: Path) -> None:
    """The list in pyproject.toml."""
    found = []
    for folder, _, files in os.walk(root / "hybridflow", followlinks=True):
        if "__init__.py" in files:
            found.append(os.path.relpath(folder, root).replace("/", "."))
    file = root / "pyproject.toml"
    text = file.read_text(encoding="utf-8")
    lines = "".join(f'    "{name}",\n' for name in sorted(found))
    file.write_text(
        re.sub(r"(?m)^packages = \[\n(?:    \"hybridflow.*\n)+\]", f"packages = [\n{lines}]", text), "utf-8"
    )


def levels(root: Path, table: Table) -> None:
    """The import levels of tests/project/test_layers.py, as whole numbers with the subjects that they are of."""
    file = root / "tests/project/test_layers.py"
    text = file.read_text(encoding="utf-8")
    match = re.search(r"(?:^# Levels by.*\n(?:#.*\n)*)?^LEVELS = (\{\n(?: .*\n)*\})\n", text, re.MULTILINE)
    if not match or not table.subjects:
        print("table: no levels of imports to number")
        return
    old = {**ast.literal_eval(match[1]), **table.levels}
    there = {dotted_of(path) for path in python_files(root)}
    numbers = sorted(set(old.values()))
    lines = [
        "# What may import what: each subject what stands above it here.  Modules by the longest prefix that fits;"
    ]
    lines += ["# whatever is below ``hybridflow`` needs an entry of its own, but for the modules of a room."]
    lines += ["SUBJECTS = ("]
    for number in numbers:
        names = [name for name, level in old.items() if level == number and name in there]
        subject = table.subjects.get(str(float(number)))
        if subject is None:
            print(f"table: the import level {number} has no subject: {names}")
            subject = "not named"
        lines.append(f"    ({json.dumps(subject)}, ({''.join(f'{json.dumps(name)}, ' for name in names)})),")
    lines += [")", "LEVELS = {name: level for level, (_, names) in enumerate(SUBJECTS) for name in names}", ""]
    text = text[: match.start()] + "\n".join(lines) + text[match.end() :]

    def third(found: re.Match[str]) -> str:
        of_old: dict[int, str] = {}
        for part in re.finditer(r"(\d+): (set\(\)|\{[^}]*\})", found[1]):
            of_old[int(part[1])] = part[2]
        news = [f"{k}: {of_old[int(n)]}" for k, n in enumerate(numbers) if int(n) in of_old and k not in runtime]
        news.append(f"**{{level: {of_old[6]} for level in RUNTIME}}")
        return f"RUNTIME = range({runtime[0]}, {runtime[-1] + 1})\nTHIRD_PARTY = {{{', '.join(news)}}}"

    runtime = [k for k, n in enumerate(numbers) if 6 <= n < 7]
    text = re.sub(r"THIRD_PARTY = \{(.*)\}(?=\nUSUAL)", third, text)
    text = text.replace("if 6 <= own < 7 and level(name) < 6 and", "if own in RUNTIME and level(name) < RUNTIME[0] and")
    text = text.replace("THIRD_PARTY.get(int(own), ", "THIRD_PARTY.get(own, ")
    text = text.replace("def level(module: str) -> float:", "def level(module: str) -> int:")
    file.write_text(text, encoding="utf-8")


def replace_texts(root: Path, table: Table) -> None:
    for path, texts in table.text.items():
        file = root / path
        if not file.exists():
            print("table: no file", path)
            continue
        content = file.read_text(encoding="utf-8")
        for old, new in texts.items():
            if old not in content:
                print(f"table: {path} does not hold {old[:60]!r}")
            content = content.replace(old, new)
        file.write_text(content, encoding="utf-8")


def tidy(root: Path) -> None:
    for command in (["check", "--select", "I,RUF022,RUF023", "--fix", "-q", "."], ["format", "-q", "."]):
        subprocess.run([sys.executable, "-m", "ruff", *command], cwd=root, check=False)


# ---------------------------------------------------------------------------------------------------------------------
# The proof.


def identifiers(tree: ast.AST) -> tuple[str, list[str]]:
    """The shape of a tree without its names, its docstrings and imports, and the names in order."""
    shape: list[str] = []
    names: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return
        if isinstance(node, list):
            shape.append(f"[{sum(not isinstance(n, (ast.Import, ast.ImportFrom)) for n in node)}")
            for part in node:
                visit(part)
        elif isinstance(node, ast.AST):
            shape.append(type(node).__name__)
            for field, value in ast.iter_fields(node):
                if field in ("id", "attr", "arg", "name", "rest") and isinstance(value, str):
                    names.append(value)
                elif field in ("names", "kwd_attrs") and value and isinstance(value[0], str):
                    names.extend(value)
                elif field == "value" and isinstance(node, ast.Constant):
                    if isinstance(value, str):
                        names.append(f"={value}")
                    else:
                        shape.append(repr(value))
                else:
                    visit(value)
        else:
            shape.append(repr(node))

    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    visit(tree)
    return " ".join(shape), names


def check(old_root: Path) -> int:
    """Says where the trees differ in more than the tables say."""
    table = Table(sorted((HERE / "renames").glob("*.toml")))
    pairs: dict[str, set[str]] = collections.defaultdict(set)
    for (_, old), new in [*table.names.items(), *table.members.items()]:
        pairs[old].add(new)
    for old, new in table.attributes.items():
        pairs[old].add(new)
    for old, new in table.returned.items():
        pairs[old].add(new)
    for renames in table.locals.values():
        for old, new in renames.items():
            pairs[old].add(new)
    for path in python_files(old_root):
        old = dotted_of(path)
        lasts = table.module(old).split(".")
        pairs[old.rpartition(".")[2]] |= {lasts[-1], "_".join(lasts[-2:])}
    failures = 0
    strings: list[str] = []
    for path in python_files(old_root):
        new_path = ROOT / path_of(table.module(dotted_of(path)), "/__init__.py" in path)
        if not new_path.exists():
            print(f"{path}: {new_path.relative_to(ROOT)} is not there")
            failures += not path.endswith("__init__.py")
            continue
        shape, names = identifiers(ast.parse((old_root / path).read_bytes()))
        new_shape, new_names = identifiers(ast.parse(new_path.read_bytes()))
        if shape != new_shape or len(names) != len(new_names):
            print(f"{path}: another program")
            failures += 1
            continue
        for a, b in zip(names, new_names):
            if a == b or b in pairs.get(a, ()) or (a[:1] == "_" and b[:1] == "_" and b[1:] in pairs.get(a[1:], ())):
                continue
            if a[:1] == "=":
                strings.append(f"{path}: {a[1:]!r} -> {b[1:]!r}"[:300])
                continue
            print(f"{path}: {a} -> {b}, which no table says")
            failures += 1
    print(f"{failures} failures, {len(strings)} strings that differ:")
    print("\n".join(strings))
    return failures


def surface() -> None:
    """The public names, with signatures."""
    import inspect

    sys.path.insert(0, str(ROOT))
    hf = importlib.import_module("hybridflow")
    seen: set[int] = set()

    def show(prefix: str, thing: Any) -> None:
        for name in sorted(dir(thing)):
            if name.startswith("_") and name != "__call__":
                continue
            with contextlib.suppress(Exception):
                value = getattr(thing, name)
                try:
                    signature = str(inspect.signature(value))
                except (TypeError, ValueError):
                    signature = ""
                signature = re.sub(r"0x[0-9a-f]+", "0x", signature)
                print(f"{prefix}.{name}{signature} {type(value).__name__}")
                inner = isinstance(value, type) or (
                    isinstance(value, type(sys)) and value.__name__.startswith("hybrid")
                )
                ours = getattr(value, "__module__", "hybridflow").startswith("hybridflow")
                if inner and ours and id(value) not in seen:
                    seen.add(id(value))
                    show(f"{prefix}.{name}", value)

    show("hf", hf)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dry", action="store_true", help="say what would change")
    parser.add_argument("--check", metavar="OLD_TREE", type=Path, help="compare with the tree before")
    parser.add_argument("--surface", action="store_true", help="print the public names and signatures")
    parser.add_argument("--oracle", metavar="FILE", type=Path, help="keep mypy's answers here, or take them from here")
    arguments = parser.parse_args()
    if sys.version_info < (3, 12):
        sys.exit("needs Python 3.12 or later")
    if arguments.check:
        return int(check(arguments.check) != 0)
    if arguments.surface:
        surface()
        return 0
    apply(ROOT, arguments.dry, arguments.oracle)
    return 0


if __name__ == "__main__":
    sys.exit(main())
