"""Control flow within kernels, and the entry function that dispatches kernels."""
