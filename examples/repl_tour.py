"""A walk through hybridflow as it would go in a REPL.  Run it, or read the output next to the source.

python examples/repl_tour.py
"""

from __future__ import annotations

import hybridflow as hf


def heading(text: str) -> None:
    print(f"\n--- {text}")


heading("Operations run at once")
x = hf.linspace(-2, 2, 5)
print(repr(x))
print(repr(hf.exp(x) / hf.sum(hf.exp(x))))
print(repr(x > 0))


heading("A tape records them and differentiates")
with hf.GradientTape() as tape:
    tape.watch(x)
    y = hf.sum(hf.sin(x) * x)
print(repr(tape.gradient(y, x)))


heading("A None gradient says why")
a, b = hf.Variable(1.0, name="a"), hf.Variable(2.0, name="b")
with hf.GradientTape() as tape:
    z = a * hf.astype(hf.astype(b, hf.int32), hf.float32)
print(tape.gradient(z, [a, b]))
print(tape.why_none(b))


heading("One line compiles a function; the bits stay the same")


def softplus_distance(p: hf.Tensor, q: hf.Tensor) -> hf.Tensor:
    return hf.mean(hf.log1p(hf.exp(-hf.abs(p - q))) + hf.maximum(p - q, 0))


compiled = hf.function(softplus_distance)
p, q = hf.random.Generator(1).normal((2, 1000))
eager, graph = softplus_distance(p, q), compiled(p, q)
print(eager.item(), graph.item(), eager.item() == graph.item())


heading("What it runs: one kernel, named after its operations and the lines that they come from")
print(compiled.explain(p, q))


heading("The traced program")
print(compiled.ir(p, q))


heading("Why it was traced again")
compiled(p[:10], q[:10])
for retrace in compiled.retraces():
    print(retrace)
print(compiled)


heading("Variables, gradients and updates compile together")
w = hf.Variable(hf.zeros((3,)), name="w")
data = hf.random.Generator(2).normal((64, 3))
wanted = data @ hf.asarray([1.0, -2.0, 3.0])


@hf.function
def step(inputs: hf.Tensor, targets: hf.Tensor) -> hf.Tensor:
    with hf.GradientTape() as tape:
        loss = hf.losses.mean_squared_error(targets, inputs @ w)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


for k in range(61):
    loss = step(data, wanted)
    if k % 20 == 0:
        print(f"step {k:2}: loss {loss.item():.6f}")
print(repr(w))


heading("An error names what does not fit, and your line")
try:
    data @ hf.ones((2, 2))
except hf.errors.ShapeError as error:
    print(error)
