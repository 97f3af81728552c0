import hybridflow as hf


@hf.function(strict=True)
def f(x):
    return hf.zeros((int(x),))


f.get_concrete_function(hf.asarray(3))
