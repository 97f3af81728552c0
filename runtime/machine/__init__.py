"""The machine: its CPU, LLVM's code for it, and the cache of that code on disk."""
