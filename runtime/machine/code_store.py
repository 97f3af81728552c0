"""Machine code by function: what one program has compiled, any other one finds, in this process or by way of the disk.

A module is cut into units (``units``), which are named by what decides their code.  Those that nobody has made yet are
compiled together, and become an *entry*, under the key of the module's text: their object files, where the module's
other functions are, and the symbols of its entry points.  So a program that any process has compiled is one read, and
one of which only some functions are new compiles those.  Nothing in a key depends on the version of Python.

In memory there are the entries that are loaded, as long as somebody holds their code, and the last ones that were made
or read; for each folder on disk that this process has used, those of that folder.  Whatever is damaged, foreign or gone
is as if it had never been: it is made anew.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridflow.compiler.target import Target
from hybridflow.errors import CompileError
from hybridflow.runtime import fork_safe_locks, uninterruptible
from hybridflow.runtime.machine import disk_cache, machine_code
from hybridflow.runtime.machine.function_index import KEY, Index
from hybridflow.runtime.machine.machine_code import Code

if TYPE_CHECKING:
    from hybridflow.runtime.machine.compilation_units import KernelText, Module


_MEMORY = 16 << 20  # bytes of entries that are kept in memory though nobody may have their code
_MOST_WORKING = 256
_MOST_FOLDERS = 4  # that are remembered
_FEW = 16
_MOST_KNOWN = 1 << 16  # functions of which it is known where they are
_MAGIC = b"hybridflow functions 1"
_OURS = "@hf_"  # begins the names of what this process gives programs an address of

Imports = Callable[[], Mapping[str, int]]


class Counts(NamedTuple):
    """How many functions of programs were compiled in this process, and how many were there."""

    compiled: int
    reused: int


@dataclass(frozen=True)
class Entry:
    """The functions that were new with a module, by their keys, as symbols of ``image``; those that they, or the
    module, need besides, and in which entry they were; the entry points of the module; and what else the image needs
    an address of."""

    members: Mapping[bytes, str]
    needs: Mapping[bytes, tuple[str, bytes]]
    roots: Mapping[str, bytes]
    others: Sequence[str]
    image: bytes

    def payload(self) -> bytes:
        lines = [
            *(f"member {key.hex()} {symbol}" for key, symbol in self.members.items()),
            *(f"need {key.hex()} {symbol} {digest.hex()}" for key, (symbol, digest) in self.needs.items()),
            *(f"root {key.hex()} {name}" for name, key in self.roots.items()),
            *(f"other {name}" for name in self.others),
        ]
        return b"\n".join([_MAGIC, *(line.encode() for line in lines), b"", self.image])

    @classmethod
    def read(cls, payload: bytes) -> Entry | None:
        """None where it is something else."""
        head, separator, image = payload.partition(b"\n\n")
        magic, *lines = head.split(b"\n")
        if magic != _MAGIC or not separator:
            return None
        members: dict[bytes, str] = {}
        needs: dict[bytes, tuple[str, bytes]] = {}
        roots: dict[str, bytes] = {}
        others: list[str] = []
        try:
            for line in lines:
                kind, *words = line.decode().split(" ")
                if kind == "member":
                    key, symbol = words
                    members[bytes.fromhex(key)] = symbol
                elif kind == "need":
                    key, symbol, digest = words
                    needs[bytes.fromhex(key)] = symbol, bytes.fromhex(digest)
                elif kind == "root":
                    key, name = words
                    roots[name] = bytes.fromhex(key)
                else:
                    (name,) = words
                    others.append(name)
        except ValueError:
            return None
        is_whole = bool(image) == bool(members) and all(key in members or key in needs for key in roots.values())
        return cls(members, needs, roots, others, image) if is_whole else None


@dataclass
class _Memory:
    """What this process knows of one folder, or of none."""

    index: Index | None
    lock: Any = field(default_factory=fork_safe_locks.make)  # around what follows, never while anything is made
    places: dict[bytes, bytes] = field(default_factory=dict)  # the entry that holds a function
    entries: dict[bytes, Entry] = field(default_factory=dict)  # the last used ones, last
    size: int = 0  # bytes of their images
    # Entries whose code is loaded, without the image.
    loaded: dict[bytes, tuple[weakref.ref[Code], Entry]] = field(default_factory=dict)
    most_loaded: int = _FEW  # of them, until those whose code nobody has are dropped
    working: dict[bytes, Any] = field(default_factory=dict)  # locks of entries that are being made

    def making(self, digest: bytes) -> Any:
        """A lock for who makes an entry, which others wait for rather than make it, too."""
        with self.lock:
            if len(self.working) > _MOST_WORKING:
                self.working.clear()  # two may then make the same
            return self.working.setdefault(digest, fork_safe_locks.make())

    def entry(self, digest: bytes) -> Entry | None:
        """An entry from memory, else from disk."""
        with self.lock:
            _, result = self.loaded.get(digest, (None, None))
            if result is not None and self.code(digest) is not None:
                return result
            result = self.entries.pop(digest, None)
            if result is not None:
                self.entries[digest] = result  # last
                return result
        payload = disk_cache.get_by(digest)
        result = None if payload is None else Entry.read(payload)
        if result is not None:
            self.keep(digest, result)
        return result

    def code(self, digest: bytes) -> Code | None:
        reference = self.loaded.get(digest)
        return None if reference is None else reference[0]()

    def keep(self, digest: bytes, entry: Entry) -> None:
        with self.lock:
            for old in [digest, *self.entries]:
                if old == digest or self.size + len(entry.image) > _MEMORY:
                    gone = self.entries.pop(old, None)
                    self.size -= 0 if gone is None else len(gone.image)
            self.entries[digest] = entry
            self.size += len(entry.image)
        self.note(entry.members, digest)

    def note(self, keys: Iterable[bytes], digest: bytes) -> None:
        """Functions are in an entry."""
        with self.lock:
            self.places.update(dict.fromkeys(keys, digest))
            while len(self.places) > _MOST_KNOWN:
                del self.places[next(iter(self.places))]

    def note_loaded(self, digest: bytes, entry: Entry, code: Code) -> None:
        with self.lock:
            self.loaded[digest] = weakref.ref(code), replace(entry, image=b"")
            if len(self.loaded) > self.most_loaded:
                for other in [other for other, (reference, _) in self.loaded.items() if reference() is None]:
                    del self.loaded[other]
                self.most_loaded = 2 * len(self.loaded) + _FEW


_memories: dict[tuple[str | None, int], _Memory] = {}
_lock = fork_safe_locks.make()
_counts = Counts(0, 0)


def counts() -> Counts:
    return _counts


def forget() -> None:
    """As a new process begins: with nothing in memory."""
    _memories.clear()


def _memory() -> _Memory:
    folder = disk_cache.usable()
    with _lock:
        result = _memories.get((folder, disk_cache.clearings()))
        if result is None:
            result = _memories[folder, disk_cache.clearings()] = _Memory(None if folder is None else Index(folder))
            while len(_memories) > _MOST_FOLDERS:
                del _memories[next(iter(_memories))]
        return result


def _count(compiled: int, reused: int) -> None:
    global _counts
    with _lock:
        _counts = Counts(_counts.compiled + compiled, _counts.reused + reused)


def key_of(text: str, target: Target, symbols: Sequence[str], level: int | None = None) -> str:
    """The key of a module's entry in the disk cache; ``level`` as in ``machine_code``."""
    return machine_code.object_key("\n".join(("functions", *symbols, text)), target, level=level)


