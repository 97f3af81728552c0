"""Libraries for C: the bits of Python, for all extents, targets and threads; what they need; what they refuse."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers
from hybridflow.aot import cpu_level, library as making
from hybridflow.aot.glue_code import NO_PROGRAM, NULL_POINTER, UNALIGNED, WRONG_CPU
from hybridflow.aot.library import archive, undefined_symbols
from hybridflow.cli import commands
from hybridflow.compiler import target as targets
from hybridflow.runtime.machine import host_target
from tests.support.c_programs import COMPILER, called, needs_compiler, same_bits

pytestmark = [pytest.mark.code, pytest.mark.slow]  # libraries are compiled at the last level, for several targets

RNG = np.random.default_rng(26)
LIBC = {"memmove", "memcpy", "memset"}


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def mlp() -> Any:
    return hf.Sequential([hf.Input((20,)), layers.Dense(33, "gelu"), layers.LayerNormalization(), layers.Dense(5)])


def convolutional() -> Any:
    return hf.Sequential(
        [hf.Input((12, 12, 3)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
         layers.Dense(4, "softmax")]
    )  # fmt: skip


def recurrent() -> Any:
    return hf.Sequential([hf.Input((6, 5)), layers.LSTM(9), layers.Dense(3)])


class Attention(hf.Module):
    def __init__(self) -> None:
        self.weights = [hf.Variable(draw(8, 8) * 0.3) for _ in range(3)]

    def __call__(self, x: Any) -> Any:
        q, k, v = (x @ w for w in self.weights)
        return hf.nn.softmax(q @ hf.matrix_transpose(k) / 8**0.5) @ v


MODELS: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "mlp": (mlp, None, (20,)),
    "convolutional": (convolutional, None, (12, 12, 3)),
    "recurrent": (recurrent, None, (6, 5)),
    "attention": (Attention, [hf.TensorSpec(["batch", 7, 8])], (7, 8)),
}


@needs_compiler
@pytest.mark.parametrize("name", MODELS)
def test_models_have_the_bits_that_they_have_in_python(tmp_path: Path, name: str) -> None:
    make, signature, shape = MODELS[name]
    model = make()
    library = hf.aot.compile(model, tmp_path / name, input_signature=signature)
    loaded = hf.saved.load(hf.saved.save(model, tmp_path / "saved", input_signature=signature))
    assert set(library.needs) <= LIBC
    for n in (3, 1, 0, 40):
        x = draw(n, *shape)
        wanted = loaded(x)
        np.testing.assert_array_equal(wanted, model(hf.asarray(x)))
        for workers in (1, 3) if n > 2 else (1,):
            status, found = called(tmp_path, library, f"{name}_run", [n], [x], [wanted], workers=workers)
            assert status == 0 and same_bits(found, [wanted])


class Training(hf.Module):
    def __init__(self) -> None:
        self.model = mlp()
        self.optimizer = hf.optimizers.Adam(0.01)
        self.optimizer.build(self.model.trainable_variables)

    @hf.function(input_signature=[hf.TensorSpec(["batch", 20]), hf.TensorSpec(["batch"], hf.int64)])
    def step(self, x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.losses.SparseCategoricalCrossentropy(from_logits=True)(y, self.model(x))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    @hf.function(input_signature=[hf.TensorSpec(["batch", 20])])
    def predict(self, x: Any) -> Any:
        return self.model(x)


@needs_compiler
def test_a_training_step_has_its_variables_in_a_state(tmp_path: Path) -> None:
    training = Training()
    library = hf.aot.compile(training, tmp_path / "train")
    header = (tmp_path / "train.h").read_text()
    assert "train_state *state, float *result" in header and "const train_state *state, float *result" in header
    assert sorted(library.functions) == ["train_predict", "train_step"] and set(library.needs) <= LIBC
    x, y = draw(16, 20), RNG.integers(0, 5, 16)
    losses = [training.step(x, y).numpy() for _ in range(5)]
    assert losses[-1] < losses[0]
    for times in (1, 5):
        status, found = called(
            tmp_path, library, "train_step", [16], [x, y], [losses[times - 1]], state=True, times=times
        )
        assert status == 0 and same_bits(found, [losses[times - 1]])


@needs_compiler
def test_generators_lists_of_results_and_unaligned_updates(tmp_path: Path) -> None:
    class Drawing(hf.Module):
        def __init__(self) -> None:
            self.noise, self.seen = hf.random.Generator(4), hf.Variable([0.0, 1.0, 2.0])

        @hf.function(input_signature=[hf.TensorSpec([3]), hf.TensorSpec([], hf.int32)])
        def turn(self, x: Any, place: Any) -> Any:
            before = hf.reverse(self.seen, axis=0) if hasattr(hf, "reverse") else hf.flip(self.seen)
            self.seen.assign(before + x)
            return {"noise": self.noise.normal((2,)), "pair": [before, x, 7, hf.take(before, place)]}

    drawing = Drawing()
    library = hf.aot.compile(drawing, tmp_path / "drawing")
    x, place = draw(3), np.int32(2)
    result = [drawing.turn(x, hf.asarray(place)) for _ in range(3)][-1]
    wanted = [result["noise"], result["pair"][0], result["pair"][3]]
    status, found = called(tmp_path, library, "drawing_turn", [], [x, place], wanted, state=True, times=3)
    assert status == 0 and same_bits(found, wanted)


@needs_compiler
def test_weights_in_a_file_and_an_archive(tmp_path: Path) -> None:
    model = mlp()
    library = hf.aot.compile(model, tmp_path / "net", weights="file", formats=["archive", "shared"])
    assert os.path.getsize(library.files["object"]) < os.path.getsize(library.files["archive"]) < 60_000
    x = draw(5, 20)
    wanted = model(hf.asarray(x)).numpy()
    status, found = called(tmp_path, library, "net_run", [5], [x], [wanted])
    assert status == 0 and same_bits(found, [wanted])
    content = bytearray((tmp_path / "net.weights").read_bytes())
    content[3] ^= 1
    (tmp_path / "net.weights").write_bytes(content)
    assert called(tmp_path, library, "net_run", [5], [x], [wanted])[0] == -5
    # An archive is what `ar` reads, and links as the object does.
    assert COMPILER is not None
    done = subprocess.run(
        [COMPILER, "-std=c99", "net_example.c", "-L.", "-lnet", "-Wl,-Bstatic", "-Wl,-Bdynamic", "-o", "example"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_examples_are_c_and_several_libraries_link_in_one_program(tmp_path: Path) -> None:
    hf.aot.compile(mlp(), tmp_path / "first")
    hf.aot.compile({"one": mlp(), "two": recurrent()}, tmp_path / "second", weights="file")
    hf.aot.compile(Training(), tmp_path / "third")
    own = ("main", "aligned", "blocks", "count", "release")
    main = "".join(
        "".join(f"#define {one} {name}_{one}\n" for one in own)
        + f'#include "{name}_example.c"\n'
        + "".join(f"#undef {one}\n" for one in own)
        for name in ("first", "second", "third")
    )
    main += "int main(void) { return first_main() || second_main() || third_main(); }\n"
    (tmp_path / "all.c").write_text(main)
    assert COMPILER is not None
    sanitizer = ["-fsanitize=address"]  # of leaks, too
    for flags in (["-std=c99"], ["-std=c99", *sanitizer], ["-x", "c++"]):
        linked = sanitizer * (sanitizer[0] in flags)
        objects = [f"{name}.o" for name in ("first", "second", "third")]
        compiled = subprocess.run(
            [COMPILER, "-Wall", "-Wextra", "-Werror", *flags, "-c", "all.c", "-o", "all.o"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        if flags[0] == "-x" and "cc1plus" in compiled.stderr:
            continue  # a compiler of C alone
        assert compiled.returncode == 0, compiled.stderr
        done = subprocess.run(
            [COMPILER, "all.o", *objects, *linked, "-o", "all"], cwd=tmp_path, capture_output=True, text=True
        )
        if linked and "asan" in done.stderr:
            continue  # a compiler without it
        assert done.returncode == 0, done.stderr
        out = subprocess.run(["./all"], cwd=tmp_path, capture_output=True, text=True)
        assert out.returncode == 0 and out.stdout.count("run result") == 1 and "two result" in out.stdout


def by_ctypes(library: Any, function: str, *arguments: Any) -> int:
    shared = ctypes.CDLL(library.files["shared"])
    status: int = getattr(shared, function)(*arguments)
    return status


@needs_compiler
def test_bad_calls_are_statuses_with_texts(tmp_path: Path) -> None:
    f = hf.function(lambda x, i: hf.take(x[:10], i, axis=0), input_signature=[
        hf.TensorSpec([None]), hf.TensorSpec([], hf.int64)])  # fmt: skip
    library = hf.aot.compile(f, tmp_path / "bad", formats="shared")
    shared = ctypes.CDLL(library.files["shared"])
    shared.bad_error.restype = ctypes.c_char_p
    shared.bad_run_workspace.restype = ctypes.c_int64
    memory = (ctypes.c_byte * 4096)()
    base = ctypes.addressof(memory) + 64 - ctypes.addressof(memory) % 64
    x, i, y, work = base, base + 1024, base + 2048, base + 3072
    long, pointer = ctypes.c_int64, ctypes.c_void_p

    def run(n: int, *pointers: int | None, host: Any = None) -> int:
        status: int = shared.bad_run(long(n), *map(pointer, pointers), pointer(host))
        return status

    assert run(20, x, i, y, work) == 0 and run(5, x, i, y, work) == 0 and run(1, x, i, y, work) == 0
    ctypes.memmove(i, np.int64(12).tobytes(), 8)
    for n in (20, 5, 1):
        status = run(n, x, i, y, work)
        assert (status > 0 and b"take" in shared.bad_error(status)) or b"index" in shared.bad_error(status)
    ctypes.memmove(i, np.int64(0).tobytes(), 8)
    assert run(20, None, i, y, work) == run(20, x, i, None, work) == NULL_POINTER
    assert run(20, x, i, y + 4, work) == UNALIGNED
    for n in (-1, 1 << 40, -(1 << 63)):
        assert run(n, x, i, y, work) == NO_PROGRAM == shared.bad_run_workspace(long(n), None)
    host = (ctypes.c_uint32 * 8)(7, 1)
    assert run(20, x, i, y, work, host=ctypes.addressof(host)) == -4
    for status in (-1, -2, -3, -4, -5, -6, 0):
        assert (shared.bad_error(status) == b"") == (status == 0)
    assert shared.bad_error(10_000) == shared.bad_error(-10_000) == b"an unknown status"


@needs_compiler
def test_errors_of_the_code_are_statuses_with_texts(tmp_path: Path) -> None:
    def f(x: Any, n: Any) -> Any:
        if n == 3:
            raise LookupError("no three")
        if n == 4:
            x = x + hf.ones((7,))
        return x * 2

    signature = [hf.TensorSpec([4]), hf.TensorSpec([], hf.int32)]
    library = hf.aot.compile(f, tmp_path / "net", formats="shared", input_signature=signature)
    shared = ctypes.CDLL(library.files["shared"])
    shared.net_error.restype = ctypes.c_char_p
    memory = (ctypes.c_byte * 4096)()
    base = ctypes.addressof(memory) + 64 - ctypes.addressof(memory) % 64
    x, n, y, work = (ctypes.c_void_p(base + 1024 * k) for k in range(4))
    for number, text in ((2, b""), (3, b"LookupError: no three"), (4, b"ShapeError: "), (5, b"")):
        ctypes.memmove(n, np.int32(number).tobytes(), 4)
        status = shared.net_run(x, n, y, work, ctypes.c_void_p(None))
        assert shared.net_error(status).startswith(text) and (status > 0) == bool(text)


@needs_compiler
def test_extents_decide_which_program_runs(tmp_path: Path) -> None:
    f = hf.function(
        lambda x, y: (x[:10] * 2 if x.shape[0] > 4 else x - 1, hf.sum(x) + hf.sum(y, axis=0)),
        input_signature=[hf.TensorSpec(["n"]), hf.TensorSpec([None, "n"])],
    )
    library = hf.aot.compile(f, tmp_path / "sizes")
    for n, m in ((12, 3), (10, 1), (4, 2), (5, 0), (1, 1), (2, 5)):
        x, y = draw(n), draw(m, n)
        wanted = [part.numpy() for part in f(x, y)]
        status, found = called(tmp_path, library, "sizes_run", [n, m], [x, y], wanted)
        assert status == 0 and same_bits(found, wanted), (n, m)


@needs_compiler
@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_targets_have_the_same_bits(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code for AArch64 is run as this machine's: the compiler's text for it, with the registers here."""
    here = host_target.detect()
    wanted_target = making.TARGETS[name]
    if not here.triple.startswith("x86_64") or (name == "x86-64-v4" and not here.masked):
        pytest.skip("this machine does not run it")
    if name == "aarch64":
        retargeted = wanted_target.with_(triple=targets.X86_64, cpu=here.cpu, features=here.features)
        monkeypatch.setitem(making.TARGETS, name, retargeted)
    for kind in ("mlp", "recurrent", "attention"):
        make, signature, shape = MODELS[kind]
        model, x = make(), draw(9, *shape)
        library = hf.aot.compile(model, tmp_path / kind, name, signature)
        wanted = model(hf.asarray(x)).numpy()
        status, found = called(tmp_path, library, f"{kind}_run", [9], [x], [wanted])
        assert status == 0 and same_bits(found, [wanted])


