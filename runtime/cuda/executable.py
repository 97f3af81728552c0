"""CUDA programs: load them onto a GPU and run them."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

from hybridflow.compiler.program import SET_WORDS, Program, Slot
from hybridflow.errors import DeviceMemoryError
from hybridflow.runtime import arguments, locks
from hybridflow.runtime.cuda import gpus, ptx
from hybridflow.runtime.cuda.device import Device, device
from hybridflow.runtime.cuda.plans import BASES, Plan
from hybridflow.runtime.dtypes import NUMPY

MOST_PLANS = 32  # kinds of extents for which a program is ready


class CudaExecutable:
    """A program loaded onto one GPU.

    Runs are queued on the current stream of CuPy.  The error of a run-time check that fails is raised when somebody
    waits for the GPU (see ``pending``), or by the run itself where it must know: if it gives state fresh memory.
    """

    def __init__(self, program: Program, number: int) -> None:
        self.program, self.device = program, number
        self.updated = arguments.updated(program)
        with gpus.on(number):
            self._device: Device = device(number)
            self._functions = self._loaded()
        self._plans: dict[tuple[int, ...], Plan] = {}
        self._lock = locks.make()

    def _loaded(self) -> dict[str, int]:
        """The loaded entry points, by name."""
        driver, text = self._device.driver, ptx.assemble(self.program).encode() + b"\0"
        module = driver.made("cuModuleLoadData", ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))
        weakref.finalize(self, driver.status, "cuModuleUnload", module).atexit = False
        names = {launch.symbol for launch in self.program.launches} | ({SET_WORDS} if self.program.indirect else set())
        return {name: driver.made("cuModuleGetFunction", module, name.encode()) for name in names}

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on CuPy arrays of the device, one per input slot, and return fresh outputs.  State inputs are updated in
        place, if nothing is raised.

        Raises ShapeError or DTypeError where an array is not of its slot's type, and the error of a run-time check that
        fails, for which it waits.
        """
        dims = arguments.bind_dims(self.program, arrays)
        for i in self.updated:
            if not arrays[i].flags.c_contiguous:
                raise arguments.not_updatable(self.program, i)
        with gpus.on(self.device):
            inputs = self._without_aliases([self._checked(i, array, dims) for i, array in enumerate(arrays)])
            targets = [
                inputs[i] if self.program.inputs[i].in_place else gpus.empty(inputs[i].shape, inputs[i].dtype)
                for i in self.updated
            ]
            outputs = self._run(inputs, targets, dims, at_once=True)
            for i, target in zip(self.updated, targets):
                if target is not inputs[i]:
                    self._copy_bytes(target, inputs[i])
        return outputs

    def compute(self, arrays: Sequence[Any], in_place: bool) -> tuple[list[Any], list[Any]]:
        """The outputs, and the new values of the state: fresh arrays, or where ``in_place`` says so, and every slot
        allows it, the arrays of the old ones.  Raises as ``run`` does, or later; what is raised leaves the state as it
        was."""
        dims = arguments.bind_dims(self.program, arrays)
        with gpus.on(self.device):
            inputs = [self._checked(i, array, dims) for i, array in enumerate(arrays)]
            if in_place:
                targets = [inputs[i] for i in self.updated]
            else:
                slots = [self.program.inputs[i] for i in self.updated]
                targets = [self._empty(slot, dims) for slot in slots]
            return self._run(inputs, targets, dims, at_once=bool(targets) and not in_place), targets

    @property
    def may_write_in_place(self) -> bool:
        """Whether every update may go where the old value is."""
        return all(self.program.inputs[i].in_place for i in self.updated)

    def _run(self, inputs: list[Any], targets: list[Any], dims: dict[str, int], at_once: bool) -> list[Any]:
        """Queue a run.  With ``at_once``, or where the rest of the run depends on it, its checks are waited for."""
        plan = self._plan(dims)
        outputs = [self._empty(slot, dims) for slot in self.program.outputs]
        arena = self._memory(plan.arena, dims) if plan.arena else None
        addresses = [array.data.ptr for array in (*inputs, *outputs, *targets)]
        bases = (ctypes.c_int64 * (plan.buffers + BASES))(*addresses, 0 if arena is None else arena.data.ptr)
        check = self._device.ledger.begin(self.program) if plan.raises else None
        try:
            plan.run(bases, check)
        except BaseException:
            if check is not None:
                self._device.ledger.abandon(check)
            raise
        if check is not None:
            self._device.ledger.launched(check)
            if at_once or plan.waits:
                self._device.ledger.settle(check)
                plan.finish(bases)
        return outputs

    def _plan(self, dims: dict[str, int]) -> Plan:
        key = tuple(dims.values())
        found = self._plans.get(key)
        if found is None:
            with self._lock:
                found = self._plans.get(key)
                if found is None:
                    while len(self._plans) >= MOST_PLANS:
                        self._plans.pop(next(iter(self._plans))).retire()
                    found = self._plans[key] = Plan(self.program, self._functions, dims, self._device)
        return found

    def _empty(self, slot: Slot, dims: dict[str, int]) -> Any:
        """Fresh memory of a slot."""
        shape = arguments.extents(slot, dims)
        try:
            return gpus.empty(shape, NUMPY[slot.dtype])
        except DeviceMemoryError:
            raise self._exhausted(dims) from None

    def _memory(self, size: int, dims: dict[str, int]) -> Any:
        try:
            return gpus.empty(size, NUMPY["u8"])
        except DeviceMemoryError:
            raise self._exhausted(dims) from None

    def _exhausted(self, dims: dict[str, int]) -> DeviceMemoryError:
        """What to say where a run finds no room."""
        sizes = [("memory for values between kernels", self._plan(dims).arena)]
        for kind, slots in (
            ("output", self.program.outputs),
            ("new value of", [s for s in self.program.inputs if s.updated]),
        ):
            for k, slot in enumerate(slots):
                shape = arguments.extents(slot, dims)
                size = NUMPY[slot.dtype].itemsize
                for extent in shape:
                    size *= extent
                name = f"{kind} {slot.name or k}"
                sizes.append((f"{name}, {slot.dtype}[{','.join(map(str, shape))}]", size))
        total = sum(size for _, size in sizes)
        largest = sorted(sizes, key=lambda item: -item[1])[:3]
        text = "; ".join(f"{size:,} bytes: {name}" for name, size in largest)
        return DeviceMemoryError(
            self.program.name,
            f"gpu:{self.device} has no room for the {total:,} bytes that a call takes ({text}). Take smaller batches, "
            "free tensors, or call it on another device; f.memory_plan() shows the plan.",
        )

    def _checked(self, i: int, array: Any, dims: dict[str, int]) -> Any:
        """The array as kernels may read it: of the slot's type, and contiguous."""
        arguments.check(self.program, i, array, dims)
        return array if array.flags.c_contiguous else gpus.cupy().ascontiguousarray(array)

    def _without_aliases(self, inputs: list[Any]) -> list[Any]:
        """Copies in the place of inputs that overlap one that is written in place."""
        for u in self.updated:
            for i, array in enumerate(inputs):
                if i == u or not _overlap(array, inputs[u]):
                    continue
                if i in self.updated:
                    raise arguments.both_updated(self.program, u, i)
                inputs[i] = array.copy()
        return inputs

    def _copy_bytes(self, source: Any, target: Any) -> None:
        driver = self._device.driver
        driver.call("cuMemcpyDtoDAsync_v2", target.data.ptr, source.data.ptr, target.nbytes, gpus.stream())


def _overlap(a: Any, b: Any) -> bool:
    """Whether two contiguous arrays share memory."""
    return a.data.ptr < b.data.ptr + b.nbytes and b.data.ptr < a.data.ptr + a.nbytes


def load(program: Program, number: int) -> CudaExecutable:
    """A CUDA program, loaded onto a GPU.  Raises DeviceError where there is none of that number."""
    gpus.check_device(number)
    return CudaExecutable(program, number)