@uninterruptible.loaded
def _units() -> ModuleType:
    from hybridflow.runtime.machine import compilation_units  # only where there is a module that is not on disk

    return compilation_units


@dataclass(frozen=True)
class Loaded:
    """Code of a module, and LLVM's level of code generation that its functions have at the least.  ``better`` gives
    that of the last level, None where this is it: it compiles the functions that have another one, by several threads
    or, with a function to ``check`` whether to go on, which may raise, one part after the other.  It may be called
    again, and goes on then where it was."""

    code: Code
    level: int
    better: Callable[[Callable[[], None] | None], Code] | None = None


def load(
    text: str,
    target: Target,
    symbols: Sequence[str],
    threads: Callable[[], int] = lambda: 1,
    imports: Imports = dict,
    label: str = "",
) -> Code:
    """The code of a module's functions ``symbols``, loaded.  ``threads`` says how many may compile, ``imports`` gives
    addresses of what modules only declare; ``label`` says to people whose code it is, the first symbol if nobody does.
    """
    asked = _CodeRequest(text, target, tuple(symbols), threads, imports, label or symbols[0])
    return uninterruptible.run_uninterruptible(lambda: _Loading(asked, machine_code.level_of()).module())


def load_quickly(
    text: str,
    target: Target,
    symbols: Sequence[str],
    threads: Callable[[], int] = lambda: 1,
    imports: Imports = dict,
    label: str = "",
    later: tuple[str, Sequence[str]] | None = None,
) -> Loaded:
    """The same as soon as it can be had: functions that are not to be found are compiled at the level ``QUICK``.
    ``later`` is a module and its functions, these among them, of which better code is to be: the others come then."""
    asked = _CodeRequest(text, target, tuple(symbols), threads, imports, label or symbols[0])
    last = asked if later is None else _CodeRequest(later[0], target, tuple(later[1]), threads, imports, asked.label)
    return uninterruptible.run_uninterruptible(lambda: _loaded_quickly(asked, last))


