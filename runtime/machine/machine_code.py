"""LLVM text to object bytes, and object bytes to callable code.

Emission leaves little for IR passes to do (it writes explicit vectors in SSA form).  So a few cheap ones run, which
save the code generator more time than they take; a usual pipeline would take as long as the code generator itself.  The
runtime's own modules say themselves what is inlined: the usual pipeline makes their text half as long again, and calls
slower, which then save registers for what they rarely come to. Programs are compiled function by function (``store``);
long ones as several modules, by threads side by side. Loading goes through ORC with JITLink: 0.1 ms and about 40 KiB
per module, all of which unloading returns (see ``_Linkers``).  All of it runs where nobody interrupts it (see
``apart``), and so does unloading: code that nobody has any more waits for the next time that something is loaded.

Threads compile side by side, each with a context and target machines of its own (see ``_Places``), and without
llvmlite's lock wherever LLVM works for long.  The linker is one for all; it takes a fraction of a millisecond.
"""

from __future__ import annotations

import _thread
import collections
import contextlib
import ctypes
import functools
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, ParamSpec, TypeVar

from hybridflow import flags, spans
from hybridflow.compiler.target import Target
from hybridflow.errors import CompileError
from hybridflow.runtime import fork_safe_locks, gc_pause, uninterruptible
from hybridflow.runtime.machine import disk_cache, host_target

Use = Literal["program", "runtime", "device"]  # what a module is: it decides how LLVM goes about it
P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.RLock()  # around the linker, and what is loaded


