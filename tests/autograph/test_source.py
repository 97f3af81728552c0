"""The source of functions, wherever they come from, and code rebuilt from it."""

from __future__ import annotations

import ast
import asyncio
import doctest
import gc
import importlib
import importlib.util
import inspect
import linecache
import os
import pkgutil
import py_compile
import subprocess
import sys
import threading
import traceback
import warnings
import weakref
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import pytest

import hybridflow as hf
from hybridflow.autograph.source import code_unit, lookup, source_locations
from hybridflow.autograph.source.code_builder import Rebuilder, rebuild
from hybridflow.autograph.source.lookup import ByCode, Missing, Source, find, remember
from hybridflow.errors import short_location
from tests.support.paths import ROOT

IDENTITY = Rebuilder(lambda node, _: node)

PROGRAM = '''\
import math, os.path
from json import dumps as to_text
try:
    import string
except ImportError:
    string = None

def plain(x, y=1, *rest, key: int = 2, **more) -> "nothing":
    """Says so."""
    return math.floor(x) + y + key + string.capwords.__code__.co_argcount

def decorate(*_):
    return lambda function: function

@decorate(
    1, lambda x, y=1: x,
)
@decorate()
def decorated(x):
    return os.path.join(x, to_text.__name__)

def outer(a, __b):
    c = 1
    def inner(d, default=[lambda: a]):
        nonlocal c
        c += 1
        class Local:
            """Inside."""
            name = __qualname__
            def method(self):
                return super().__init__, a, self.name
        text = """
not indented
  ü"""
        return inner, d, Local, __b, text
    return inner, lambda: (a, c)

class Base:
    def size(self): return 1

class _Owner(Base):
    __private = 3
    def __init__(self): self.__count = self.__private
    def size(self):
        def helper():
            return self.__count + len(__class__.__name__)
        return super().size() + helper()
    @staticmethod
    def maker():
        return lambda self: self.__private
    class Inner:
        def get(self, o): return o._Owner__private, self.__x
    global escaped
    def escaped(self): return self.__count

pair = lambda x: x + 1, lambda x: x + 2
twins = [lambda x: x, lambda x: x]
table = {
    "a": lambda x: x * 10, "b": (
        lambda x, *,
               k=1: x
            + k),
}
apart = (plain(1) if 0 else
         [1, (lambda q: q - 1)][
             1], lambda q: q - 1,
         ); alone = lambda q: q - 1
späte = [lambda ü: ü + "é"]; after = lambda x: ("ä", x)

def yields(n):
    for i in range(n):
        yield i
async def waits(n):
    async with n as m, m:
        return [i async for i in m if await i]
async def both(n):
    yield await n
'''
PROGRAM += "def one():\n def two():\n  def three(): return one, two\n  return three\n return two\n"
PROGRAM += "if 1:\n\tdef tabs(x):\n\t\tif x:\n\t\t\treturn (x +\n1\n\t\t\t)\n\t\t# last\n"
PROGRAM += "if 1:\n    def fed(x):\n        y = '''\n\x0c'''; z = '\\d'\n\x0c\n        return y is 'a'\n"
PROGRAM += "def folded(x):\n    while 0: x = 1\n    assert (x, 1)\n"
PROGRAM += "    return (1, 2.0, -0.0, 1e400, b'', frozenset, x in {1, 2})\n"
PROGRAM += (
    "def branches(x):\n    if x: return 1\n    else:\n        if 0:\n            y = 1\n        pass\n    'nothing'\n"
)
if sys.version_info >= (3, 12):
    PROGRAM += (
        "def generic[T](x: T, f=lambda: 1) -> T:\n    y: T = x\n    return T, y\n"
        "class Generic[T]:\n    def method(self, x: T) -> T: return T, super().__init__\n"
        "    def own[U](self, x: U) -> U: return self.__hidden, U, T\n"
        "def around():\n    def within[T](x: T): return T, around, within\n    return within\n"
    )


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """The code objects of functions in a module's code, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            named = constant.co_name == "<lambda>" or not constant.co_name.startswith("<")
            if named and constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            yield from functions_in(constant)


def module_of(path: Path, text: str) -> ModuleType:
    """Import a file with this text, as a module of its name."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return module