def _loaded_quickly(asked: _CodeRequest, last: _CodeRequest) -> Loaded:
    level = machine_code.level_of()
    code = None if level == machine_code.QUICK else _Loading(last, level).known()
    if code is not None or level == machine_code.QUICK:
        return Loaded(code or _Loading(last, level).module(), level)
    code = _Loading(asked, machine_code.QUICK).module()
    done: dict[str, bytes] = {}

    def better(check: Callable[[], None] | None) -> Code:
        return uninterruptible.run_uninterruptible(lambda: _Loading(last, level, check, done).module())

    return Loaded(code, machine_code.QUICK, better)


@dataclass
class _CodeRequest:
    """The arguments of ``load``."""

    text: str
    target: Target
    symbols: tuple[str, ...]
    threads: Callable[[], int]
    imports: Imports
    label: str
    _modules: list[Any] = field(default_factory=list)

    @property
    def module(self) -> Any:
        """What the text is cut into; None where it cannot be."""
        if not self._modules:
            self._modules.append(_units().split_module(self.text))
        return self._modules[0]


class _Loading:
    """One call of ``load``.  What was loaded is held until it is over.  With ``check`` parts are compiled one after the
    other, and ``done`` keeps them."""

    def __init__(
        self,
        asked: _CodeRequest,
        level: int,
        check: Callable[[], None] | None = None,
        done: dict[str, bytes] | None = None,
    ) -> None:
        self.asked, self.level, self.check, self.done = asked, level, check, {} if done is None else done
        self.target, self.symbols = asked.target, asked.symbols
        self.levels = dict.fromkeys((machine_code.level_of(), level))  # of functions that will do, the best one first
        self.memory = _memory()
        self.key = key_of(asked.text, asked.target, asked.symbols, level)
        self.own = disk_cache.digest(self.key)  # the entry of the module
        self.codes: dict[bytes, Code] = {}  # by entry
        self.places: dict[bytes, bytes] = {}  # the entry that holds a function
        self.failed: set[bytes] = set()  # entries that could not be loaded, or are being loaded
        self.is_read = False  # whether the index is what is on disk

    def module(self) -> Code:
        with self.memory.making(self.own):
            return self.known() or self._make_code()

    def _make_code(self) -> Code:
        entry = self._whole() if self.asked.module is None else self._cut(self.asked.module)
        code = self._link(self.own, entry)
        self.memory.keep(self.own, entry)
        kept = disk_cache.put(self.key, entry.payload(), f"code of {self.asked.label}")
        if kept and self.memory.index is not None:
            self.memory.index.add(dict.fromkeys(entry.members, self.own))
        return self._of_module(entry, code)

    def known(self) -> Code | None:
        """The code of a module that somebody has compiled."""
        entry = self.memory.entry(self.own)
        code = None if entry is None or set(entry.roots) != set(self.symbols) else self._load(self.own)
        if entry is None or code is None or not code.addresses.keys() >= set(entry.members.values()):
            return None
        _count(0, len(entry.members) + len(entry.needs))
        return self._of_module(entry, code)

    def _cut(self, module: Module) -> Entry:
        """The entry of a module, with those of its functions that are not to be found, which are compiled."""
        units: dict[bytes, Any] = {}
        missing: dict[bytes, Any] = {}
        for unit in module.reachable([f"@{s}" for s in self.symbols]):
            keys = [_key_for(unit.key, self.target, level) for level in self.levels]
            key = next((key for key in keys if self._code_of(key) is not None), None)
            if key is None:
                key = keys[-1]
                missing[key] = unit
            units[key] = unit
        image = b""
        if missing:
            image = self._compiled([module.together(batch) for batch in self._batches([*missing.values()])])
        _count(len(missing), len(units) - len(missing))
        names = {unit.name: key for key, unit in units.items()}
        others = {name for unit in missing.values() for name in unit.others if name.startswith(_OURS)}
        return Entry(
            {key: unit.symbol for key, unit in missing.items()},
            {key: (unit.symbol, self.places[key]) for key, unit in units.items() if key not in missing},
            {symbol: names[f"@{symbol}"] for symbol in self.symbols},
            sorted(name[1:] for name in others),
            image,
        )

    def _batches(self, missing: Sequence[KernelText]) -> list[list[Any]]:
        if self.check is None:
            return _units().batches(missing, self.asked.threads, machine_code.MOST_BATCHES)
        return _units().parts(missing)

    def _compiled(self, texts: Sequence[str]) -> bytes:
        if self.check is None:
            return machine_code.compile_image(texts, self.target, level=self.level)
        return machine_code.compile_serially(texts, self.target, self.done, self.check)

    def _whole(self) -> Entry:
        """The entry of a module that cannot be cut."""
        text = self.asked.text
        keys = {symbol: _key_for(f"{symbol}\n{text}", self.target, self.level) for symbol in self.symbols}
        others = [name[1:] for name in _units().declared(text) if name.startswith(_OURS)]
        image = self._compiled([text])
        _count(len(keys), 0)
        return Entry({key: symbol for symbol, key in keys.items()}, {}, keys, others, image)

    def _of_module(self, entry: Entry, code: Code) -> Code:
        """Its entry points, as the module calls them."""
        addresses: dict[str, int] = {}
        held = [code]
        for name, key in entry.roots.items():
            if key in entry.members:
                addresses[name] = code.addresses[entry.members[key]]
            else:
                symbol, place = entry.needs[key]
                holder = self._code_of(key, place)
                assert holder is not None, "the entry is loaded"
                addresses[name] = holder.addresses[symbol]
                held.append(holder)
        return Code(addresses, held=held)

    def _code_of(self, key: bytes, hint: bytes | None = None) -> Code | None:
        """Code that has a function, loaded if need be: as ``hint`` says, or whoever has noted it."""
        tried = [place for place in (self.memory.places.get(key), hint) if place is not None]
        for place in tried:
            code = self._having(key, place)
            if code is not None:
                return code
        index = self.memory.index
        if index is None:
            return None
        if not self.is_read:
            self.is_read = True
            index.refresh()
        noted = index.get(key)
        return None if noted is None or noted in tried else self._having(key, noted)

    def _having(self, key: bytes, place: bytes) -> Code | None:
        entry = None if place == self.own else self.memory.entry(place)  # which is made anew
        code = None if entry is None or key not in entry.members else self._load(place)
        if entry is None or code is None or entry.members[key] not in code.addresses:
            return None
        self.memory.note([key], place)
        self.places[key] = place
        return code

    def _load(self, digest: bytes) -> Code | None:
        """The code of an entry; None where that cannot be had."""
        code = self.codes.get(digest) or self.memory.code(digest)
        if code is not None:
            self.codes[digest] = code
            return code
        entry = self.memory.entry(digest)
        if entry is None or digest in self.failed:
            return None
        self.failed.add(digest)
        try:
            code = self._link(digest, entry)
        except CompileError:
            return None
        self.failed.discard(digest)
        return code

    def _link(self, digest: bytes, entry: Entry) -> Code:
        """Load an entry.  Raises CompileError where something that it needs is not to be had."""
        imports: dict[str, int] = {}
        held: dict[Code, None] = {}
        for key, (symbol, place) in entry.needs.items():
            holder = self._code_of(key, place)
            if holder is None:
                raise CompileError("machine code", f"the function {symbol} is gone.")
            held[holder] = None
            imports[symbol] = holder.addresses[symbol]
        if entry.others:
            available = self.asked.imports()
            for name in entry.others:
                if name not in available:
                    raise CompileError("machine code", f"there is no function {name} in this process.")
                imports[name] = available[name]
        code = Code({}, held=[*held])
        if entry.image:
            code = machine_code.load_object(entry.image, *dict.fromkeys(entry.members.values()), imports=imports)
            code.held = [*held]
        self.codes[digest] = code
        self.memory.note_loaded(digest, entry, code)
        return code


def _key_for(key: str, target: Target, level: int) -> bytes:
    """What a unit is found by: its own key, and what besides decides its machine code."""
    return hashlib.sha256(machine_code.object_key(key, target, level=level).encode()).digest()[:KEY]