@needs_compiler
def test_calls_take_the_best_code_that_the_processor_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = host_target.detect()
    if not here.triple.startswith("x86_64") or not here.fma:
        pytest.skip("this machine runs no code for x86-64-v3")
    model, x, both = mlp(), draw(4, 20), ["x86-64-v4", "x86-64-v3"]
    wanted = model(hf.asarray(x)).numpy()
    real = cpu_level.needed
    for missing, expected in (((), 0), ((cpu_level.V4,), 0), ((cpu_level.V3, cpu_level.V4), WRONG_CPU)):
        # A level that no processor has stands for one that this one lacks.
        monkeypatch.setattr(cpu_level, "needed", lambda t, m=missing: real(t) + 10 * (real(t) in m))
        library = hf.aot.compile(model, tmp_path / "net", both)
        status, found = called(tmp_path, library, "net_run", [4], [x], [wanted])
        assert status == expected and (status or same_bits(found, [wanted]))
    monkeypatch.undo()
    assert "x86-64-v3; x86-64-v4" in Path(library.files["header"]).read_text()
    for names in (["x86-64-v3", "aarch64"], ["x86-64-v3", "x86-64-v3"]):
        with pytest.raises(errors.ArgumentError, match="give one, or several for x86-64"):
            hf.aot.compile(model, tmp_path / "net", names)


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_objects_of_all_targets_need_nothing_and_are_the_same_twice(tmp_path: Path, name: str) -> None:
    contents = []
    model = recurrent()
    for folder in ("a", "b"):
        library = hf.aot.compile(model, tmp_path / folder / "net", name, formats="archive")
        contents.append({one.name: one.read_bytes() for one in sorted((tmp_path / folder).iterdir())})
        assert set(library.needs) <= LIBC
    assert contents[0] == contents[1]
    content = contents[0]["net.o"]
    assert content[18] == {"aarch64": 183}.get(name, 62)
    assert set(undefined_symbols(content)) == set(library.needs)
    if shutil.which("nm") and name != "aarch64":
        told = subprocess.run(["nm", "-u", tmp_path / "a" / "net.o"], capture_output=True, text=True, check=True).stdout
        assert sorted(line.split()[-1] for line in told.splitlines()) == sorted(library.needs)
        archived = subprocess.run(
            ["nm", "-s", tmp_path / "a" / "libnet.a"], capture_output=True, text=True, check=True
        ).stdout
        assert "net_run in net.o" in archived


