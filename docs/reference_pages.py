"""Pages that MkDocs gets from elsewhere: the API reference from public docstrings, and the notebooks."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import hybridflow as hf

WIDTH = 70  # characters of a signature that a line of a page has room for
LEFT_OUT = ("errors", "compat")  # described where they are raised; another library's names


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages.

    Args:
        files: what MkDocs found in ``docs/``.
        config: its configuration, of which the folder of the project is read.

    Returns:
        The same files and the generated ones.
    """
    modules = sorted(name for name in hf.__all__ if isinstance(getattr(hf, name), ModuleType) and name not in LEFT_OUT)
    pages = {f"reference/hf.{name}.md": module_page(f"hf.{name}", getattr(hf, name)) for name in modules}
    pages["reference/api.md"] = overview(modules) + module_page("hf", hf, level=2)
    root = Path(config.config_file_path).parent
    pages |= {f"notebooks/{path.stem}.md": notebook(path) for path in (root / "examples/notebooks").glob("*.ipynb")}
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def overview(modules: list[str]) -> str:
    rows = [f"| [`hf.{name}`](hf.{name}.md) | {first_sentence(getattr(hf, name))} |" for name in modules]
    return "\n".join(["# API\n", "| module | what is in it |", "|---|---|", *rows, ""])


def module_page(prefix: str, module: ModuleType, level: int = 1) -> str:
    """The public names of one module and of those in it, each with its signature and docstring."""
    head = f"{'#' * level} {prefix}\n\n{inspect.getdoc(module) or ''}\n" if level == 1 else f"\n## {prefix}\n"
    inner = [(f"{prefix}.{name}", getattr(module, name)) for name in module.__all__] if level == 1 else []
    return head + "".join(
        [
            *(entry(f"{prefix}.{name}", value) for name, value in public(module)),
            *(module_page(path, value, level=2) for path, value in inner if isinstance(value, ModuleType)),
        ]
    )


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if callable(value) and not isinstance(value, ModuleType):
            yield name, value


def entry(path: str, value: Any) -> str:
    name = path.rsplit(".", 1)[-1]
    text = prose_and_examples(inspect.getdoc(value) or "")
    return f"\n### {path}\n\n```python\n{name}{signature_of(value)}\n```\n\n{text}\n"


def signature_of(value: Any) -> str:
    """As it is called; long ones have a line for each parameter."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # classes made in C have none
        return ""
    parts, before = list[str](), None
    for parameter in signature.parameters.values():
        if before is parameter.POSITIONAL_ONLY is not parameter.kind:
            parts.append("/")
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            parts.append("*")
        before = parameter.kind
        parts.append(parameter_text(parameter))
    if before is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    returned = (
        "" if signature.return_annotation is signature.empty else f" -> {annotation(signature.return_annotation)}"
    )
    text = f"({', '.join(parts)}){returned}"
    return text if len(text) <= WIDTH else "(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def parameter_text(parameter: inspect.Parameter) -> str:
    stars: dict[object, str] = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        text += (
            f" = {parameter.default!r}" if parameter.annotation is not parameter.empty else f"={parameter.default!r}"
        )
    return text


def annotation(value: Any) -> str:
    """Annotations are texts already where a module says ``from __future__ import annotations``."""
    return value if isinstance(value, str) else inspect.formatannotation(value)


def prose_and_examples(text: str) -> str:
    """Docstrings are Markdown, but for their sections, which become lists, and their examples, which are fenced."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        head, _, body = block.partition("\n")
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
        elif head in ("Args:", "Returns:", "Raises:"):
            blocks.append(f"**{head[:-1]}**\n\n{section(inspect.cleandoc(body), named=head != 'Returns:')}")
        else:
            blocks.append(block.replace("``", "`"))
    return "\n\n".join(blocks)


def section(text: str, named: bool) -> str:
    """``name: what it is``, each in a line of its own and those indented below it."""
    items = [" ".join(item.split()).replace("``", "`") for item in re.split(r"\n(?! )", text)]
    if not named:
        return " ".join(items)
    return "\n".join(re.sub(r"^(\S+): ", r"- `\1`: ", item) for item in items)


def first_sentence(value: Any) -> str:
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
    return text.split(". ")[0].rstrip(".") + "."


def notebook(path: Path) -> str:
    """A notebook with the outputs that were saved in it."""
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            text = "".join(output["text"] if "text" in output else output["data"]["text/plain"])
            parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
