import hybridflow as hf


@hf.function(strict=True)
def f(x):
    found = []
    if x[0] > 0:
        found.append(x)
    return hf.zeros(len(found))


f.get_concrete_function(hf.asarray([1.0, 2.0]))
