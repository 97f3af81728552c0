import hybridflow as hf


@hf.function
def f(x):
    return hf.debugging.check_numerics(hf.log(x), "the loss")


f(hf.asarray([1.0, -2.0]))
