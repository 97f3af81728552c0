"""Loop nests become LLVM IR, for every target through one emitter."""
