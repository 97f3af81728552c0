"""The house as it was designed: every module has a level, and imports point downwards."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import hybridflow as hf
from tests.support.paths import ROOT

pytestmark = pytest.mark.code


# What may import what: each subject what stands above it here.  Modules by the longest prefix that fits;
# whatever is below ``hybridflow`` needs an entry of its own, but for the modules of a room.
SUBJECTS = (
    (
        "errors and flags",
        (
            "hybridflow.code_traits",
            "hybridflow.errors",
            "hybridflow.flags",
            "hybridflow.quick_dataclasses",
            "hybridflow.spans",
        ),
    ),
    (
        "graphs",
        (
            "hybridflow.compiler",
            "hybridflow.compiler.ir",
            "hybridflow.compiler.program",
            "hybridflow.compiler.target",
        ),
    ),
    (
        "ops, their derivatives and index expressions",
        (
            "hybridflow.compiler.ops",
            "hybridflow.compiler.autodiff",
            "hybridflow.compiler.batching",
            "hybridflow.compiler.forward_mode",
            "hybridflow.compiler.index",
        ),
    ),
    (
        "passes",
        (
            "hybridflow.compiler.graph_inlining",
            "hybridflow.compiler.device_partition",
            "hybridflow.compiler.passes",
        ),
    ),
    (
        "fusion, schedules and code generation",
        (
            "hybridflow.compiler.loops",
            "hybridflow.compiler.codegen",
        ),
    ),
    (
        "the compiler's pipeline",
        (
            "hybridflow.compiler.pipeline",
            "hybridflow.compiler.interpreter",
        ),
    ),
    (
        "basics of the runtime",
        (
            "hybridflow.runtime",
            "hybridflow.runtime.argument_checks",
            "hybridflow.runtime.dtypes",
            "hybridflow.runtime.uninterruptible",
            "hybridflow.runtime.fork_safe_locks",
            "hybridflow.runtime.signal_handlers",
            "hybridflow.runtime.gc_pause",
            "hybridflow.runtime.host_callbacks",
            "hybridflow.runtime.host_interface",
            "hybridflow.runtime.thread_pool_words",
        ),
    ),
    ("machine code and its caches", ("hybridflow.runtime.machine",)),
    ("native code of the runtime", ("hybridflow.runtime.native",)),
    (
        "memory and threads",
        (
            "hybridflow.runtime.memory",
            "hybridflow.runtime.threads",
            "hybridflow.runtime.checksums",
            "hybridflow.runtime.profiling_host",
            "hybridflow.runtime.recording_host",
            "hybridflow.runtime.background",
            "hybridflow.runtime.interrupt_checks",
            "hybridflow.runtime.interrupt_checks_code",
            "hybridflow.runtime.process_exchange",
            "hybridflow.runtime.process_exchange_code",
            "hybridflow.runtime.process_exchange_words",
        ),
    ),
    ("tier-up", ("hybridflow.runtime.tiers",)),
    (
        "devices",
        (
            "hybridflow.runtime.cpu",
            "hybridflow.runtime.cuda",
        ),
    ),
    ("native calls", ("hybridflow.runtime.calls",)),
    (
        "tensors, variables and settings",
        (
            "hybridflow.core",
            "hybridflow.config",
            "hybridflow.memory",
        ),
    ),
    (
        "eager execution",
        (
            "hybridflow.eager",
            "hybridflow.tree",
        ),
    ),
    (
        "array functions",
        (
            "hybridflow.array",
            "hybridflow.module",
            "hybridflow.module_parts",
            "hybridflow.fft",
            "hybridflow.random",
        ),
    ),
    ("checkpoints", ("hybridflow.checkpoint",)),
    (
        "source of functions, and its conversion",
        (
            "hybridflow.autograph",
            "hybridflow.autograph.source",
            "hybridflow.autograph.transform",
        ),
    ),
    ("tracing", ("hybridflow.tracing",)),
    ("automatic differentiation", ("hybridflow.autodiff",)),
    ("control flow as functions", ("hybridflow.control",)),
    (
        "effects, and converted control flow while it is traced",
        (
            "hybridflow.effects",
            "hybridflow.autograph.runtime",
        ),
    ),
    ("guards", ("hybridflow.guards",)),
    ("hooks that converted code calls", ("hybridflow.autograph.hooks",)),
    (
        "compiled functions",
        (
            "hybridflow.jit",
            "hybridflow.debugging",
        ),
    ),
    (
        "vmap and summaries",
        (
            "hybridflow.mapping",
            "hybridflow.summary",
        ),
    ),
    ("ragged tensors", ("hybridflow.ragged",)),
    ("strategies and meshes", ("hybridflow.distribute",)),
    (
        "neural networks as functions, data, losses",
        (
            "hybridflow.nn",
            "hybridflow.data",
            "hybridflow.losses",
        ),
    ),
    (
        "special functions, signals and linear algebra",
        ("hybridflow.special", "hybridflow.signal", "hybridflow.linalg", "hybridflow.sparse"),
    ),
    ("texts and look-up tables", ("hybridflow.strings", "hybridflow.lookup")),
    ("numerical methods", ("hybridflow.optimize", "hybridflow.integrate", "hybridflow.interpolate")),
    (
        "initializers, regularizers, constraints, optimizers",
        (
            "hybridflow.initializers",
            "hybridflow.regularizers",
            "hybridflow.constraints",
            "hybridflow.optimizers",
        ),
    ),
    ("quantization", ("hybridflow.quantize",)),
    (
        "layers and metrics",
        (
            "hybridflow.metrics",
            "hybridflow.layers",
        ),
    ),
    ("saved functions", ("hybridflow.saved",)),
    ("weights of other programs", ("hybridflow.weights",)),
    ("libraries for C", ("hybridflow.aot",)),
    ("callbacks", ("hybridflow.callbacks",)),
    ("models", ("hybridflow.models",)),
    ("mixed precision", ("hybridflow.mixed_precision",)),
    ("architectures", ("hybridflow.applications",)),
    ("ONNX files", ("hybridflow.onnx",)),
    ("serving", ("hybridflow.serving",)),
    ("TensorFlow's names: what needs nothing public", ("hybridflow.compat",)),
    ("public names", ("hybridflow",)),
    ("TensorFlow's names: adapters", ("hybridflow.compat.adapters",)),
    ("TensorFlow's names: version 2", ("hybridflow.compat.tf",)),
    ("TensorFlow's names: version 1", ("hybridflow.compat.v1",)),
    ("TensorFlow's names: version 1 inside of version 2", ("hybridflow.compat.tf.compat.v1",)),
    ("Keras on hybridflow", ("hybridflow.keras_backend",)),
    (
        "the command line",
        (
            "hybridflow.cli",
            "hybridflow.__main__",
            "hybridflow.tensorflow",
        ),
    ),
)
LEVELS = {name: level for level, (_, names) in enumerate(SUBJECTS) for name in names}
# Those whose modules need entries of their own.
HOUSES = ("hybridflow", "hybridflow.compiler", "hybridflow.runtime")
RUNTIME = range(6, 13)
THIRD_PARTY = {
    0: set(),
    4: {"numpy"},
    5: {"numpy"},
    **{level: {"numpy", "ml_dtypes", "llvmlite", "cupy"} for level in RUNTIME},
}
USUAL_THIRD_PARTY = {"numpy", "ml_dtypes"}
# Optional ones, each with the one module that may import it, when it is asked for what needs that.
OPTIONAL = {
    "hybridflow.cli.training.datasets": {"PIL"},
    "hybridflow.callbacks.progress": {"tqdm"},
    "hybridflow.distribute.ray_engine": {"ray"},
    "hybridflow.compat.adapters.keras_names": {"PIL"},
    "hybridflow.compat.tf.io": {"PIL"},
    "hybridflow.onnx.meanings.images": {"PIL"},
    **{
        f"hybridflow.keras_backend.modules{name}": {"keras"}
        for name in ("", ".core", ".image", ".linalg", ".math", ".nn", ".numpy", ".random", ".rnn", ".trainer")
    },
    "hybridflow.models.graphviz": {"pydot"},
    "hybridflow.onnx.library": {"onnx"},
    "hybridflow.serving.grpc_messages": {"google"},
    "hybridflow.serving.http_protocol": {"uvicorn"},
    "hybridflow.serving.kserve": {"kserve"},
    "hybridflow.serving.mlserver": {"mlserver"},
    "hybridflow.serving.protocol": {"orjson"},
    "hybridflow.runtime.cuda.cublaslt": {"cuda", "nvmath"},
    "hybridflow.summary.events": {"tensorboardX"},
}
# The runtime knows programs and targets, and nothing of the graphs that they were made from.
RUNTIME_SEES = (
    "hybridflow.errors",
    "hybridflow.flags",
    "hybridflow.quick_dataclasses",
    "hybridflow.spans",
    "hybridflow.compiler.program",
    "hybridflow.compiler.target",
)


def level(module: str) -> int:
    """The level of a module.  Raises LookupError for one that was given none."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in HOUSES and prefix != module:
            break
        if prefix in LEVELS:
            return LEVELS[prefix]
    raise LookupError(f"{module} has no level: say in LEVELS where it belongs")


