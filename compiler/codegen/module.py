"""The text of one LLVM module: functions, the declarations they need, and constant tables."""

from __future__ import annotations

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.target import Target


class ModuleText:
    """Collects functions and renders the module."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._functions: list[str] = []
        self._globals: dict[str, str] = {}
        self._declares: set[str] = set()

    def function(
        self, emitter: Emitter, name: str, parameters: str, result: str = "void", linkage: str = "", entry: bool = True
    ) -> None:
        """Add the function whose body ``emitter`` wrote, with the declarations and tables that it uses.

        ``linkage`` is what stands before the result type ("internal", "ptx_kernel" ...).  ``entry`` is False where the
        body opens its first block itself.
        """
        self.include(emitter)
        head = f"define {linkage + ' ' if linkage else ''}{result} @{name}({parameters}) #0 {{"
        self._functions.append("\n".join([head, *(["entry:"] if entry else []), *emitter.lines, "}"]))

    def include(self, emitter: Emitter) -> None:
        """Take over what an emitter's body declares and reads."""
        self._declares |= emitter.declares
        self._globals.update(emitter.globals)

    def text(self, definition: str) -> None:
        """Add a definition that was written elsewhere."""
        self._functions.append(definition)

    def declare(self, declaration: str) -> None:
        self._declares.add(declaration)

    def constant(self, name: str, definition: str) -> None:
        """Add a global ``@name = definition``."""
        self._globals[f"@{name}"] = f"@{name} = {definition}"

    def render(self) -> str:
        """The module; the same parts give the same text, which is what the disk cache hashes."""
        wide = f' "prefer-vector-width"="{self.target.vector_bits}"' if self.target.vector_bits else ""
        parts = [
            f'target triple = "{self.target.triple}"\n',
            *self._globals.values(),
            *self._functions,
            *sorted(self._declares),
            f"attributes #0 = {{ nounwind{wide} }}",
            "!0 = !{i32 1}",  # what !nontemporal asks for
        ]
        return "\n".join(parts) + "\n"
