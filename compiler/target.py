"""What the compiler knows of a machine: frozen data, never a device."""

from __future__ import annotations

from dataclasses import replace

from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """``triple``, ``cpu`` and ``features`` go to LLVM as they are; the rest guides schedules.

    Sizes are bytes, ``vector_bits`` is the width of the widest useful SIMD register (0 on a GPU).
    """

    kind: str  # "cpu" or "cuda"
    triple: str
    cpu: str
    features: str
    vector_bits: int
    registers: int
    l1: int = 32 * 1024
    l2: int = 512 * 1024
    l3: int = 8 * 1024 * 1024
    fma: bool = True
    half: bool = True  # native float16 <-> float32 conversion
    masked: bool = False  # cheap masked loads and stores (AVX-512, SVE)
    sm: int = 0  # CUDA compute capability, 90 for sm_90
    block_memory: int = 0  # CUDA: bytes of shared memory that a block may ask for
    library: bool = False  # CUDA: whether cuBLASLt is there, for products that may have other bits than a CPU's

    def lanes(self, bits: int) -> int:
        """Elements of ``bits`` bits that one vector register holds."""
        return max(1, self.vector_bits // bits)

    def has(self, feature: str) -> bool:
        """Whether ``features`` switches on the one that LLVM calls so."""
        return f"+{feature}" in self.features.split(",")

    def with_(self, **changes: object) -> Target:
        return replace(self, **changes)  # type: ignore[arg-type]


X86_64 = "x86_64-unknown-linux-gnu"
SSE2 = Target("cpu", X86_64, "x86-64", "", 128, 16, fma=False, half=False)
AVX2 = Target("cpu", X86_64, "x86-64-v3", "", 256, 16)
AVX512 = Target("cpu", X86_64, "x86-64-v4", "", 512, 32, masked=True)
AARCH64 = Target("cpu", "aarch64-unknown-linux-gnu", "generic", "+neon", 128, 32)
CUDA_SM80 = Target("cuda", "nvptx64-nvidia-cuda", "sm_80", "+ptx75", 0, 255, sm=80, block_memory=99 * 1024)
CUDA_SM90 = Target("cuda", "nvptx64-nvidia-cuda", "sm_90", "+ptx78", 0, 255, sm=90, block_memory=227 * 1024)

NAMED = {
    "sse2": SSE2,
    "avx2": AVX2,
    "avx512": AVX512,
    "aarch64": AARCH64,
    "sm_80": CUDA_SM80,
    "sm_90": CUDA_SM90,
}
