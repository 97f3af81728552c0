"""Pages about functions and trainings: what is in them, and that nothing in them runs or is fetched."""

from __future__ import annotations

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.cli import commands
from hybridflow.jit import report


class Reader(HTMLParser):
    """The tags that are open at the end, all tags that there were, their attributes, and the text."""

    _empty = ("meta", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self._empty:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> Reader:
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert not reader.open
    assert "script" not in reader.tags
    policy = next(value for name, value in reader.attributes if name == "content" and value and "src" in value)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert not [a for a in reader.attributes if a[0] in ("src", "href", "onclick", "onload")]
    assert not re.search(r"url\(|@import", text)
    assert not re.search(r"<dd>(<code></code>)?</dd>", text)  # a fact without its text
    return reader


@hf.function
def chain(x: Any) -> Any:
    w = hf.ones((30, 30))
    for _ in range(6):
        x = hf.matmul(x, w)  # <the line> & its kernels
    return x


def test_a_function(tmp_path: Path) -> None:
    chain(hf.ones((2, 30)))
    chain.report(tmp_path / "chain.html", hf.ones((40, 30)), runs=2)
    page = read(tmp_path / "chain.html")
    assert [tag for tag in page.tags if tag == "section"]
    assert "x: f32[40,30]" in page.text
    assert re.search(r"×\d", page.text)
    assert "# <the line> & its kernels" in page.text
    assert "argument" in page.text
    assert "LLVM" in page.text
    for title in ("Summary", "Kernels", "Source", "Memory", "Traced again", "Environment"):
        assert title in page.text


def test_kernels_alike_are_one_row() -> None:
    profile = chain.profile(hf.ones((40, 30)), runs=2)
    notes = {row["kernel"]: row for row in chain.explain(hf.ones((40, 30))).kernels}
    rows = report.folded(profile, notes)
    assert sum(one.copies for one in rows) == len(profile.kernels)
    assert len(rows) < len(profile.kernels)
    assert sum(one.microseconds for one in rows) == pytest.approx(sum(row["µs"] for row in profile.kernels))
    assert [one.microseconds for one in rows] == sorted((one.microseconds for one in rows), reverse=True)


def test_a_function_that_computes_nothing(tmp_path: Path) -> None:
    hf.function(lambda x: x).report(tmp_path / "none.html", hf.ones(2), runs=1)
    assert "nothing is computed" in read(tmp_path / "none.html").text


def test_it_runs_the_function(tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="TensorSpec"):
        chain.report(tmp_path / "x.html", hf.TensorSpec((2, 30)))
    assert not (tmp_path / "x.html").exists()
    with pytest.raises(OSError, match="nowhere"):
        chain.report(tmp_path / "nowhere" / "x.html", hf.ones((2, 30)), runs=1)


def test_a_training(tmp_path: Path) -> None:
    history = hf.callbacks.History()
    history.on_train_begin()
    for epoch, loss in enumerate([4.0, 2.0, float("nan"), 1.0]):
        history.on_epoch_end(epoch, {"loss": loss, "val_loss": 2 * loss, "<b>": 3.0})
    history.report(tmp_path / "run.html")
    page = read(tmp_path / "run.html")
    paths = [value for name, value in page.attributes if name == "d"]
    assert len(paths) == 3
    assert [str(path).count("M") for path in paths] == [2, 2, 1]  # a gap where the value was not finite
    assert "<b>" in page.text
    history.on_train_begin()
    history.report(tmp_path / "run.html")
    read(tmp_path / "run.html")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])  # to which the file's folder is added
    source = tmp_path / "f.py"
    source.write_text("import hybridflow as hf\n\n@hf.function\ndef f(x):\n    return hf.exp(x) * 2\n")
    page = tmp_path / "f.html"
    wanted = ["report", f"{source}::f", "--shapes", "4x5", "-o", str(page), "--runs", "2"]
    assert commands.run(wanted) == 0
    assert str(page) in capsys.readouterr().out
    assert "return hf.exp(x) * 2" in read(page).text
    assert commands.run([*wanted[:-1], "0"]) != 0


def test_a_browser_has_nothing_to_complain_of(tmp_path: Path) -> None:
    """Nothing on its console, no request but that of the page, and no page that is wider than the window."""
    driver = pytest.importorskip("playwright.sync_api")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no browser")
    chain.report(tmp_path / "function.html", hf.ones((40, 30)), runs=1)
    history = hf.callbacks.History()
    history.on_train_begin()
    history.on_epoch_end(0, {"loss": 3.0, "a_name_of_many_letters": 1.0})
    history.report(tmp_path / "training.html")
    said: list[str] = []
    asked: list[str] = []
    with driver.sync_playwright() as play:
        window = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name in ("function", "training"):
            page = window.new_page(viewport={"width": 400, "height": 800})
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto((tmp_path / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == 400
        window.close()
    assert said == []
    assert asked == [(tmp_path / f"{name}.html").as_uri() for name in ("function", "training")]
