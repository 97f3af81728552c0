import hybridflow as hf


@hf.function
def f(x):
    return f(x + 1)


f(hf.asarray([1.0, 2.0]))
