"""Python's operators on tensors as slots of the Tensor class, in native code (see ``operators_code``).

They take the place of methods in Python, which answer whatever native code does not know, and which are all there is
where native code cannot run: ``install`` puts the slots over them, ``uninstall`` takes them away.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from hybridflow import flags
from hybridflow.errors import CompileError
from hybridflow.runtime import fork_safe_locks, uninterruptible
from hybridflow.runtime.calls import background_code, entry, front_end
from hybridflow.runtime.calls.op_calls import ElementwiseOp, address_of
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import native_functions, object_layout
from hybridflow.runtime.native.records import ARITHMETIC, COMPARISONS, OPS_OF_SLOTS, SLOTS, Offsets

_NAME_WANT = "_want"  # the object whose address native code holds
_covered: dict[str, Any] = {}  # what the Tensor class itself had under the names of the slots, None for nothing
_lock = fork_safe_locks.make()


def function(op: ElementwiseOp, operands: int, name: str) -> Callable[..., Any] | None:
    """``op`` as a function of 1 or 2 operands, of which at least one is a tensor and the other may be a Python number.

    Its result is NotImplemented for what it does not know: other objects, several dtypes, shapes that have to be
    broadcast (but for single elements), running tapes and traces.  None where there is no native code.
    """
    addresses = _addresses()
    if addresses is None:
        return None
    op._definition = native_functions.method_def(name, addresses["unary" if operands == 1 else "binary"])
    return native_functions.builtin(op._definition, op)


def install(ops: Mapping[str, ElementwiseOp]) -> bool:
    """Make the methods of ``SLOTS`` native on tensors.  ``ops`` are those of ``OPS_OF_SLOTS``: that of ``__add__`` is
    ``ops["add"]``.  Whether they are native; if not, everything is as before."""
    addresses = _addresses()
    if addresses is None:
        return False

    def install() -> bool:
        with _lock:
            return bool(_covered) or _install(ops, addresses)

    return uninterruptible.run_uninterruptible(install)


def _install(ops: Mapping[str, ElementwiseOp], addresses: Mapping[str, int]) -> bool:
    tensor_type = front_end.tensor_type()
    behind = [id(_immortal(getattr(tensor_type, f"__{name}__"))) for name in SLOTS]
    records = [address_of(ops[name]._record) for name in OPS_OF_SLOTS]
    for symbol, values in (("slot_functions", behind), ("slot_operators", records)):
        for k, value in enumerate(values):
            background_code.set_word(addresses, symbol, k, value)
    try:
        wrappers = {
            name: native_functions.slot(tensor_type, object_layout.slot_kind(name), addresses[slot])
            for name, slot in _methods().items()
        }
    except AttributeError:
        return False
    for name, wrapper in wrappers.items():
        _covered[name] = tensor_type.__dict__.get(name)
        setattr(tensor_type, name, wrapper)
    return True


def give(name: str, whole: Callable[..., Any]) -> None:
    """Let an operator, whose slot is native, call ``whole`` in the place of its method where there is a reason not to
    take shortcuts; it does the same."""
    addresses = _addresses()
    assert addresses is not None, "slots are native"
    background_code.set_word(addresses, "slot_wholes", OPS_OF_SLOTS.index(name), id(_immortal(whole)))


def uninstall() -> None:
    """Let the methods in Python be Python's operators again."""
    tensor_type = front_end.tensor_type()
    with _lock:
        for name, before in _covered.items():
            if before is None:
                delattr(tensor_type, name)
            else:
                setattr(tensor_type, name, before)
        _covered.clear()


def _methods() -> dict[str, str]:
    """The slot behind each method.  Slots of two operands are asked by the left and by the right one."""
    of_two = {f"__{side}{name}__": f"slot_{name}" for name in (*ARITHMETIC, "matmul") for side in ("", "r")}
    compared = {f"__{name}__": "slot_compare" for name in COMPARISONS}
    return {**{f"__{name}__": f"slot_{name}" for name in SLOTS}, **of_two, **compared}


def _immortal(value: object) -> Any:
    """``value``, which lives as long as the process from now on."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return value


def is_ready() -> bool:
    """Whether ``install`` and ``function`` do not wait, or are to; else what they need is being compiled."""
    are_entries, is_own = entry.is_ready(), bool(_is_kept()) or _native_code.is_ready()  # both begin
    return bool(_addresses.made) or (are_entries and is_own)


@uninterruptible.once
def _addresses() -> dict[str, int] | None:
    """Addresses by symbol, or None where operators stay in Python."""
    if entry.enable() is None:
        return None
    try:
        return _native_code.get()
    except (CompileError, OSError):
        return None


@uninterruptible.once
def _is_kept() -> bool:
    return background_code.is_kept(_module)


def _module(checked: bool) -> tuple[Offsets, tuple[object, ...], tuple[str, ...]]:
    """What decides the text of the module; and its symbols."""
    symbols = ("unary", "binary", "slot_operators", "slot_functions", "slot_wholes", *sorted({*_methods().values()}))
    places = entry.offsets()
    return places, ("slots", places, *object_layout.SETTINGS, checked), symbols


def _loaded() -> dict[str, int]:
    pool, entries, checked = memory_pool.pool(), entry.native_code.get(), bool(flags.VERIFY.value)
    assert pool is not None  # or there were no entries
    places, settings, symbols = _module(checked)
    imports = {**entry.common_imports(pool), "Name_want": id(_NAME_WANT)}
    imports |= {name: entries[name] for name in entry.SLOT_SYMBOLS}
    return background_code.load(lambda: _slot_code().build(places, checked), settings, symbols, imports)


_native_code = background_code.BackgroundCode(_loaded)


@uninterruptible.loaded
def _slot_code() -> ModuleType:
    from hybridflow.runtime.calls import operators_code  # only where the disk cache has no machine code for it

    return operators_code