def assert_same(made: CodeType | Missing, code: CodeType, positions: bool = True) -> None:
    """Equal in everything that a program can see; an independent comparison, through all nested code."""
    assert isinstance(made, CodeType), (code.co_qualname, made)
    for name in dir(code):
        if name.startswith("co_") and name not in ("co_consts", "co_lines", "co_positions", "co_linetable"):
            if name in ("co_lnotab", "_co_code_adaptive", "co_firstlineno") and not positions:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                assert getattr(made, name) == getattr(code, name), (code.co_qualname, name)
    assert len(made.co_consts) == len(code.co_consts)
    for ours, theirs in zip(made.co_consts, code.co_consts):
        if isinstance(theirs, CodeType):
            assert_same(ours, theirs, positions)
        else:
            assert type(ours) is type(theirs) and (ours == theirs or repr(ours) == repr(theirs)), code.co_qualname
    if positions:
        assert list(made.co_positions()) == list(code.co_positions()), code.co_qualname


def text_of(found: Source | Missing) -> str:
    """The found function in the words of Python's own unparser."""
    assert isinstance(found, Source), found
    return ast.unparse(found.node)


def child(arguments: list[str], **options: Any) -> str:
    """What another interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=900, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- files


def test_every_kind_of_function_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(PROGRAM, str(path), "exec", dont_inherit=True)
    found = list(functions_in(code))
    assert len(found) >= 36
    for each in found:
        if each.co_name != "T":
            assert_same(IDENTITY.code(each), each)


def test_future_statements_hold(tmp_path: Path) -> None:
    text = "from __future__ import annotations\ndef f(x: nothing):\n    y: nothing = x\n    def g(x: nothing): pass\n"
    module = module_of(tmp_path / "future.py", text)
    assert_same(IDENTITY.code(module.f.__code__), module.f.__code__)


def modules_below(folder: str, prefix: str) -> Iterator[str]:
    """The names of all modules in a folder, at any depth; none of them is imported."""
    for found in pkgutil.iter_modules([folder], prefix):
        if found.name != "hybridflow.keras_backend":  # whose modules import Keras, and make it choose a backend
            yield found.name
            if found.ispkg:
                yield from modules_below(os.path.join(folder, found.name.removeprefix(prefix)), f"{found.name}.")


STANDARD = "argparse dataclasses collections textwrap json.decoder enum typing inspect unittest.mock asyncio.tasks"


@pytest.mark.parametrize("name", [*STANDARD.split(), *modules_below(hf.__path__[0], "hybridflow.")])
def test_identity_reproduces_the_byte_code(name: str) -> None:
    found = importlib.util.find_spec(name)
    assert found is not None
    code = found.loader.get_code(found.name)  # type: ignore[union-attr]  # another module may have this name, too
    for each in functions_in(code):
        if "_Func" in each.co_name or each.co_name in ("F", "T", "V"):  # bounds of type variables
            continue
        assert_same(IDENTITY.code(each), each)


def test_module_that_names_super(tmp_path: Path) -> None:
    for line in ("class super: pass", "def super(*_): return object", "old = super", "print(super)"):
        text = f"{line}\nclass C:\n    def f(self):\n        return super().__init__\n"
        module = module_of(tmp_path / "shadowed.py", text)
        linecache.clearcache()
        assert_same(IDENTITY.code(module.C.f.__code__), module.C.f.__code__)


def test_lambdas_in_a_dict_are_found_without_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = "'a': lambda x: x + 1", "'b': (lambda y: lambda x: x * y, (3,))", "'c': [lambda x: x + 1]"
    text = "table = {\n" + "".join(f"    {entry},\n" for entry in entries) + "}\n"
    module = module_of(tmp_path / "program.py", text)

    def whole(text: str, flags: int) -> Any:
        raise AssertionError("all of the file is parsed")

    monkeypatch.setattr(lookup, "_whole_file", whole)
    table = module.table
    found = [find(f.__code__) for f in (table["a"], table["b"][0], table["b"][0](2), table["c"][0])]
    assert [text_of(one) for one in found] == [
        "lambda x: x + 1",
        "lambda y: lambda x: x * y",
        "lambda x: x * y",
        "lambda x: x + 1",
    ]
    assert [one.node.lineno for one in found if isinstance(one, Source)] == [2, 3, 3, 4]


def test_two_lambdas_on_one_line_are_told_apart(tmp_path: Path) -> None:
    module = module_of(tmp_path / "program.py", PROGRAM)
    first, second = module.pair
    assert [text_of(find(f.__code__)) for f in (first, second)] == ["lambda x: x + 1", "lambda x: x + 2"]
    columns = []
    for twin in module.twins:
        found = find(twin.__code__)
        assert isinstance(found, Source)
        columns.append(found.node.col_offset)
    assert columns == [9, 22]
    assert text_of(find(module.table["b"].__code__)) == "lambda x, *, k=None: x + k"
    assert text_of(find(module.plain.__code__)).startswith("def plain(x, y=None, *rest, key=None, **more):")


def test_function_that_moved_is_found_and_one_that_changed_is_not(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    text = "def f(x):\n    return x + 1\n\ng = lambda x: x * 3\ndef h(x):\n    return [x,\n        f(x)]\n"
    module = module_of(path, text)
    path.write_text("import os\n\n# new\n" + text.replace("x + 1", "x + 2").replace("f(x)", "  f(x)"), encoding="utf-8")
    os.utime(path, (2**31, 2**31))
    found = find(module.h.__code__, module.h)
    assert text_of(found) == "def h(x):\n    return [x, f(x)]"
    assert isinstance(found, Source) and found.node.lineno == 5  # where its errors say it stands
    assert text_of(find(module.g.__code__, module.g)) == "lambda x: x * 3"
    missing = find(module.f.__code__, module.f)
    assert isinstance(missing, Missing) and "edited since it was imported" in missing.reason and not missing


def test_lines_read_before_an_edit_still_serve(tmp_path: Path) -> None:
    path = tmp_path / "edited_later.py"
    module = module_of(path, "def f(x):\n    return x + 1\n")
    linecache.getlines(str(path))
    path.write_text("def f(x):\n    return x + 2\n", encoding="utf-8")
    assert "x + 1" in text_of(find(module.f.__code__, module.f))


def test_missing_file_and_rewritten_byte_code_are_named(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    module = module_of(path, "def f(x): return x + 1\ndef g(x): return x\n")
    os.utime(path, (1, 1))
    changed = module.f.__code__.replace(co_consts=(None, 2))
    missing = find(changed, module.f)
    assert isinstance(missing, Missing) and "rewrote" in missing.reason
    path.unlink()
    linecache.clearcache()
    missing = find(module.f.__code__, module.f)
    assert isinstance(missing, Missing) and "is not there" in missing.reason and "gone.py" in missing.reason
    missing = find(compile("1", "x.py", "exec"))
    assert isinstance(missing, Missing) and "not the code of a function" in missing.reason


def test_constants_are_compared_by_type_and_bits(tmp_path: Path) -> None:
    path = tmp_path / "constants.py"
    for old, new in [("1", "1.0"), ("1", "True"), ("0.0", "-0.0"), ("(1, 2)", "(1, 2.0)"), ("'a'", "b'a'")]:
        module = module_of(path, f"def f():\n    return {old}\n")
        path.write_text(f"def f():\n    return {new}\n", encoding="utf-8")
        linecache.clearcache()
        assert isinstance(find(module.f.__code__, module.f), Missing), (old, new)


def test_marked_coroutines(tmp_path: Path) -> None:
    text = "import types\n@types.coroutine\ndef f():\n    yield 1\n"
    module = module_of(tmp_path / "marked.py", text)
    assert_same(IDENTITY.code(module.f.__code__, module.f), module.f.__code__)


def test_assertions_rewritten_by_pytest() -> None:
    def f(x: int) -> int:
        y = [lambda: x]
        assert x > 0, "positive"
        assert y and x
        return x

    found = find(f.__code__, f)
    if "@pytest_ar" in f.__code__.co_names:  # not under -p no:assertion or PYTHONOPTIMIZE
        assert "assert x > 0, 'positive'" in text_of(found)
    new = IDENTITY.function(f)
    assert isinstance(new, FunctionType) and new(3) == 3
    with pytest.raises(AssertionError, match="positive"):
        new(-1)


def test_zip_archives_and_pyc_only(tmp_path: Path) -> None:
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("in_zip.py", "def f(x):\n    return x + 1\n")
    (tmp_path / "bare.py").write_text("def f(x):\n    return x + 1\n")
    py_compile.compile(str(tmp_path / "bare.py"), cfile=str(tmp_path / "bare.pyc"))
    (tmp_path / "bare.py").unlink()
    program = (
        f"import sys; sys.path[:0] = [{str(archive)!r}, {str(tmp_path)!r}]\n"
        "import in_zip, bare, ast\n"
        "from hybridflow.autograph.source.lookup import find\n"
        "print(ast.unparse(find(in_zip.f.__code__).node))\n"
        "print(find(bare.f.__code__, bare.f).reason)\n"
    )
    said = child(["-c", program])
    assert said.startswith("def f(x):\n    return x + 1\n") and "its file is not there" in said


@pytest.mark.parametrize("options", [["-O"], ["-OO"], ["-X", "no_debug_ranges"]], ids=" ".join)
def test_other_ways_to_compile(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    said = child([*options, __file__, str(tmp_path / "program.py")])
    assert said == "all found"


# ---- text that is not in a file

LATE = """
from hybridflow.autograph.source.lookup import find, remember
import ast
def show(f):
    found = find(f.__code__, f)
    print(ast.unparse(found.node) if found else found.reason)
