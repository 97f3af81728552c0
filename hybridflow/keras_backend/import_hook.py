"""The hook that gives Keras one backend more while it is imported."""

from __future__ import annotations

import ast
import copy
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any

NAME = "hybridflow"
_TESTED = (3, 12), (3, 16)  # versions from the first on, and before the second, have the interface that is answered
_HERE = "hybridflow.keras_backend.modules"
_LIKE = "numpy"  # the branch that ours is a copy of

# Modules that choose between backends, and the names that they take from the one chosen.
_CHOOSING = {
    "keras.src.backend": {"Variable": "Variable"},
    "keras.src.layers.layer": {"NumpyLayer": "Layer"},
    "keras.src.models.model": {"NumpyTrainer": "Trainer"},
    "keras.src.export.saved_model": {"NumpyExportArchive": "ExportArchive"},
}


def install() -> None:
    """Let the backend that is called ``hybridflow`` exist, and be the one unless another was chosen.

    Raises ImportError where Keras is not there, or was imported before, with another backend.
    """
    is_there = any(isinstance(finder, _Finder) for finder in sys.meta_path)
    keras = sys.modules.get("keras.src.backend.config")
    if keras is not None and (keras.backend() != NAME or (not is_there and "keras" in sys.modules)):
        raise ImportError("import hybridflow.keras_backend before keras: Keras has chosen its backend already.")
    if keras is None and importlib.util.find_spec("keras") is None:
        raise ImportError("Keras is not installed: pip install 'hybridflow[keras]'.")
    if not os.environ.get("KERAS_BACKEND"):
        os.environ["KERAS_BACKEND"] = NAME
    if is_there:
        return
    for name in [name for name in sys.modules if name.startswith("keras.")]:
        del sys.modules[name]  # what an import left that failed for want of the hook
    sys.meta_path.insert(0, _Finder())


def _check_version() -> None:
    try:
        version = importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError:
        return  # a checkout of Keras; a branch that is missing says so
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if not _TESTED[0] <= numbers < _TESTED[1]:
        first, last = (".".join(map(str, bound)) for bound in _TESTED)
        raise ImportError(f"the backend hybridflow needs Keras from {first} on and before {last}; this is {version}.")


class _Finder:
    """Finds the modules of Keras that choose between backends, or are to know symbolic extents."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        is_choosing = name in _CHOOSING
        if not (is_choosing or name in _COMPLETED) or os.environ.get("KERAS_BACKEND") != NAME:
            return None
        _check_version()
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            raise ImportError(f"the backend hybridflow reads the source of {name}, which is not there.")
        loader = _Loader(name, spec.loader.path)
        return importlib.util.spec_from_file_location(
            name, spec.origin, loader=loader, submodule_search_locations=spec.submodule_search_locations
        )


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads one of those modules."""

    def get_code(self, fullname: str) -> CodeType:  # anew: what is compiled on disk has the branches of Keras alone
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        if fullname in _CHOOSING:
            tree = _with_branch(tree, fullname, _CHOOSING[fullname])
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        complete = _COMPLETED.get(module.__name__)
        if complete is not None:
            complete(module)


def _with_branch(tree: ast.Module, module: str, names: dict[str, str]) -> ast.Module:
    """The module with a branch for hybridflow in front of that for NumPy, in the ``if`` that chooses the backend."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.If) and _chosen(statement.test) == _LIKE:
            other = ast.If(statement.test, statement.body, statement.orelse)
            statement.test = _Renamed(names).visit(copy.deepcopy(statement.test))
            statement.body = [_Renamed(names).visit(copy.deepcopy(line)) for line in other.body]
            statement.orelse = [ast.copy_location(other, statement)]
            return ast.fix_missing_locations(tree)
    raise ImportError(f"{module} does not choose between backends as the supported versions of Keras do.")


def _chosen(test: ast.expr) -> object:
    """The text that a test compares the backend's name with."""
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1 or "backend" not in ast.unparse(test.left):
        return None
    other = test.comparators[0]
    return other.value if isinstance(other, ast.Constant) and isinstance(test.ops[0], ast.Eq) else None


class _Renamed(ast.NodeTransformer):
    """NumPy's branch as ours."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Constant(self, node: ast.Constant) -> Any:
        return ast.copy_location(ast.Constant(NAME), node) if node.value == _LIKE else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        prefix = f"keras.src.backend.{_LIKE}"
        if node.module is None or not node.module.startswith(prefix):
            return node
        module = _HERE + node.module[len(prefix) :]
        aliases = [ast.alias(self._names.get(alias.name, alias.name), alias.asname) for alias in node.names]
        return ast.copy_location(ast.ImportFrom(module, aliases, 0), node)


def _know_symbolic_extents(module: ModuleType) -> None:
    """Let a shape of a tensor that is traced say None for the extents that are open."""
    from hybridflow.compiler.ir.extents import Dim

    known: Callable[[Any], Any] = module.standardize_shape

    def standardize_shape(shape: object) -> Any:
        if isinstance(shape, (tuple, list)):
            shape = tuple(None if isinstance(extent, Dim) else extent for extent in shape)
        return known(shape)

    standardize_shape.__doc__ = known.__doc__
    vars(module)["standardize_shape"] = standardize_shape


def _leave_operators(module: ModuleType) -> None:
    """Let a tensor on the left of an operator leave it to Keras's symbolic tensor on the right."""
    module.KerasTensor.__array_ufunc__ = None


def _let_layers_of_data_compute(module: ModuleType) -> None:
    """Let what preprocessing layers compute with be this backend."""
    known: Callable[[Any, str], Any] = module.DynamicBackend.__getattr__

    def get(self: Any, name: str) -> Any:
        if vars(self).get("_backend") == NAME:
            return getattr(module.backend_module, name)
        return known(self, name)

    module.DynamicBackend.__getattr__ = get


_COMPLETED: dict[str, Callable[[ModuleType], None]] = {
    "keras.src.backend.common.variables": _know_symbolic_extents,
    "keras.src.backend.common.keras_tensor": _leave_operators,
    "keras.src.utils.backend_utils": _let_layers_of_data_compute,
}
