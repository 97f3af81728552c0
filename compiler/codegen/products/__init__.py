"""Matrix products and convolutions: packing, cache blocking, micro-kernels."""
