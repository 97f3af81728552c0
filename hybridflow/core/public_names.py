"""The stub of a package as the one list of its public names: read at run time, as editors and type checkers read it.

``lazy_loader.attach_stub`` does the same.  An import in the stub says from which module a name comes, an annotation
that the package's own code sets it.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Source(NamedTuple):
    """Where a public name comes from: an attribute of a module, or the module itself."""

    module: str
    attribute: str | None

    def load(self) -> Any:
        module = importlib.import_module(self.module)
        return module if self.attribute is None else getattr(module, self.attribute)


class PublicNames:
    """What the text of a stub says of a package: the names that are imported, with their sources, and all names."""

    def __init__(self, package: str, text: str) -> None:
        self.sources: dict[str, Source] = {}
        names: list[str] = []
        for statement in ast.parse(text).body:
            match statement:
                case ast.ImportFrom(module=str(module), names=aliases):
                    for alias in aliases:
                        source = (
                            Source(f"{package}.{alias.name}", None) if module == package else Source(module, alias.name)
                        )
                        self.sources[alias.asname or alias.name] = source
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.append(name)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)):
                    self.sources[name] = self.sources[other]
                case _:
                    raise ValueError(f"line {statement.lineno} of the stub of {package} is no import of names")
        self.modules = frozenset(name for name, source in self.sources.items() if source.attribute is None)
        self.all = sorted(name for name in {*names, *self.sources} if not name.startswith("_"))

    def bind_loaded(self, namespace: dict[str, Any]) -> None:
        """Set the names whose modules are loaded; the others wait until they are asked for."""
        namespace.update({n: source.load() for n, source in self.sources.items() if source.module in sys.modules})

    def hide_internal_modules(self, namespace: dict[str, Any]) -> None:
        """Take away the modules that importing them leaves in the namespace of the package, but for the public ones."""
        for name, value in list(namespace.items()):
            if type(value) is type(sys) and name not in self.modules and not name.startswith("_"):
                namespace.pop(name, None)

    def of_packages(self, packages: Iterable[str]) -> list[str]:
        """The names that come from one of these packages."""
        inside = tuple(f"{package}." for package in packages)
        return [name for name, source in self.sources.items() if f"{source.module}.".startswith(inside)]


def read_stub(module: Mapping[str, Any]) -> PublicNames:
    """The stub beside a package, given what is in the package while it is imported, from a folder or an archive."""
    text = module["__loader__"].get_data(module["__spec__"].origin.removesuffix("c") + "i")
    return PublicNames(module["__name__"], text.decode("utf-8"))