def modules() -> dict[str, Path]:
    """Every module by name."""
    found = {}
    for folder, _, files in os.walk(ROOT / "hybridflow", followlinks=True):
        for name in files:
            if name.endswith(".py"):
                path = Path(folder, name)
                parts = path.relative_to(ROOT).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All of them, those inside of others as well: without expressions, which are most of a tree."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, part, ()))


def imports(module: str, source: str) -> list[tuple[str, int]]:
    """(imported module, line) of every import statement, wherever it stands, and be it for types only."""
    found = []
    for node in statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(n if n in MODULES else str(node.module), node.lineno) for n in names]
    return found


@functools.cache
def imports_of(module: str) -> list[tuple[str, int]]:
    """The same of a module of the package."""
    return imports(module, MODULES[module].read_text(encoding="utf-8"))


@pytest.mark.every_case
@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module: str) -> None:
    own = level(module)
    wrong = []
    for name, line in imports_of(module):
        place = f"{MODULES[module].relative_to(ROOT)}:{line} imports {name}"
        top = name.partition(".")[0]
        if top == "hybridflow":
            if level(name) > own:
                wrong.append(f"{place}, which lies above")
            if own in RUNTIME and level(name) < RUNTIME[0] and name not in RUNTIME_SEES:
                wrong.append(f"{place}, which is none of the runtime's business")
        elif top in ("compiler", "runtime"):
            wrong.append(f"{place}: write hybridflow.{name}")
        elif top not in sys.stdlib_module_names and top not in (
            THIRD_PARTY.get(own, USUAL_THIRD_PARTY) | OPTIONAL.get(module, set())
        ):
            wrong.append(f"{place}, which is not among what level {own} may use")
    assert not wrong, "\n".join(wrong)


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The sets of modules that import each other, however indirectly."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for name in edges[module]:
            if name not in order:
                visit(name)
            if name in stack:
                lowest[module] = min(lowest[module], lowest[name])
        if lowest[module] == order[module]:
            place = stack.index(module)
            if len(stack) - place > 1:
                found.append(sorted(stack[place:]))
            del stack[place:]

    for module in edges:
        if module not in order:
            visit(module)
    return found


