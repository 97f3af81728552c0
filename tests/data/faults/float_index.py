import hybridflow as hf


@hf.function
def f(x, i):
    return hf.take(x, i)


f(hf.ones((3,)), hf.asarray([1.0]))
