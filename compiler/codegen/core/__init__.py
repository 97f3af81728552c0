"""LLVM text for every target: values, arithmetic, elements, memory accesses."""
