"""Models as pictures: what is connected to what, in the language of Graphviz."""

from __future__ import annotations

import os

from hybridflow.errors import ArgumentError, ArgumentTypeError, entered
from hybridflow.models.model import Model
from hybridflow.models.summary import layers_and_shapes


@entered
def plot_model(
    model: Model,
    to_file: str | os.PathLike[str] = "model.png",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = False,
    rankdir: str = "TB",
    dpi: int = 200,
) -> str:
    """Draw a model into a file, of the kind that its suffix says.

    Each layer is a box with its class. Files ``*.dot`` hold text in the language of Graphviz. Pictures need ``pydot``
    (``pip install 'hybridflow[plot]'``) and Graphviz itself.

    Args:
        model: a model.
        to_file: the path of the file.
        show_shapes: whether boxes have the shapes of results.
        show_dtype: whether boxes have the dtypes of results.
        show_layer_names: whether boxes have the names of layers.
        rankdir: the direction: "TB" for from top to bottom, or "LR".
        dpi: dots per inch of a picture.

    Returns:
        The text in the language of Graphviz.

    Raises:
        ArgumentTypeError: for what is not a model, or no path.
        ImportError: for a picture without ``pydot``.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2, name="first")])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.dot")
    >>> print(hf.plot_model(model, path, show_shapes=True, show_layer_names=True))
    digraph "sequential" {
      graph [rankdir="TB", dpi=200];
      node [shape="box"];
      n0 [label="first (Dense)\\n(None, 2)"];
    }
    """
    if not isinstance(model, Model):
        raise ArgumentTypeError("plot_model", f"model is {model!r:.60}. Expected an hf.Model.")
    if not isinstance(to_file, (str, os.PathLike)):
        raise ArgumentTypeError("plot_model", f"to_file is {to_file!r:.60}. Expected a path.")
    if type(dpi) is not int or dpi < 1:
        raise ArgumentError("plot_model", f"dpi is {dpi!r:.60}. Expected a positive int.")
    if not isinstance(rankdir, str) or rankdir not in ("TB", "LR", "BT", "RL"):
        raise ArgumentError("plot_model", f"rankdir is {rankdir!r}; it must be 'TB', 'LR', 'BT' or 'RL'.")
    text = _text(model, show_shapes, show_dtype, show_layer_names, rankdir, dpi)
    suffix = os.path.splitext(os.fspath(to_file))[1][1:].lower()
    if suffix in ("dot", "gv"):
        with open(to_file, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        _draw(text, to_file, suffix)
    return text


def _text(model: Model, shapes: bool, dtypes: bool, names: bool, rankdir: str, dpi: int) -> str:
    lines = [f"digraph {_quoted(model.name)} {{", f'  graph [rankdir="{rankdir}", dpi={dpi}];', '  node [shape="box"];']
    rows = layers_and_shapes(model)
    for number, (layer, shape) in enumerate(rows):
        kind = type(layer).__name__
        label = f"{getattr(layer, 'name', kind)} ({kind})" if names else kind
        label += f"\n{shape}" if shapes else ""
        label += f"\n{layer.compute_dtype}" if dtypes and hasattr(layer, "compute_dtype") else ""
        lines.append(f"  n{number} [label={_quoted(label)}];")
    lines += [f"  n{before} -> n{after};" for before, after in _edges(model, len(rows))]
    return "\n".join([*lines, "}"])


def _edges(model: Model, count: int) -> list[tuple[int, int]]:
    calls = getattr(model, "_graph", None)
    if calls is not None:
        numbers = {id(call): number for number, call in enumerate(calls)}
        pairs = [(id(symbol.call), number) for number, call in enumerate(calls) for symbol in call.inputs()]
        return list(dict.fromkeys((numbers[before], after) for before, after in pairs if before in numbers))
    return [(n, n + 1) for n in range(count - 1)] if hasattr(model, "_ends") else []  # of others nothing is known


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _draw(text: str, path: str | os.PathLike[str], suffix: str) -> None:
    try:
        import pydot
    except ImportError:
        raise ImportError(
            "hf.plot_model draws pictures through pydot, which is not installed: pip install 'hybridflow[plot]', or "
            "name the file *.dot for the text."
        ) from None
    graphs = pydot.graph_from_dot_data(text)
    assert graphs, "a text of ours has one graph"
    graphs[0].write(os.fspath(path), format=suffix or "png")