def _apart(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function run apart."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return uninterruptible.run_uninterruptible(functools.partial(function, *args, **kwargs))

    return call


class _Places:
    """Where threads compile: each place has target machines of its own, as one serves one thread at a time.  Who waits
    for others that compile has none, so that a fork, which takes all of them, waits for nobody who waits for it."""

    MOST = 8  # target machines are kept

    def __init__(self) -> None:
        self.locks = [threading.RLock() for _ in range(self.MOST)]

    @contextlib.contextmanager
    def taken(self) -> Iterator[int]:
        """The number of a place that the thread has meanwhile: the first free one."""
        number = next((k for k, lock in enumerate(self.locks) if lock.acquire(blocking=False)), None)
        if number is None:
            number = threading.get_ident() // 4096 % self.MOST  # identifiers are addresses of pages
            self.locks[number].acquire()
        try:
            yield number
        finally:
            self.locks[number].release()


_places = _Places()
MOST_BATCHES = _Places.MOST  # modules that pay to compile side by side, whatever the threads


class _ForkGuard:
    """Keeps a child from inheriting LLVM in the middle of what another thread does: waits for who compiles, then for
    who links.  At last it takes llvmlite's own lock: finalizers of llvmlite's objects enter LLVM wherever they run.

    It releases them by one operation in C: what interrupted it in between would leave locks taken that no thread would
    ever get.  An interrupt before leaves some of them open.
    """

    def __init__(self) -> None:
        self._taken: dict[int, list[Any]] = {}  # by threads that fork

    def before(self) -> None:
        if _thread._count() > 0:
            # Another thread may be in the middle of an import, whose lock nobody would release in the child.
            fork_safe_locks.load_within_fork(uninterruptible.loaders)
        self._taken[threading.get_ident()] = locks = self._locks()
        for lock in locks:
            lock.acquire()

    def after(self) -> None:
        thread = threading.get_ident()
        _run_all(map(_RLock.release, filter(_RLock._is_owned, self._taken.get(thread, ()))))
        self._taken.pop(thread, None)

    @staticmethod
    def _locks() -> list[Any]:
        ffi = sys.modules.get("llvmlite.binding.ffi")
        ours = [*_places.locks, _lock]
        return ours if ffi is None else [*ours, ffi.lib._lock._lock]


_RLock: Any = _thread.RLock
_run_all: Callable[[Iterator[Any]], None] = collections.deque[Any](maxlen=0).extend
_fork_guard = _ForkGuard()
fork_safe_locks.at_fork(before=_fork_guard.before, after_in_parent=_fork_guard.after, after_in_child=_fork_guard.after)


@uninterruptible.loaded
def _parts() -> ModuleType:
    from hybridflow.runtime.machine import object_images  # only where there is code to compile or to link

    return object_images


@uninterruptible.loaded
def _import_all() -> None:
    import hashlib  # noqa: F401
    import tempfile  # noqa: F401

    import llvmlite.ir  # noqa: F401

    from hybridflow.runtime import gc_pause  # noqa: F401
    from hybridflow.runtime.machine.llvm_binding import binding

    binding()


_names = itertools.count()

_PASSES: dict[Use, tuple[str, ...]] = {
    "program": ("sroa", "simplify_cfg"),
    "runtime": ("always_inliner", "sroa", "simplify_cfg"),
}  # "device": the usual pipeline
QUICK, FULL = 0, 2  # of LLVM's levels of code generation: the one that is done first, and the one that runs fastest


class Code:
    """Loaded code: addresses by symbol.  They stay valid as long as this object lives; then it is unloaded.

    A finalizer in Python would run wherever the last reference goes, and what interrupts it would get lost.
    """

    def __init__(self, addresses: dict[str, int], tracker: Any = None, held: Sequence[Code] = ()) -> None:
        self.addresses = addresses
        self.held = held  # what it calls
        if tracker is not None:
            _trackers[weakref.ref(self, _dead.append)] = tracker


_trackers: dict[weakref.ref[Code], Any] = {}  # LLVM unloads a module with its tracker
_dead: collections.deque[weakref.ref[Code]] = collections.deque()


def _unload() -> None:
    """Unload what nobody has any more."""
    while _dead:
        with contextlib.suppress(RuntimeError):  # which says why LLVM cannot
            _trackers.pop(_dead.popleft()).close()


@functools.cache
def versions() -> str:
    """What besides the text and the target decides the machine code."""
    import llvmlite
    import llvmlite.binding as llvm

    return f"llvmlite {llvmlite.__version__} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


@uninterruptible.once
def _llvm() -> ModuleType:
    from hybridflow.runtime.machine.llvm_binding import binding  # only where there is code to compile or to link

    llvm = binding()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@uninterruptible.once
def _initialize_all_targets() -> None:
    llvm = _llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def level_of(use: Use = "program") -> int:
    """The level of code generation that modules have at last.  3 takes as long as 2 and changes nothing on the kernels
    of the pipeline."""
    return FULL if use != "program" or flags.OPT.value == "auto" else int(flags.OPT.value)


def _target_machine(target: Target, level: int = 2, jit: bool = False) -> Any:
    llvm = _llvm()
    if target.triple.partition("-")[0] != host_target.detect().triple.partition("-")[0]:
        _initialize_all_targets()
    try:
        machine = llvm.Target.from_triple(target.triple)
        return machine.create_target_machine(
            cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="default", jit=jit
        )
    except RuntimeError as error:
        raise CompileError("machine code", f"LLVM has no code generator for {target.triple}: {error}") from None


@functools.lru_cache(maxsize=32)
def _cached_target_machine(target: Target, level: int, number: int) -> Any:
    """``number``: of the place that it is for."""
    return _target_machine(target, level)


class _Linkers:
    """LLVM's linker forgets nothing about a module that was unloaded (9 KiB each) until it goes itself; so each links
    some modules, and lives until the last of them is unloaded."""

    MODULES = 32

    def __init__(self) -> None:
        self._jit: object = None
        self._linked = 0

    def next(self) -> Any:
        """A linker.  It never compiles, so its own target machine matters for the object format only."""
        if self._linked % self.MODULES == 0:
            self._jit = _llvm().create_lljit_compiler(
                _target_machine(host_target.detect(), jit=True), use_jit_link=True
            )
        self._linked += 1
        return self._jit


_linkers = _Linkers()  # used under the lock


def _excerpt(text: str) -> str:
    """The text of a module as an error message shows it: short ones whole, long ones at both ends."""
    if len(text) <= 4000:
        return text
    return (
        f"{text[:2000]}\n... {len(text) - 4000} characters left out; HF_DUMP=folder keeps them all ...\n{text[-2000:]}"
    )


@contextlib.contextmanager
def _parsed(text: str, target: Target, use: Use, level: int) -> Iterator[tuple[Any, Any]]:
    """The target machine and the verified module of a text.  RuntimeError inside says that LLVM cannot emit it."""
    llvm = _llvm()
    with contextlib.ExitStack() as objects:  # which go one before the other, and not with whoever holds a traceback
        enter = objects.enter_context
        machine = _cached_target_machine(target, level, enter(_places.taken()))
        # A context of its own: types and constants of a module die with it instead of growing the global context.
        context = enter(llvm.create_context())
        try:
            module = enter(_parse(text, context))
            module.triple = machine.triple
            module.data_layout = str(enter(machine.target_data))
            _verify(module)
            options = enter(llvm.create_pipeline_tuning_options(speed_level=2))
            builder = enter(llvm.create_pass_builder(machine, options))
            usual = use not in _PASSES
            passes = enter(builder.getModulePassManager() if usual else llvm.create_new_module_pass_manager())
            for name in () if usual else _PASSES[use]:
                getattr(passes, f"add_{name}_pass")()
            _unlocked("RunNewModulePassManager")(passes, module, builder)
        except RuntimeError as error:
            raise CompileError("machine code", f"LLVM rejects the module: {error}\n{_excerpt(text)}") from None
        try:
            yield machine, module
        except RuntimeError as error:
            raise CompileError("machine code", f"LLVM cannot emit the module: {error}\n{_excerpt(text)}") from None


def _unlocked(name: str) -> Any:
    """A function of LLVM's during which other threads may enter LLVM: with other target machines, and with modules of
    other contexts, as LLVM has it.  llvmlite has a lock around all of its calls."""
    function = getattr(_llvm().ffi.lib, f"LLVMPY_{name}")
    return getattr(function, "_cfn", function)


def _parse(text: str, context: object) -> Any:
    """``llvm.parse_assembly``, unlocked."""
    llvm = _llvm()
    with llvm.ffi.OutputString() as error:
        module = llvm.ModuleRef(_unlocked("ParseAssembly")(context, ctypes.c_char_p(text.encode()), error), context)
        if error:
            module.close()
            raise RuntimeError(f"LLVM IR parsing error\n{error}")
    return module


def _verify(module: object) -> None:
    """``module.verify()``, unlocked."""
    with _llvm().ffi.OutputString() as error:
        if _unlocked("VerifyModule")(module, error):
            raise RuntimeError(str(error))


def _object(text: str, target: Target, use: Use, level: int) -> bytes:
    span = spans.span("machine code", "llvm", lines=text.count("\n"), level=level)
    with span, _parsed(text, target, use, level) as (machine, module):
        return _emit_object(machine, module)


def _emit_object(machine: object, module: object) -> bytes:
    """``machine.emit_object(module)``, unlocked."""
    ffi = _llvm().ffi
    with ffi.OutputString() as error:
        buffer = _unlocked("TargetMachineEmitToMemory")(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def compile_object(text: str, target: Target, use: Use = "program") -> bytes:
    """Machine code of an LLVM module: a relocatable object file."""
    return compile_image([text], target, use)


@_apart
def compile_image(texts: Sequence[str], target: Target, use: Use = "program", level: int | None = None) -> bytes:
    """Machine code of modules that call each other, each by a thread of its own, as an image of relocatable object
    files.  ``level`` is LLVM's of code generation where it is not ``level_of(use)``."""
    level = level_of(use) if level is None else level
    work = [functools.partial(_object, text, target, use, level) for text in texts]
    return bytes(_parts().joined(uninterruptible.run_concurrently(work)))


@_apart
def compile_serially(texts: Sequence[str], target: Target, done: dict[str, bytes], check: Callable[[], None]) -> bytes:
    """The same of a program's modules one after the other, for who holds Python's collector back.  Before each
    of them ``check`` is called, which may raise;
    ``done`` keeps by texts what was compiled, for another time then."""
    for text in texts:
        check()
        if text not in done:
            with gc_pause.give_way():
                done[text] = _object(text, target, "program", level_of())
    return bytes(_parts().joined([done[text] for text in texts]))


@_apart
def compile_library(texts: Sequence[str], target: Target, public: Collection[str]) -> bytes:
    """Machine code of modules as one relocatable object file, in which nobody from outside sees but what is public."""
    llvm, level = _llvm(), FULL
    llvm.initialize_native_asmparser()
    with contextlib.ExitStack() as objects:
        enter = objects.enter_context
        machine = _cached_target_machine(target, level, enter(_places.taken()))
        context = enter(llvm.create_context())
        try:
            whole = enter(_parse(texts[0], context))
            whole.triple, whole.data_layout = machine.triple, str(enter(machine.target_data))
            whole.name = "hybridflow"
            for text in texts[1:]:
                part = _parse(text, context)
                part.triple, part.data_layout = whole.triple, whole.data_layout
                whole.link_in(part)
            for value in (*whole.functions, *whole.global_variables):
                if not value.is_declaration and value.name not in public:
                    value.linkage = "internal"
            _verify(whole)
            options = enter(llvm.create_pipeline_tuning_options(speed_level=2))
            builder = enter(llvm.create_pass_builder(machine, options))
            passes = enter(llvm.create_new_module_pass_manager())
            for name in _PASSES["program"]:
                getattr(passes, f"add_{name}_pass")()
            passes.add_global_dead_code_eliminate_pass()
            passes.run(whole, builder)
            return _emit_object(machine, whole)
        except RuntimeError as error:
            raise CompileError("machine code", f"LLVM cannot make an object file: {error}") from None


@_apart
def compile_assembly(text: str, target: Target, use: Use = "program") -> str:
    """The same as assembly text, also for targets other than the host."""
    with _parsed(text, target, use, level_of(use)) as (machine, module):
        return str(machine.emit_assembly(module))


def object_key(source: str, target: Target, use: Use = "program", level: int | None = None) -> str:
    """Key of machine code in the disk cache: all that decides its bytes.  ``source`` is the text or stands for it,
    ``level`` LLVM's of code generation where it is not ``level_of(use)``."""
    settings = f"{level_of(use) if level is None else level} {_PASSES.get(use, 'usual')} parts"
    return "\n".join(("object", versions(), settings, target.triple, target.cpu, target.features, source))


@_apart
def load_object(image: bytes, *symbols: str, imports: dict[str, int] | None = None) -> Code:
    """Link an image of object code into the process.  ``symbols`` get addresses; ``imports`` name addresses that the
    code uses.

    Other undefined symbols (memcpy, fmaf ...) are looked up in the process, libm and libc included.
    """
    try:
        files = _parts().separate(image)
    except ValueError as error:
        raise CompileError("machine code", f"the image of {', '.join(symbols)} is damaged: {error}") from None
    with _lock:
        _unload()
        return _linked(files, symbols, imports or {})


def _linked(files: list[bytes], symbols: tuple[str, ...], imports: dict[str, int]) -> Code:
    library = _llvm().JITLibraryBuilder()
    for file in files:
        library.add_object_img(file)
    library.add_current_process()
    for symbol in symbols:
        library.export_symbol(symbol)
    for name, address in imports.items():
        library.import_symbol(name, address)
    try:
        tracker = library.link(_linkers.next(), f"hybridflow.{next(_names)}")
    except RuntimeError as error:  # LLVM has written the reason, such as an unknown symbol, to standard error
        names = ", ".join(symbols)
        raise CompileError("machine code", f"object code of {names} does not link: {error}; see stderr.") from None
    return Code({symbol: tracker[symbol] for symbol in symbols}, tracker)


def cached_code(
    key: str | None,
    compile_: Callable[[], bytes],
    *symbols: str,
    imports: dict[str, int] | None = None,
    label: str = "",
) -> Code:
    """Object code linked into the process (see ``load_object``): from disk where it was kept under ``key``, else, and
    where that does not link, of ``compile_``, and kept.  Without a key nothing is looked up or kept.  ``label`` says to
    people whose code it is, the first symbol if nobody does."""
    return uninterruptible.run_uninterruptible(
        lambda: _cached_code(key, compile_, symbols, imports, label or symbols[0])
    )


def _cached_code(
    key: str | None,
    compile_: Callable[[], bytes],
    symbols: tuple[str, ...],
    imports: dict[str, int] | None,
    label: str,
) -> Code:
    image = disk_cache.get(key) if key is not None else None
    if image is not None:
        with contextlib.suppress(CompileError):
            return load_object(image, *symbols, imports=imports)
    image = compile_()
    code = load_object(image, *symbols, imports=imports)
    if key is not None:
        disk_cache.put(key, image, f"code of {label}")
    return code
