import hybridflow as hf


@hf.function
def f(x):
    return x * x.item()


f(hf.asarray(3.0))
