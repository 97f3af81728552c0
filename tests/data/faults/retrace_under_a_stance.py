import hybridflow as hf


@hf.function
def f(x):
    return x + 1


f(hf.ones((2,)))
with hf.stance("fail_on_retrace"):
    f(hf.ones((2,), dtype=hf.int64))
