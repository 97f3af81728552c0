"""Fused loop nests: elementwise kernels, reductions, concatenation, blocks of rows."""
