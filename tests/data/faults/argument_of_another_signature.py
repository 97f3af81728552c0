import hybridflow as hf


@hf.function(input_signature=[hf.TensorSpec((None, 3))])
def f(x):
    return x


f(hf.ones((2, 4)))