@pytest.mark.slow
def test_no_two_modules_import_each_other() -> None:
    assert not circles({m: [name for name, _ in imports_of(m) if name in MODULES] for m in MODULES})


def test_circles_are_found() -> None:
    edges = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": [], "f": ["f"]}
    assert circles(edges) == [["a", "b", "c"]]


def test_rooms_have_names_of_their_own() -> None:
    rooms = [m.rpartition(".")[2] for m, path in MODULES.items() if path.name == "__init__.py" and m.count(".") == 1]
    public = {name for name in hf.__all__ if not isinstance(getattr(hf, name), types.ModuleType)}
    assert public.intersection(rooms) == {"eager"}  # a room that is loaded, and hidden, before the function is
    assert len(set(rooms)) == len(rooms)


def test_constants_of_modules_have_one_value() -> None:
    twice = []
    for module, path in MODULES.items():
        seen: set[str] = set()
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            targets: list[ast.expr] = []
            if isinstance(statement, ast.Assign):
                targets = statement.targets
            elif isinstance(statement, ast.AnnAssign):
                targets = [statement.target]
            for name in [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]:
                if name in seen:
                    twice.append((module, name))
                seen.add(name)
    assert not twice


def test_every_level_is_in_use() -> None:
    unused = [name for name in LEVELS if name not in MODULES]
    assert not unused


@pytest.mark.parametrize(
    "module",
    ["hybridflow.compiler.new", "hybridflow.compiler.new.part", "hybridflow.new", "hybridflow.runtime.new.part"],
)
def test_module_without_a_level_fails(module: str) -> None:
    with pytest.raises(LookupError, match="has no level"):
        level(module)


def test_walk_finds_what_it_should() -> None:
    source = (
        "from typing import TYPE_CHECKING\nimport numpy as np\n"
        "if TYPE_CHECKING:\n    from hybridflow.core.tensor import Tensor\n    import hybridflow as hf\n"
        "def f():\n    from hybridflow import errors\n    import cupy\n"
        "try:\n    import a\nexcept E:\n    import b\nelse:\n    import c\nfinally:\n    import d\n"
        "match x:\n    case 1:\n        import e\nfor i in x:\n    with y:\n        import f\nelse:\n    import g\n"
    )
    assert sorted(imports("sample", source)) == [
        ("a", 10),
        ("b", 12),
        ("c", 14),
        ("cupy", 8),
        ("d", 16),
        ("e", 19),
        ("f", 22),
        ("g", 24),
        ("hybridflow", 5),
        ("hybridflow.core.tensor", 4),
        ("hybridflow.errors", 7),
        ("numpy", 2),
        ("typing", 1),
    ]


@pytest.mark.parametrize("folder", ["compiler", "runtime"])
def test_importing_the_folder_fails_at_once(folder: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode
    assert f"import hybridflow.{folder}, not the folder '{folder}'" in done.stderr


PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = ("", "examples", "compiler", "runtime", "hybridflow", "hybridflow/jit", "hybridflow/tracing")


@pytest.mark.every_case
@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_files_that_prose_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page.read_text(encoding="utf-8"))
    assert not [name for name in named if not any((ROOT / room / name).exists() for room in ROOMS)]


def test_nobody_asks_for_the_frames_of_all_threads() -> None:
    """CPython 3.11 holds the list of threads while it makes them, which may set off a collection: where that frees a
    ``threading.local``, it waits for that list for good."""
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES.values()
        if re.search("_current_(frames|exceptions)", text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("_current_frames", "_current_exceptions")
    ]
    assert not calls


def test_tests_stand_in_rooms() -> None:
    """Each with a name of its own, by which people speak of it and runs are ordered."""
    modules = [path for path in (ROOT / "tests").rglob("test_*.py") if "data" not in path.parts]
    assert not [path.name for path in modules if path.parent.name in ("tests", "support")]
    assert len({path.name for path in modules}) == len(modules)
