import hybridflow as hf


@hf.function(strict=True)
def f(x):
    return {"a0": 1.0, "a1": 2.0}[f"a{x}"]


f(hf.asarray(1))
