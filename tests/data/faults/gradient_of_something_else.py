import hybridflow as hf

with hf.GradientTape() as tape:
    y = hf.ones((2,))
tape.gradient(y, "x")
