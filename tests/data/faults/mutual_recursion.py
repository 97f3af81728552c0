import hybridflow as hf


@hf.function
def even(n):
    return n == 0 or odd(n - 1)


@hf.function
def odd(n):
    return n != 0 and even(n - 1)


even(hf.asarray(6))