"""


@pytest.mark.parametrize("flags", [["-c"], ["-sc"], ["-W", "ignore", "-X", "utf8", "-Bc"]], ids=" ".join)
def test_command_line(flags: list[str]) -> None:
    program = LATE + "def f(x):\n    return 'é' + x\nshow(f); show(lambda: 7)\n"
    assert child([*flags, program], env={"HF_KEEP_TEXT": "0"}) == "def f(x):\n    return 'é' + x\nlambda: 7"
    if len(flags) == 1:
        glued = flags[0] + program
        assert child([glued], env={"HF_KEEP_TEXT": "0"}) == "def f(x):\n    return 'é' + x\nlambda: 7"


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["python", "-c", "a"], "a"),
        (["python", "-Ica"], "a"),
        (["python", "-Wignore", "-X", "-c", "-bc", "a"], "a"),
        (["python", "--check-hash-based-pycs", "-c", "-c", "a"], "a"),
        (["python", "-m", "x", "-c", "a"], None),
        (["python", "-im", "x", "-c", "a"], None),
        (["python", "file.py", "-c", "a"], None),
        (["python", "-", "-c", "a"], None),
        (["python", "-c"], None),
        (["python"], None),
    ],
)
def test_command_line_is_read_as_python_reads_it(arguments: list[str], text: str | None) -> None:
    assert source_locations.command_text(arguments) == text


def test_standard_input(tmp_path: Path) -> None:
    program = LATE + "def f(x):\n    return x + 1\nshow(f)\n"
    path = tmp_path / "program"
    path.write_text(program)
    with path.open() as file:
        assert child([], stdin=file) == "def f(x):\n    return x + 1"
    said = child([], input=program)  # a pipe: the text is gone
    assert "typed or executed where no text is kept (<stdin>)" in said


EXECUTED = """
import code, sys
names = {**globals()}
text = "@remembered\\ndef f(x):\\n    return x + 1\\ndef helper(x):\\n    return x + 2\\n"
def remembered(f):
    remember(f)
    return f