def test_archives_with_long_names() -> None:
    content = archive("a_name_that_is_long.o", b"odd", ["f"])
    assert content.startswith(b"!<arch>\n/ ") and b"a_name_that_is_long.o/\n" in content and len(content) % 2 == 0


@pytest.mark.parametrize(
    ("make", "options", "text"),
    [
        (mlp, {"target": "x86"}, "there are 'native', 'x86-64-v3'"),
        (mlp, {"target": "x86-64"}, "allow_slow=True"),
        (mlp, {"weights": "none"}, "there are 'embedded', 'file'"),
        (mlp, {"formats": "exe"}, "there are 'object', 'archive', 'shared'"),
        (lambda: hf.function(lambda x: x), {}, "has not been called"),
    ],
)
def test_what_cannot_be_compiled_says_so(tmp_path: Path, make: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.ArgumentError, match=text):
        hf.aot.compile(make(), tmp_path / "net", **options)
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_small_matrices_are_machine_code(tmp_path: Path) -> None:
    f = hf.function(lambda x: (hf.linalg.inv(x), hf.linalg.cholesky(x)), input_signature=[hf.TensorSpec(["n", 3, 3])])
    library = hf.aot.compile(f, tmp_path / "small")
    x = draw(5, 3, 3)
    x = x @ x.transpose(0, 2, 1) + np.eye(3, dtype="f4")
    for given in (x, x[:1], x[:0]):
        wanted = [part.numpy() for part in f(given)]
        status, found = called(tmp_path, library, "small_run", [len(given)], [given], wanted)
        assert status == 0 and same_bits(found, wanted)
    x[3] = 0
    assert called(tmp_path, library, "small_run", [5], [x], [x, x])[0] > 0


