import hybridflow as hf

hf.grad(lambda x: x * x)(hf.ones((2,)))
