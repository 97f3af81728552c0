"""``tf.keras.utils.get_file``: files that programs bring themselves, in a folder of their own."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

from hybridflow.compat.export import tf_export
from hybridflow.errors import ArgumentError, DataError

_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz", ".tar", ".zip")


@tf_export("keras.utils.get_file")
def get_file(
    fname: str | os.PathLike[str] | None = None,
    origin: str | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: object = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
    force_download: bool = False,
) -> str:
    """``tf.keras.utils.get_file``: the path of what ``origin`` names, brought once; with ``extract`` or ``untar`` that
    of the folder with what is in it.

    A file that is there is taken as it is, unless its hash is another.  Raises FileNotFoundError where it cannot be
    brought, and says where to put it; DataError for another hash, and for archives that leave their folder.
    """
    if origin is None:
        raise ArgumentError("get_file", "there is no origin; give the address of the file.")
    name = os.fspath(fname) if fname else re.split(r"[?#]", origin)[0].rstrip("/").rpartition("/")[2]
    if not name:
        raise ArgumentError("get_file", f"{origin!r} names no file; give fname.")
    home = Path(os.path.expanduser(os.path.join("~", ".keras") if cache_dir is None else cache_dir)) / cache_subdir
    kept = Path(name) if os.path.isabs(name) else home / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    folder = _folder_of(kept) if extract or untar else None
    wanted = file_hash or md5_hash
    if force_download or not kept.is_file() or (wanted and not _has_hash(kept, wanted, hash_algorithm)):
        _bring(origin, kept, wanted, hash_algorithm)
        if folder is not None and folder.is_dir():
            shutil.rmtree(folder)
    if folder is None:
        return str(kept)
    if not folder.is_dir():
        _unpack(kept, folder)
    return str(folder)


def _folder_of(packed: Path) -> Path:
    name = packed.name
    ending = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), "")
    return packed.with_name(f"{name.removesuffix(ending)}_extracted" if ending else f"{name}_extracted")


def _has_hash(path: Path, wanted: str, algorithm: str) -> bool:
    kind = algorithm if algorithm != "auto" else "sha256" if len(wanted) == 64 else "md5"
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() == wanted.lower()


def _bring(origin: str, kept: Path, wanted: str | None, algorithm: str) -> None:
    """What ``origin`` names, whole or not at all."""
    number, part = tempfile.mkstemp(dir=kept.parent, prefix=f".{kept.name}.")
    try:
        with os.fdopen(number, "wb") as out, urllib.request.urlopen(origin) as read:
            shutil.copyfileobj(read, out)
        if wanted and not _has_hash(Path(part), wanted, algorithm):
            raise DataError("get_file", f"{origin} has another hash than {wanted}: it is not the file that is meant.")
        os.replace(part, kept)
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise FileNotFoundError(
            f"[get_file] {origin} could not be read ({reason}). Put the file at {kept} by hand; it is taken from there."
        ) from error
    finally:
        if os.path.exists(part):
            os.unlink(part)


def _unpack(packed: Path, folder: Path) -> None:
    """All that is in an archive, or nothing: what would leave the folder is refused."""
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        if zipfile.is_zipfile(packed):
            with zipfile.ZipFile(packed) as archive:
                for name in archive.namelist():
                    if not (part / name).resolve().is_relative_to(part.resolve()):
                        raise DataError("get_file", f"{packed} has {name!r}, which would leave its folder.")
                archive.extractall(part)
        elif tarfile.is_tarfile(packed):
            with tarfile.open(packed) as tar:
                tar.extractall(part, filter="data")
        else:
            raise DataError("get_file", f"{packed} is no zip and no tar file: leave out extract.")
        part.rename(folder)
    except tarfile.FilterError as error:
        raise DataError("get_file", f"{packed}: {error}.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