def test_what_calls_python_is_refused(tmp_path: Path) -> None:
    for calling in (lambda x: hf.linalg.eigh(x)[0], lambda x: hf.print(x) or x):
        with pytest.raises(errors.HybridflowError, match=r"calls Python|which is no machine code"):
            hf.aot.compile(calling, tmp_path / "net", input_signature=[hf.TensorSpec([90, 90])])


def test_names_that_c_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError, match="is no name in C"):
        hf.aot.compile(mlp(), tmp_path / "my-net")
    f = hf.function(lambda int, e: {"for": int["while"] + e, "x y": e * 2})
    spec = hf.TensorSpec([2])
    concrete = f.get_concrete_function({"while": spec}, spec)
    path = hf.saved.save(f, tmp_path / "f.hf", signatures={"übung": concrete, "b": concrete})
    library = hf.aot.compile(path, tmp_path / "odd")
    header = (tmp_path / "odd.h").read_text()
    assert "odd_b" in library.functions and len(library.functions) == 2
    assert "const float *int_while, const float *e, float *result_for, float *result_x_y" in header


@needs_compiler
def test_models_of_onnx_have_their_names_in_c(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from tests.support import onnx_files

    names = "input.1", "input:1", "float", "count_k", "k", "status", "*/ 1 /*", "\u00e9tat"
    nodes = [onnx.helper.make_node("Sum", list(names), ["main"]), onnx.helper.make_node("Neg", ["k"], ["a/b:0"])]
    model = onnx_files.model_of(nodes, dict.fromkeys(names, (np.float32, ("N", 4))), ["main", "a/b:0"])
    path = onnx_files.saved(model, tmp_path, "odd.onnx")
    assert commands.run(["compile", path, "-o", str(tmp_path)]) == 0
    header = (tmp_path / "odd.h").read_text()
    order = ("input_1", "input_1_2", "float_2", "count_k_2", "k_3", "status_2", "x1", "tat")
    given = ", ".join(f"const float *{name}" for name in order)
    assert f"{given}, float *main_2, float *a_b_0" in header
    assert "input_1_2: f32[input_1_0_2,4] ('input:1')" in header
    assert COMPILER is not None
    command = [COMPILER, "-Wall", "-Wextra", "-Werror", "-std=c99", "odd_example.c", "odd.o", "-o", "odd"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = subprocess.run(["./odd"], cwd=tmp_path, capture_output=True, text=True)
    assert out.returncode == 0 and out.stdout.startswith("run main_2: 0 2 4"), out.stdout


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hf.saved.save(mlp(), tmp_path / "net.hf")
    assert (
        commands.run(["compile", path, "-o", str(tmp_path / "out"), "--target", "x86-64-v3", "--format", "archive"])
        == 0
    )
    assert "net_run" in capsys.readouterr().out
    assert {"net.o", "net.h", "libnet.a", "hybridflow.h", "net_example.c"} <= set(os.listdir(tmp_path / "out"))
    assert commands.run(["compile", path, "-o", str(tmp_path / "out"), "--target", "z80"]) == 2
    assert "invalid choice: 'z80'" in capsys.readouterr().err
    assert commands.run(["compile", str(tmp_path / "no.hf"), "-o", str(tmp_path / "out")]) == 2
