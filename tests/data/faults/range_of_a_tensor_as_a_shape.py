import hybridflow as hf


@hf.function(strict=True)
def f(n):
    return hf.zeros((n,))


f.get_concrete_function(hf.asarray(3))
