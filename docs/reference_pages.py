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
    """The public names of one module, each with its signature and docstring."""
    head = f"{'#' * level} {prefix}\n\n{inspect.getdoc(module) or ''}\n" if level == 1 else f"\n## {prefix}\n"
    return head + "".join(entry(f"{prefix}.{name}", value) for name, value in public(module))


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if callable(value) and not isinstance(value, ModuleType):
            yield name, value


def entry(path: str, value: Any) -> str:
    try:
        signature = re.sub(r"'([^']*)'", r"\1", str(inspect.signature(value)))
    except (TypeError, ValueError):  # classes made in C have none
        signature = ""
    name = path.rsplit(".", 1)[-1]
    return f"\n### {path}\n\n```python\n{name}{signature}\n```\n\n{prose_and_examples(inspect.getdoc(value) or '')}\n"


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
