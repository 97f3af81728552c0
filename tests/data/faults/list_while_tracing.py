import hybridflow as hf


@hf.function
def f(x):
    return x * sum(x.tolist())


f(hf.asarray([3.0, 4.0]))
