import hybridflow as hf


@hf.function
def f(n):
    return hf.sum(hf.arange(n) * 2)


f.get_concrete_function(hf.asarray(3))
