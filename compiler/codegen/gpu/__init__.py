"""GPU kernels: thread groups, tensor cores, shared memory, launches."""
