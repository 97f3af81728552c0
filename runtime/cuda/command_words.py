"""What a list of steps is made of, for those who write it and for the native code that walks it."""

LIST = ("steps", "count", "template", "words", "places", "addresses", "table")

WORDS = 9  # of a step
LAUNCH, COPY, TO_HOST, ZERO, RECORD, WAIT, GRAPH, PRODUCT, COOPERATIVE = range(9)

# The words of steps, the first being the kind:
# LAUNCH   function, blocks, threads of each, stream, whether it takes a number first, that number, the word from which
#          on it takes words by value, -1 for none, bytes of memory that a block asks for
# TOGETHER the same, of a launch whose blocks wait for each other
# COPY     target: base, bytes; source: base, bytes; how many; stream
# TO_HOST  the same, to memory of the host
# ZERO     base, bytes; how many words of 32 bits; -; -; stream
# RECORD   event: base, bytes; -; -; -; stream
# WAIT     the same
# GRAPH    the graph; -; -; -; -; stream
# PRODUCT  the address of words in memory of the host; -; -; -; -; stream
#
# Those of a product, for a function like cublasLtMatmul: that function, its handle, the description, the places of its
# two scalars, the layouts of both factors and of the result, the algorithm, the bytes of its own memory; then, each as
# base and bytes, where the factors, the result and that memory are
