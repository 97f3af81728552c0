import hybridflow as hf


@hf.function
def f(x):
    return [i * 2 for i in range(x)]


f(hf.asarray(3))
