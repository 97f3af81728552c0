"""CUDA programs: load them onto a GPU and run them."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Collection, Sequence
from typing import Any

from hybridflow.compiler.program import SET_WORDS, Program
from hybridflow.errors import DeviceMemoryError
from hybridflow.runtime import argument_checks, fork_safe_locks
from hybridflow.runtime.cuda import gpu_memory, ptx
from hybridflow.runtime.cuda.cublaslt import ALIGNMENT
from hybridflow.runtime.cuda.device import Device, device
from hybridflow.runtime.cuda.driver import MOST_MEMORY
from hybridflow.runtime.cuda.launch_plans import LaunchPlan
from hybridflow.runtime.dtypes import NUMPY

_BYTE = NUMPY["u8"]
MOST_PLANS = 32  # kinds of extents for which a program is ready


class CudaExecutable:
    """A program loaded onto one GPU.

    Runs are queued on the current stream of CuPy.  The error of a run-time check that fails is raised when somebody
    waits for the GPU (see ``pending``), or by the run itself where it must know: if it gives state fresh memory.
    """

    def __init__(self, program: Program, number: int) -> None:
        self.program, self.device = program, number
        self.updated, self.in_place = argument_checks.updated(program), argument_checks.in_place(program)
        with gpu_memory.on(number):
            self._device: Device = device(number)
            self._device.tidy()
            self._functions = self._load()
        self._dtypes = [NUMPY[slot.dtype] for slot in program.inputs]
        # By the shapes of the inputs, and by whether libraries can read them.
        self._known: dict[tuple[Any, ...], LaunchPlan] = {}
        self._for_libraries = self._read_by_libraries()
        self._lock = fork_safe_locks.make()

    def _load(self) -> dict[str, int]:
        """The loaded entry points, by name."""
        driver, text = self._device.driver, ptx.assemble(self.program).encode() + b"\0"
        module = driver.made("cuModuleLoadData", ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))
        weakref.finalize(self, self._device.retire, "cuModuleUnload", module).atexit = False
        names = {launch.symbol for launch in self.program.launches} | ({SET_WORDS} if self.program.indirect else set())
        functions = {name: driver.made("cuModuleGetFunction", module, name.encode()) for name in names}
        for launch in self.program.launches:
            if launch.memory:
                driver.call("cuFuncSetAttribute", functions[launch.symbol], MOST_MEMORY, launch.memory)
        return functions

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on CuPy arrays of the device, one per input slot, and return fresh outputs.  State inputs are updated in
        place, if nothing is raised.

        Raises ShapeError or DTypeError where an array is not of its slot's type, and the error of a run-time check that
        fails, for which it waits.
        """
        with gpu_memory.on(self.device):
            plan, inputs = self._ready(arrays)
            for i in self.updated:
                if inputs[i] is not arrays[i]:
                    raise argument_checks.not_updatable(self.program, i)
            inputs = self._without_aliases(inputs)
            targets = [
                inputs[i] if self.program.inputs[i].in_place else self._empty(plan, *plan.updates[k])
                for k, i in enumerate(self.updated)
            ]
            outputs = self._run(plan, inputs, targets, at_once=True)
            for i, target in zip(self.updated, targets):
                if target is not inputs[i]:
                    self._copy_bytes(target, inputs[i])
        return outputs

    def compute(self, arrays: Sequence[Any], in_place: Collection[int] = ()) -> tuple[list[Any], list[Any]]:
        """The outputs, and the new values of the state: fresh arrays, or those of the old ones for inputs ``in_place``,
        whose slots allow it.  Raises as ``run`` does, or later; what is raised leaves the state as it was."""
        with gpu_memory.on(self.device):
            plan, inputs = self._ready(arrays)
            targets = [
                inputs[i] if i in in_place else self._empty(plan, *update)
                for i, update in zip(self.updated, plan.updates, strict=True)
            ]
            at_once = any(i not in in_place for i in self.updated)
            return self._run(plan, inputs, targets, at_once), targets

    @property
    def needs_python(self) -> bool:
        """Whether it calls functions in Python."""
        return self.program.needs_python

    def _run(self, plan: LaunchPlan, inputs: list[Any], targets: list[Any], at_once: bool) -> list[Any]:
        """Queue a run.  With ``try_with_lock``, or where the rest of the run depends on it, its checks are waited
        for."""
        outputs = [self._empty(plan, *output) for output in plan.outputs]
        arena = self._empty(plan, plan.arena, _BYTE) if plan.arena else None
        addresses = [array.data.ptr for array in (*inputs, *outputs, *targets)]
        bases = plan.bases(*addresses, 0 if arena is None else arena.data.ptr)
        if not plan.raises:
            plan.run(bases)
            return outputs
        check = self._device.ledger.begin(self.program)
        try:
            plan.run(bases, check)
        except BaseException:
            self._device.ledger.abandon(check)
            raise
        self._device.ledger.add(check)
        if at_once or plan.waits:
            self._device.ledger.settle(check)
            plan.finish(bases)
        return outputs

    def _ready(self, arrays: Sequence[Any]) -> tuple[LaunchPlan, list[Any]]:
        """The plan for these arrays, and the arrays as kernels may read them: contiguous.  Raises where one is not of
        its slot's type."""
        shapes = tuple([array.shape for array in arrays])
        key = shapes if not self.program.library_calls else (shapes, self._is_aligned(arrays))
        plan = self._known.get(key)
        if plan is None or [array.dtype for array in arrays] != self._dtypes:
            dims = argument_checks.bind_dims(self.program, arrays)
            for i, array in enumerate(arrays):
                argument_checks.check(self.program, i, array, dims)
            plan = self._plan(key, dims, libraries=key is not shapes and key[1])
        return plan, [a if a.flags.c_contiguous else gpu_memory.cupy().ascontiguousarray(a) for a in arrays]

    def _read_by_libraries(self) -> list[int]:
        """The inputs that lie where calls of libraries read something."""
        numbers = set()
        for call in self.program.library_calls:
            for buffer in (call.left.buffer, call.right.buffer):
                if buffer.kind in ("input", "update"):
                    numbers.add(buffer.number if buffer.kind == "input" else self.updated[buffer.number])
        return sorted(numbers)

    def _is_aligned(self, arrays: Sequence[Any]) -> bool:
        """Whether libraries can read the arrays, or the copies of those that are not contiguous."""
        read = (arrays[i] for i in self._for_libraries)
        return all(array.data.ptr % ALIGNMENT == 0 or not array.flags.c_contiguous for array in read)

    def _plan(self, key: tuple[Any, ...], dims: dict[str, int], libraries: bool) -> LaunchPlan:
        with self._lock:
            result = self._known.get(key)
            if result is None:
                while len(self._known) >= MOST_PLANS:
                    del self._known[next(iter(self._known))]
                self._device.tidy()
                result = self._known[key] = LaunchPlan(self.program, self._functions, dims, self._device, libraries)
        return result

    def _empty(self, plan: LaunchPlan, shape: object, dtype: object) -> Any:
        """Fresh memory for a run."""
        try:
            return gpu_memory.empty(shape, dtype)
        except DeviceMemoryError:
            raise self._exhausted(plan) from None

    def _exhausted(self, plan: LaunchPlan) -> DeviceMemoryError:
        """What to say where a run finds no room."""
        sizes = [(plan.arena, "memory for values between kernels")]
        for kind, buffers in (("output", plan.outputs), ("a new value", plan.updates)):
            for shape, dtype in buffers:
                size = math.prod(shape) * dtype.itemsize
                sizes.append((size, f"{kind}, {dtype}[{','.join(map(str, shape))}]"))
        total = sum(size for size, _ in sizes)
        largest = sorted(sizes, key=lambda item: -item[0])[:3]
        text = "; ".join(f"{size:,} bytes: {name}" for size, name in largest)
        return DeviceMemoryError(
            self.program.name,
            f"gpu:{self.device} has no room for the {total:,} bytes that a call takes ({text}). Take smaller batches, "
            "free tensors, or call it on another device; f.memory_plan() shows the plan.",
        )

    def _without_aliases(self, inputs: list[Any]) -> list[Any]:
        """Copies in the place of inputs that overlap one that is written in place."""
        for u in self.updated:
            for i, array in enumerate(inputs):
                if i == u or not _overlap(array, inputs[u]):
                    continue
                if i in self.updated:
                    raise argument_checks.both_updated(self.program, u, i)
                inputs[i] = array.copy()
        return inputs

    def _copy_bytes(self, source: Any, target: Any) -> None:
        driver = self._device.driver
        driver.call("cuMemcpyDtoDAsync_v2", target.data.ptr, source.data.ptr, target.nbytes, gpu_memory.stream())


def _overlap(a: Any, b: Any) -> bool:
    """Whether two contiguous arrays share memory."""
    return a.data.ptr < b.data.ptr + b.nbytes and b.data.ptr < a.data.ptr + a.nbytes


def load(program: Program, number: int) -> CudaExecutable:
    """A CUDA program, loaded onto a GPU.  Raises DeviceError where there is none of that number."""
    gpu_memory.check_device(number)
    return CudaExecutable(program, number)
