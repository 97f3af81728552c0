"""Native code over Python's own objects: their layout, a builder of LLVM IR, records, callables."""
