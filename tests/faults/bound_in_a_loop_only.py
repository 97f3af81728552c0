import hybridflow as hf


@hf.function
def f(x):
    while x < 5:
        last = x
        x = x + 1
    return last


f(hf.asarray(1.0))
