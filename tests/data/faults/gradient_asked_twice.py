import hybridflow as hf

x = hf.asarray([1.0, 2.0])
with hf.GradientTape() as tape:
    tape.watch(x)
    y = x * x
tape.gradient(y, x)
tape.gradient(y, x)
