"""Recurrent layers: one loop, whose steps are one program."""

from __future__ import annotations

import builtins

from keras.src import tree

import hybridflow as hf
from hybridflow.keras_backend.modules.core import convert_to_tensor, scan


def rnn(
    step_function,
    inputs,
    initial_states,
    go_backwards=False,
    mask=None,
    constants=None,
    unroll=False,
    input_length=None,
    time_major=False,
    zero_output_for_mask=False,
    return_all_outputs=True,
):
    inputs = tree.map_structure(convert_to_tensor, inputs)
    initial_states = tree.map_structure(convert_to_tensor, initial_states)
    constants = () if constants is None else tuple(constants)
    if not time_major:
        inputs = tree.map_structure(_swapped, inputs)
    steps = tree.flatten(inputs)[0].shape[0]
    if mask is not None:
        mask = convert_to_tensor(mask, "bool")
        if mask.ndim == 2:
            mask = hf.expand_dims(mask, -1)
        if not time_major:
            mask = _swapped(mask)
    states = initial_states
    nest = tuple(states) if isinstance(states, (list, tuple)) else (states,)

    def step(states, x, kept, before):
        """The next states, and what is put out; ``before`` is what was put out before."""
        output, new_states = step_function(x, tuple(states) + constants)
        new_states = tree.pack_sequence_as(states, tree.flatten(new_states))
        if kept is None:
            return new_states, output
        new_states = tree.map_structure(lambda new, old: hf.where(_wide(kept, new), new, old), new_states, states)
        last = hf.zeros_like(output) if zero_output_for_mask or before is None else before
        return new_states, hf.where(_wide(kept, output), output, last)

    if unroll:
        if not isinstance(steps, int) or not steps:
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        outputs, output, states = [], None, nest
        order = range(steps - 1, -1, -1) if go_backwards else range(steps)
        for i in order:
            kept = None if mask is None else mask[i]
            states, output = step(states, tree.map_structure(lambda x, i=i: x[i], inputs), kept, output)
            outputs.append(output)
        last_output = outputs[-1]
        outputs = hf.stack(outputs if return_all_outputs else outputs[-1:])
    else:
        if go_backwards:
            inputs = tree.map_structure(lambda x: hf.flip(x, axis=0), inputs)
            mask = None if mask is None else hf.flip(mask, axis=0)
        if mask is None:

            def body(states, x):
                return step(states, x, None, None)

            states, outputs = scan(body, nest, inputs)
        else:
            first = tree.map_structure(lambda x: x[0], inputs)
            shape_of = step_function(first, tuple(nest) + constants)[0]
            before = hf.zeros_like(shape_of)

            def masked(both, x):
                states, output = step(both[0], x[0], x[1], both[1])
                return (states, output), output

            (states, _), outputs = scan(masked, (nest, before), (inputs, mask))
        last_output = outputs[-1]
        if not return_all_outputs:
            outputs = outputs[-1:]
    if not time_major:
        outputs = tree.map_structure(_swapped, outputs)
    return last_output, outputs, list(states) if isinstance(initial_states, list) else states


def _swapped(x):
    return hf.permute_dims(x, (1, 0, *range(2, x.ndim)))


def _wide(kept, x):
    """A mask of rows with as many axes as ``x``."""
    while kept.ndim > x.ndim:
        kept = hf.squeeze(kept, -1)
    return hf.reshape(kept, tuple(kept.shape) + (1,) * builtins.max(x.ndim - kept.ndim, 0))


def _refuse(*args, **kwargs):
    raise NotImplementedError  # Keras takes its own loop then


lstm = gru = bidirectional_lstm = bidirectional_gru = _refuse


def cudnn_ok(*args, **kwargs):
    return False
