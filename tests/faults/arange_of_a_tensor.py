import hybridflow as hf


@hf.function
def f(n):
    total = 0
    for i in hf.arange(n):
        total = total + i
    return total


f(hf.asarray(3))
