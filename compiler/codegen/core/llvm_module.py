"""The text of one LLVM module: functions, the declarations they need, and constant tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.target import Target


class LLVMModule:
    """Collects functions and renders the module.

    Functions of one text are kept once: layers of a network and steps of an unrolled loop often need equal kernels, and
    machine code for a kernel takes a hundred times as long as writing it down.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._counts: dict[str, int] = {}
        self._names: set[str] = set()
        self._functions: dict[tuple[str, str], str] = {}  # what stands before and after the name -> name
        self._for_host: dict[tuple[str, str], str] = {}
        self._declared_for_host: set[str] = set()
        self._globals: dict[str, str] = {}
        self._declares: set[str] = set()

    def function(
        self,
        emitter: Emitter,
        name: str,
        parameters: str,
        result: str = "void",
        linkage: str = "",
        for_host: bool = False,
        attributes: str = "",
    ) -> str:
        """Add the function whose body ``emitter`` wrote, with the declarations and tables that it uses.

        ``linkage`` is what stands before the result type ("internal", "ptx_kernel" ...), ``attributes`` what LLVM is
        told besides.  ``for_host``: on a CPU only a
        host has it run, so it belongs to the addition for hosts.  Returns the name to call: that of an equal function
        where there is one, another where a function of that name is there.
        """
        for_host = for_host and self.target.kind != "cuda"
        if for_host:
            self._declared_for_host |= emitter.declares
        else:
            self._declares |= emitter.declares
        self._globals.update(emitter.globals)
        head = f"define {linkage + ' ' if linkage else ''}{result} @"
        text = "\n".join([f"({parameters}) #0{attributes and ' '}{attributes} {{", "entry:", *emitter.lines, "}"])
        written = self._functions.get((head, text))
        if written is None:
            written = self._for_host.get((head, text))
            if written is None:
                written = name if name not in self._names else self.fresh(f"{name}_")
                self._names.add(written)
            elif not for_host:
                del self._for_host[head, text]  # the module itself needs it, too
            (self._for_host if for_host else self._functions)[head, text] = written
        return written

    def fresh(self, hint: str) -> str:
        """A name that no other function has."""
        number = self._counts.get(hint, 0)
        self._counts[hint] = number + 1
        return f"{hint}{number}"

    def render(self, for_host: bool = False) -> str:
        """The module, with what is ``for_host`` where it is asked for; the same parts give the same text, which is what
        the disk cache hashes."""
        functions = [*self._functions.items(), *(self._for_host.items() if for_host else ())]
        declares = self._declares | self._declared_for_host if for_host else self._declares
        wide = f' "prefer-vector-width"="{self.target.vector_bits}"' if self.target.vector_bits else ""
        # Where a stack ends is memory that nobody may touch: each page of a large frame is touched in turn.
        probes = "" if self.target.kind == "cuda" else ' "probe-stack"="inline-asm"'
        # A GPU's barriers and shuffles must not move into branches; LLVM finds out which functions have none.
        convergent = "convergent " if self.target.kind == "cuda" else ""
        parts = [
            f'target triple = "{self.target.triple}"\n',
            *self._globals.values(),
            *(f"{head}{name}{text}" for (head, text), name in functions),
            *sorted(declares),
            f"attributes #0 = {{ {convergent}nounwind{wide}{probes} }}",
        ]
        return "\n".join(parts) + "\n"

    def addition(self, write: Callable[[], None]) -> str:
        """What ``write`` adds to the module, and what is there for a host, as text that may follow that of the module
        before it; empty where nothing is written."""
        functions, variables, declares = len(self._functions), len(self._globals), set(self._declares)
        write()
        if len(self._functions) == functions:
            return ""
        added = [*self._for_host.items(), *islice(self._functions.items(), functions, None)]
        parts = [
            *islice(self._globals.values(), variables, None),
            *(f"{head}{name}{text}" for (head, text), name in added),
            *sorted((self._declares | self._declared_for_host) - declares),
        ]
        return "".join(f"{part}\n" for part in parts)