names["remembered"] = remembered
def run():
    exec(text, names)
run()
show(names["f"]); show(names["helper"])
exec(open(sys.argv[1]).read(), names)
show(names["g"]); show(names["late"])
console = code.InteractiveConsole(names)
for line in ["@remembered", "def k(x):", "    return x + 5", "", "def late(x):", "    return x + 6", ""]:
    console.push(line)
show(names["k"]); show(names["late"])
"""


@pytest.mark.parametrize("kept", [1, 0])
def test_strings_given_to_exec_and_consoles(tmp_path: Path, kept: int) -> None:
    (tmp_path / "given").write_text("def g(x):\n    return x + 3\ndef late(x):\n    return x + 4\n")
    (tmp_path / "program.py").write_text(LATE + EXECUTED)
    said = child([str(tmp_path / "program.py"), str(tmp_path / "given")], env={"HF_KEEP_TEXT": str(kept)})
    lines = [line.strip() for line in said.splitlines() if "def" not in line and "@" not in line]
    if not kept:  # found on the way when decorated, as what stands beside it; the others are said to be lost
        assert [line for line in lines if "no text is kept" not in line] == [f"return x + {i}" for i in (1, 2, 5)]
    assert len(lines) == 6 and (not kept or lines == [f"return x + {i}" for i in range(1, 7)])


def test_doctests_remember() -> None:
    names: dict[str, Any] = {"remember": remember, "made": []}
    example = ">>> def f(x):\n...     return x + 1\n>>> remember(f); made.append(f)\n"
    test = doctest.DocTestParser().get_doctest(example, names, "sample", "sample.py", 0)
    doctest.DocTestRunner().run(test, clear_globs=False)
    source_locations._cached.clear()
    assert text_of(find(names["made"][0].__code__)) == "def f(x):\n    return x + 1"


def test_notebook_cells() -> None:
    cell = "import math\ndef f(x):\n    return math.floor(x)\n"
    linecache.cache["<cell 1>"] = (len(cell), None, cell.splitlines(True), "<cell 1>")  # as IPython does
    names: dict[str, Any] = {}
    exec(compile(cell, "<cell 1>", "exec"), names)
    source_locations._cached.clear()
    assert_same(IDENTITY.code(names["f"].__code__), names["f"].__code__)


def test_lines_of_cells_are_shown_as_the_notebook_numbers_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython's compiler knows which cell a file stands for that it made up."""
    cells = {"/tmp/ipykernel_1/2.py": ("Cell", "In[7]"), "/tmp/ipykernel_1/3.py": ("File", "3.py")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=cells.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    names: dict[str, Any] = {"hf": hf}
    exec(compile("def f(x, i):\n    return x[i]\n", "/tmp/ipykernel_1/2.py", "exec"), names)
    with pytest.raises(IndexError, match=r"\(In\[7\]:2\)"):
        hf.function(names["f"])(hf.ones(3), hf.asarray(5))
    assert short_location("/tmp/ipykernel_1/3.py:4") == "3.py:4" and short_location("a/b.py:1") == "b.py:1"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert short_location("/tmp/ipykernel_1/2.py:4") == "2.py:4"


def test_kept_texts_are_bounded() -> None:
    source_locations.listen()
    source_locations._cached.clear()
    for i in range(200):
        compile(f"def f(): return {i}", "<bounded>", "exec")
    assert len(source_locations._cached) == source_locations.MAX_CACHED_TEXTS
    for i in range(8):
        compile(f"def f(): return {i}\n#" + "x" * (source_locations.MAX_CACHED_CHARACTERS // 4), "<bounded>", "exec")
    assert sum(len(text) for _, text in source_locations._cached) <= source_locations.MAX_CACHED_CHARACTERS
    source_locations._cached.clear()
    compile("1 + 1", "<bounded>", "exec")
    compile("def f(): pass", "file.py", "exec")
    ast.parse("def f(): pass")
    find(test_kept_texts_are_bounded.__code__)
    assert not source_locations._cached


def console(lines: list[str], folder: Path) -> None:
    """Type lines at a console of its own, line by line as it asks for them."""
    pty = pytest.importorskip("pty")
    import select

    child_id, terminal = pty.fork()
    if not child_id:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHON_BASIC_REPL": "1", "HOME": str(folder)}
        environment.pop("PYTHONSTARTUP", None)
        environment["HF_KEEP_TEXT"] = "0"
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-q"], environment)
    try:
        for line in [*lines, None]:
            said = b""
            while not said.rstrip().endswith((b">>>", b"...")):
                assert select.select([terminal], [], [], 60)[0], said
                said += os.read(terminal, 65536)
            os.write(terminal, b"\x04" if line is None else line.encode() + b"\n")
        while select.select([terminal], [], [], 60)[0] and os.read(terminal, 65536):
            pass
    except OSError:  # the terminal closes with its process
        pass
    finally:
        os.close(terminal)
        os.waitpid(child_id, 0)


def test_console(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    lines = ["def g(x):", "  y = x + 1", "  return y * 2", "", "h = [lambda a: a, lambda a: a - 3]", "import math"]
    lines += ["@staticmethod", "def k(*a):", "  # says é", "  return math.floor('é')", ""]
    lines += ["import ast, hybridflow.autograph.source.lookup as s", "c = [g, h[1], k.__func__]"]
    lines += [
        "c = [ast.unparse(s.find(f.__code__, f).node) for f in c]",
        f"open({str(tmp_path / 'out')!r}, 'w').write(repr(c))",
    ]
    console(lines, tmp_path)
    assert ast.literal_eval((tmp_path / "out").read_text()) == [
        "def g(x):\n    y = x + 1\n    return y * 2",
        "lambda a: a - 3",
        "@None\ndef k(*a):\n    return math.floor('é')",
    ]


# ---- rebuilding


class Recorder:
    """What changed code works with: notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def note(self, value: Any) -> Any:
        self.seen.append(value)
        return value


PLACE = "\0recorder"


class Noting(ast.NodeTransformer):
    """Passes every name and attribute that is read, and every constant folded with one, through the recorder."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.noted(node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return self.noted(node) if isinstance(node.ctx, ast.Load) else node

    def noted(self, node: ast.expr) -> ast.expr:
        at = {name: getattr(node, name) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")}
        read = ast.Attribute(ast.Constant(PLACE, **at), "note", ast.Load(), **at)
        return ast.Call(read, [node], [], **at)


def noting(recorder: Recorder) -> Rebuilder:
    def transform(node: code_unit.Function, _: Source) -> code_unit.Function:
        if isinstance(node, ast.Lambda):
            node.body = Noting().visit(node.body)
        else:
            node.body = [Noting().visit(statement) for statement in node.body]
        return node

    return Rebuilder(transform, {PLACE: recorder})


def rebuilt(function: FunctionType, recorder: Recorder | None = None) -> FunctionType:
    made = noting(recorder or Recorder()).function(function)
    assert isinstance(made, FunctionType), made
    return made


def test_the_object_is_reached_in_nested_code_too() -> None:
    def f(n: int) -> Any:
        return [(lambda: n + i)() for i in range(n)], (lambda k: k)(n)

    recorder = Recorder()
    assert rebuilt(f, recorder)(2) == f(2)
    assert range in recorder.seen and recorder.seen.count(1) >= 1


def test_placeholders_in_folded_constants() -> None:
    def f(x: object) -> object:
        """Doc."""
        return x

    marker = object()

    def transform(node: code_unit.Function, _: Source) -> code_unit.Function:
        assert isinstance(node, ast.FunctionDef)
        new = ast.parse(f"return x in {{{PLACE!r}, 1}}, ({PLACE!r}, 1, ({PLACE!r},)), {PLACE!r}").body
        node.body[-1:] = [ast.copy_location(new[0], node.body[-1])]
        ast.fix_missing_locations(node)
        return node

    made = Rebuilder(transform, {PLACE: marker}).function(f)
    assert isinstance(made, FunctionType) and made.__doc__ == "Doc."
    assert made(marker) == (True, (marker, 1, (marker,)), marker)
    assert made(2)[0] is False


def test_defaults_cells_super_and_private_names_are_the_original_ones() -> None:
    evaluated = []

    class Base:
        def total(self, more: int) -> int:
            return more

    class _Made(Base):
        __start = 5

        def total(self, more: int = evaluated.append(1) or 2, *, key: int = 3) -> int:  # type: ignore[func-returns-value]
            return super().total(more) + self.__start + key + len(__class__.__name__)  # type: ignore[name-defined]

    assert rebuilt(_Made.total)(_Made()) == _Made().total() == 2 + 5 + 3 + 5
    assert evaluated == [1]

    count = 0

    def add(n: int) -> int:
        nonlocal count
        count += n
        return count

    assert rebuilt(add)(2) == 2 and count == 2
    add.__code__ = rebuilt(add).__code__
    assert add(3) == 5 and count == 5


def test_free_variables_that_are_no_longer_used_stay() -> None:
    a, b = 1, 2

    def f(x: int) -> int:
        return a + b + x

    g = lambda x: a + b + x  # noqa: E731

    def transform(node: code_unit.Function, _: Source) -> code_unit.Function:
        if isinstance(node, ast.Lambda):
            node.body = ast.copy_location(ast.Name("x", ast.Load()), node.body)
        else:
            node.body = [ast.copy_location(ast.Return(ast.copy_location(ast.Name("x", ast.Load()), node)), node)]
        return node

    for each in (f, g):
        made = Rebuilder(transform).function(each)
        assert isinstance(made, FunctionType) and made(7) == 7
        assert made.__code__.co_freevars == ("a", "b")


def test_lambda_may_become_a_def() -> None:
    double = lambda x: x * 2  # noqa: E731

    def transform(node: code_unit.Function, _: Source) -> code_unit.Function:
        assert isinstance(node, ast.Lambda)
        at = {name: getattr(node, name) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")}
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        made = ast.FunctionDef("anything", node.args, body, [], None, None, **at)
        if sys.version_info >= (3, 12):
            made.type_params = []
        return made

    made = Rebuilder(transform).function(double)
    assert isinstance(made, FunctionType) and made(4) == 8
    assert_same(made.__code__, double.__code__, positions=False)


def test_generators_and_coroutines_run() -> None:
    def counts(n: int) -> Iterator[int]:
        for i in range(n):
            got = yield i
            assert got is None

    async def waits(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    assert list(rebuilt(counts)(3)) == [0, 1, 2]
    assert asyncio.run(rebuilt(waits)(3)) == 4


def test_errors_show_the_users_lines_and_columns(tmp_path: Path) -> None:
    module = module_of(
        tmp_path / "fails.py", "# é\n\ndef f(x, y):\n    z = ('é', x)\n    return (z,\n            x / y)\n"
    )
    seen = []
    for function in (module.f, rebuilt(module.f)):
        with pytest.raises(ZeroDivisionError) as caught:
            function(1, 0)
        seen.append(traceback.extract_tb(caught.tb)[-1])
    assert (seen[1].lineno, seen[1].colno, seen[1].end_colno, seen[1].name) == (6, 12, 17, "f")
    assert seen[0] == seen[1] and seen[1].filename == module.__file__


def test_functions_of_other_shape_are_refused() -> None:
    def f(x: int) -> int:
        return x

    found = find(f.__code__)
    assert isinstance(found, Source)

    def add_parameter(node: code_unit.Function, _: Source) -> code_unit.Function:
        node.args.args.append(ast.copy_location(ast.arg("more"), node))
        return node

    with pytest.raises(ValueError, match="has another number of parameters: 2, not 1"):
        rebuild(found, add_parameter)


def test_warnings_are_not_repeated(tmp_path: Path) -> None:
    module = module_of(tmp_path / "warns.py", "def f(x):\n    assert (x, 1)\n    return x is 'a', '\\d'\n")
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert isinstance(IDENTITY.code(module.f.__code__), CodeType)
    assert not seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(find(module.f.__code__), Source)
    assert list(warnings.filters) == before


def test_cache_is_by_identity_and_lets_go(tmp_path: Path) -> None:
    values: ByCode[str] = ByCode()
    first = compile("def f(): pass", "a.py", "exec").co_consts[0]
    second = compile("def f(): pass", "b.py", "exec").co_consts[0]
    assert first == second
    assert values.put(first, "first") == "first" and values.get(second) is None
    assert values.put(second, "second") == "second" and values.put(first, "late") == "first"
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None and len(values._values) == 1 and values.get(second) == "second"


def test_threads_get_the_same_code(tmp_path: Path) -> None:
    module = module_of(tmp_path / "program.py", PROGRAM)
    rebuilder, made = Rebuilder(lambda node, _: node), []
    ready = threading.Barrier(4)

    def ask() -> None:
        ready.wait()
        made.append([rebuilder.code(f.__code__, f) for f in (module.plain, *module.twins, module.tabs, module.yields)])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert all(a is b and isinstance(a, CodeType) for each in made for a, b in zip(each, made[0]))


def main(path: str) -> None:
    """Every function of a file, in an interpreter that was started otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(Path(path).read_text(encoding="utf-8"), path, "exec", dont_inherit=True)
    for each in functions_in(code):
        if each.co_name != "T":
            assert_same(IDENTITY.code(each), each)
            if not isinstance(IDENTITY.code(each), CodeType):
                raise SystemExit(each.co_qualname)
    print("all found")


if __name__ == "__main__":
    main(sys.argv[1])
