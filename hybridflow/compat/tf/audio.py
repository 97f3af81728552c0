"""TensorFlow's ``tf.audio``: sounds as WAV files, which Python reads and writes."""

from __future__ import annotations

import io
import wave
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.values import operand
from hybridflow.compat.export import TensorLike, tf_export
from hybridflow.compat.tf.io import decoded
from hybridflow.compiler.ir.dtypes import float32, int32
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core.string_tensor import string
from hybridflow.errors import ArgumentError, OperandError
from hybridflow.strings.host import step


class DecodeWav(NamedTuple):
    """What ``tf.audio.decode_wav`` gives: samples as [samples, channels], and how many there are in a second."""

    audio: object
    sample_rate: object


def sound_of(data: bytes, desired_channels: int = -1, desired_samples: int = -1) -> tuple[np.ndarray, int]:
    """[samples, channels] from -1 to 1 of a file, and the rate.  Raises OperandError for bytes that are no WAV file."""
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, depth, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise OperandError(
            "decode_wav", f"the {len(data)} bytes are no WAV file: {error or 'they end early'}."
        ) from error
    if depth != 2:
        raise OperandError("decode_wav", f"samples have {8 * depth} bits; those of 16 bits are read.")
    sound = np.frombuffer(frames, "<i2").reshape(-1, channels).astype(np.float32) / np.float32(32768)
    if desired_channels > 0:
        sound = np.pad(sound[:, :desired_channels], [(0, 0), (0, max(desired_channels - channels, 0))])
    if desired_samples > 0:
        sound = np.pad(sound[:desired_samples], [(0, max(desired_samples - len(sound), 0)), (0, 0)])
    return sound, rate


@tf_export("audio.decode_wav")
def decode_wav(contents: object, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None) -> Any:
    """``tf.audio.decode_wav``: [samples, channels] from -1 to 1, and the rate; of 16 bits.

    Raises OperandError for bytes that are no such file.
    """
    samples, channels = int(desired_samples), int(desired_channels)
    extents = (samples if samples > 0 else None, channels if channels > 0 else None)
    audio = decoded("decode_wav", contents, lambda data: sound_of(data, channels, samples)[0], float32, extents)
    rate = decoded("decode_wav", contents, lambda data: np.asarray(sound_of(data)[1], np.int32), int32, ())
    return DecodeWav(audio, rate)


@tf_export("audio.encode_wav")
def encode_wav(audio: TensorLike, sample_rate: TensorLike, name: str | None = None) -> Any:
    """``tf.audio.encode_wav``: the bytes of a file of [samples, channels] from -1 to 1, with 16 bits each."""
    x, rate = operand(audio), operand(sample_rate)
    if x.ndim != 2:
        raise ArgumentError("encode_wav", f"the sound is {x.type}. Expected [samples, channels].")

    def write(array: np.ndarray, per_second: np.ndarray) -> bytes:
        samples = array.astype(np.float32) * np.float32(32768.0)
        rounded = np.trunc(samples)
        rounded += np.copysign(np.abs(samples - rounded) >= 0.5, samples)  # halves away from zero
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(array.shape[1])
            file.setsampwidth(2)
            file.setframerate(int(per_second))
            file.writeframes(np.clip(rounded, -32768, 32767).astype("<i2").tobytes())
        return out.getvalue()

    return step(write, [hf.astype(x, float32), rate], [TensorType((), string)])[0]
