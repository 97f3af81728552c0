import hybridflow as hf


@hf.function(strict=True)
def f(x):
    return hf.zeros((int(x),))


f(hf.asarray(3))
