import hybridflow as hf


@hf.function
def f(x):
    return hf.zeros((int(x),))


f(hf.asarray(3))
