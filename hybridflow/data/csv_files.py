"""CSV files: records of fields with a separator between them, by Python's ``csv``."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.core.promotion import to_dtype
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.data import arguments
from hybridflow.data.arguments import matching
from hybridflow.data.dataset import Dataset
from hybridflow.data.files import Read, Reader, compression, of_files, opened
from hybridflow.data.strings import TextSpec
from hybridflow.data.threads import AUTOTUNE
from hybridflow.errors import ArgumentError, DataError, DTypeError
from hybridflow.jit.tensor_spec import TensorSpec

_TYPES = ("int32", "int64", "float32", "float64")  # what columns are tried as


class Column(NamedTuple):
    """What a field is: a dtype or None for texts, and what stands for one that is missing, or None."""

    dtype: np.dtype[Any] | None
    default: object

    def spec(self) -> TextSpec | TensorSpec:
        return TextSpec() if self.dtype is None else TensorSpec((), self.dtype)


class Dialect(NamedTuple):
    """How fields are told apart, whether a file begins with names, and what stands for a field that is missing."""

    delimiter: str
    quotes: bool
    header: bool
    missing: str

    def reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        quoting: Any = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        return csv.reader(lines, delimiter=self.delimiter, quoting=quoting, strict=True)


class CsvDataset(Dataset):
    """Dataset of the records of CSV files: tuples of one tensor a column; texts are ``str``.

    Args:
        filenames: a file, a list of files, or a dataset of them.
        record_defaults: what each column is. A dtype, or ``str``, where every record must have it. A value, or a list
            of one value, stands for a field that is empty or is ``na_value``.
        compression_type: "GZIP", "ZLIB" or "" for none. By default files whose names end in ``.gz`` are compressed.
        buffer_size: accepted for compatibility; it has no effect.
        header: whether the first line of each file is no record.
        field_delim: what stands between fields.
        use_quote_delim: whether double quotes enclose a field.
        na_value: a text that counts as an empty field.
        select_cols: the numbers of the columns that are read, rising, to which ``record_defaults`` belong.
        exclude_cols: the numbers of the columns that are not read.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "some.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write('name,size\\n"a, b",1.5\\nc,\\n')
    ...     for name, size in hf.data.CsvDataset(path, [str, 0.0], header=True):
    ...         print(name, size.item())
    a, b 1.5
    c 0.0
    """

    def __init__(
        self,
        filenames: object,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        columns = [column(default) for default in record_defaults]
        if not columns:
            raise ArgumentError("CsvDataset", "record_defaults names no column.")
        if select_cols is not None and exclude_cols is not None:
            raise ArgumentError("CsvDataset", "select_cols and exclude_cols are given; give one of them.")
        chosen = (
            None if select_cols is None else [arguments.integer("a column", c, "CsvDataset", 0) for c in select_cols]
        )
        if chosen is not None and (len(chosen) != len(columns) or chosen != sorted({*chosen})):
            raise ArgumentError("CsvDataset", f"select_cols is {chosen}: {len(columns)} rising numbers are wanted.")
        left_out = {arguments.integer("a column", c, "CsvDataset", 0) for c in exclude_cols or ()}
        dialect = dialect_of(field_delim, use_quote_delim, header, na_value)
        reader = Rows(columns, dialect, compression(compression_type, "CsvDataset"), chosen, left_out)
        self._made = of_files(filenames, reader, None, "CsvDataset")


def make_csv_dataset(
    file_pattern: object,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Dataset of batches of CSV records, shuffled and repeated: dicts of columns by name.

    What columns are is found in the first records, where ``column_defaults`` does not say it: ints, floats or texts. A
    field that is missing is then 0 or "".

    Args:
        file_pattern: a pattern such as ``data/*.csv``, or a list of them.
        batch_size: how many records a batch has.
        column_names: the names of the columns; None for those of the first line.
        column_defaults: what each column is, as for ``hf.data.CsvDataset``.
        label_name: a column that comes apart: elements are pairs of a dict and that column.
        select_columns: the columns that are read, by name or number.
        field_delim: what stands between fields.
        use_quote_delim: whether double quotes enclose a field.
        na_value: a text that counts as an empty field.
        header: whether the first line of each file has the names.
        num_epochs: how often all records come; None for ever.
        shuffle: whether records are shuffled.
        shuffle_buffer_size: among how many records the next one is drawn.
        shuffle_seed: the seed of the order.
        prefetch_buffer_size: how many batches are made in advance.
        num_parallel_reads: how many files are read at a time.
        sloppy: for programs that pass it; the order is always fixed.
        num_rows_for_inference: how many records are looked at to find what columns are; None for all.
        compression_type: "GZIP", "ZLIB" or "" for none.
        ignore_errors: whether records that do not fit the columns are left out, where they would be errors.

    Returns:
        A dataset.

    Raises:
        ArgumentError: where no file matches, or a column is not there.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "some.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("age,name,label\\n3,ann,1\\n4,bob,0\\n")
    ...     for columns, label in hf.data.make_csv_dataset(path, 2, label_name="label", num_epochs=1, shuffle=False):
    ...         print(columns["age"].tolist(), columns["name"].tolist(), label.tolist())
    [3, 4] ['ann', 'bob'] [1, 0]
    """
    stage = "make_csv_dataset"
    paths = matching(file_pattern, stage)
    dialect = dialect_of(field_delim, use_quote_delim, header, na_value)
    packed = compression(compression_type, stage)
    names = _names(paths, dialect, packed, column_names)
    chosen = _chosen(names, select_columns)
    if column_defaults is None:
        limit = None if num_rows_for_inference is None else arguments.integer("num_rows", num_rows_for_inference, stage)
        columns = _inferred(paths, dialect, packed, chosen, limit, len(names))
    else:
        columns = [column(default) for default in column_defaults]
        if len(columns) == len(names) != len(chosen):
            columns = [columns[number] for number in chosen]
    if len(columns) != len(chosen):
        raise ArgumentError(stage, f"column_defaults has {len(columns)} entries for {len(chosen)} columns.")
    names_read = [names[number] for number in chosen]
    if label_name is not None and label_name not in names_read:
        raise ArgumentError(stage, f"label_name is {label_name!r}, which is none of the columns {names_read}.")
    reader = Rows(columns, dialect, packed, chosen, set(), len(names), bool(ignore_errors))
    data = Dataset._of(of_files(paths, reader, num_parallel_reads, stage))
    if shuffle:
        data = data.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        data = data.repeat(num_epochs)
    data = data.batch(batch_size, drop_remainder=num_epochs is None).map(_Named(names_read, label_name))
    return data.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


class _Named:
    """Makes dicts by name of tuples, with the label beside them where there is one."""

    def __init__(self, names: list[str], label: str | None) -> None:
        self.names, self.label = names, label

    def __call__(self, *fields: object) -> Any:
        held = dict(zip(self.names, fields))
        return held if self.label is None else (held, held.pop(self.label))


def column(default: object) -> Column:
    """What an entry of ``record_defaults`` says.  A str that is the name of a dtype stands for the dtype."""
    if default is str or (isinstance(default, TextSpec) and default.dtype == "str"):
        return Column(None, None)
    if isinstance(default, (type, np.dtype)) or (isinstance(default, str) and _is_dtype(default)):
        return Column(to_dtype(default, "CsvDataset"), None)
    value = default.numpy() if isinstance(default, Tensor) else default
    if isinstance(getattr(value, "dtype", None), np.dtype) and not isinstance(value, (np.ndarray, np.generic)):
        return Column(to_dtype(value, "CsvDataset"), None)  # TensorFlow's dtypes, which have NumPy's as attributes
    flat = np.asarray(value, object if _holds_text(value) else None).ravel()
    if flat.size > 1:
        raise ArgumentError("CsvDataset", f"{default!r:.60} is no default: give one value, or a dtype.")
    first = flat[0] if flat.size else None
    if flat.dtype.hasobject:
        if not isinstance(first, str):
            raise ArgumentError("CsvDataset", f"{default!r:.60} is neither a dtype nor a number nor a text.")
        return Column(None, first)
    dtype = flat.dtype
    if not isinstance(value, (np.ndarray, np.generic)):
        dtype = np.dtype(np.float32 if dtype.kind == "f" else np.int32 if dtype.kind == "i" else dtype)
        if dtype == np.int32 and first is not None and not -(2**31) <= int(first) < 2**31:
            dtype = np.dtype(np.int64)
    return Column(dtype, first)


def _holds_text(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value))


def _is_dtype(name: str) -> bool:
    try:
        to_dtype(name, "CsvDataset")
    except DTypeError:
        return False
    return True


def dialect_of(delimiter: str, quotes: bool, header: bool, missing: str) -> Dialect:
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ArgumentError("CsvDataset", f"field_delim is {delimiter!r}; it must be one letter.")
    return Dialect(delimiter, bool(quotes), bool(header), missing)


class Rows(Reader):
    """The records of a CSV file.  ``count`` is how many fields each has, where that is known; others are errors, or
    left out."""

    def __init__(
        self,
        columns: list[Column],
        dialect: Dialect,
        compressed: str | None,
        chosen: list[int] | None,
        left_out: set[int],
        count: int | None = None,
        leaves_out: bool = False,
    ) -> None:
        self._leaves_out = leaves_out
        self.columns, self.dialect, self.compressed = columns, dialect, compressed
        self.chosen, self.left_out = chosen, left_out
        self.count = count if count is not None or chosen is not None else len(columns) + len(left_out)
        self.spec = tuple([column.spec() for column in columns])

    def elements(self, path: str, start: int) -> Read:
        makers = [_maker(column, self.dialect.missing) for column in self.columns]
        places = self.chosen or [n for n in range(self.count or 0) if n not in self.left_out]
        for fields, begin, stop in fields_of(path, self.dialect, self.compressed, start):
            if len(fields) != self.count and (self.count is not None or len(fields) <= places[-1]):
                if self._leaves_out:
                    continue
                wanted = f"{self.count} are" if self.count is not None else f"number {places[-1]} is"
                raise self._wrong(path, begin, f"{len(fields)} fields where {wanted} wanted")
            try:
                element = tuple([make(fields[number]) for make, number in zip(makers, places)])
            except (ValueError, OverflowError):
                if self._leaves_out:
                    continue
                raise self._wrong(path, begin, self._fault(makers, places, fields)) from None
            yield element, stop

    @staticmethod
    def _fault(makers: list[Any], places: list[int], fields: list[str]) -> str:
        for make, number in zip(makers, places):
            try:
                make(fields[number])
            except (ValueError, OverflowError) as error:
                return f"field {number}: {error}"
        raise AssertionError

    def _wrong(self, path: str, begin: int, text: str) -> DataError:
        return _wrong(path, self.compressed, begin, text)


def _wrong(path: str, compressed: str | None, begin: int, text: str) -> DataError:
    """An error that names the line, which only now is counted."""
    with opened(path, compressed) as file:
        line = file.read(begin).count(b"\n") + 1
    return DataError("CsvDataset", f"{path}, line {line}: {text}.")


def fields_in(lines: Sequence[str], columns: list[Column], dialect: Dialect, chosen: list[int] | None) -> list[Any]:
    """What ``columns`` are made of in lines that were read elsewhere: for each a list with an element of each line.

    ``chosen`` are the numbers of the fields that are wanted.  Raises DataError for lines that do not fit.
    """
    makers = [_maker(column, dialect.missing) for column in columns]
    rows: list[Any] = []
    for line in lines:
        try:
            fields = next(dialect.reader([line]), [""])
        except csv.Error as error:
            raise DataError("decode_csv", f"{line!r:.60}: {error}.") from None
        places = chosen or range(len(fields))
        if len(places) != len(columns) or places[-1] >= len(fields):
            wanted = f"{len(columns)} are" if chosen is None else f"number {places[-1]} is"
            raise DataError("decode_csv", f"{line!r:.60} has {len(fields)} fields where {wanted} wanted.")
        try:
            rows.append([make(fields[number]) for make, number in zip(makers, places)])
        except (ValueError, OverflowError):
            raise DataError("decode_csv", f"{line!r:.60}: {Rows._fault(makers, [*places], fields)}.") from None
    return [list(fields_of_column) for fields_of_column in zip(*rows)]


def fields_of(
    path: str, dialect: Dialect, compressed: str | None, start: int = 0
) -> Iterator[tuple[list[str], int, int]]:
    """The fields of each record from byte ``start`` on, and the bytes at which it begins and ends.

    Raises DataError for what is no text in UTF-8, and for quotes that are not closed.
    """
    with opened(path, compressed) as file:
        file.seek(start)
        stop = begin = start

        def lines() -> Iterator[str]:
            nonlocal stop
            for line in file:
                encoding = "utf-8" if stop else "utf-8-sig"
                stop += len(line)
                yield line.decode(encoding)

        records = dialect.reader(lines())
        skip = dialect.header and not start
        while True:
            try:
                fields = next(records)
            except StopIteration:
                return
            except (csv.Error, UnicodeDecodeError) as error:
                raise _wrong(path, compressed, begin, str(error)) from None
            if fields and not skip:
                yield fields, begin, stop
            begin, skip = stop, skip and not fields


def _maker(kind: Column, missing: str) -> Callable[[str], Any]:
    """A function that makes an element of a field.  It raises ValueError for what is none."""
    dtype, default = kind
    if dtype is None:
        return lambda text: text if text not in ("", missing) else _instead("", default)
    readers: dict[str, Callable[[str], Any]] = {"b": _truth, "f": float, "V": float}
    read = readers.get(dtype.kind, int)
    largest = float(np.finfo(dtype).max) if dtype.kind == "f" else math.inf

    def make(text: str) -> Tensor:
        if text == missing or not text or text.isspace():
            return wrap(np.array(_instead(None, default), dtype))
        try:
            if "_" in text:  # Python's way to write numbers, nobody else's
                raise ValueError
            value = read(text)
            if largest < abs(value) < math.inf:
                raise ValueError
            return wrap(np.array(value, dtype))
        except ValueError:
            raise ValueError(f"{text!r} is no {dtype}") from None

    return make


def _instead(of: object, default: object) -> Any:
    if default is not None:
        return default
    raise ValueError("it is empty, and there is no default")


def _truth(text: str) -> bool:
    result = {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
    if result is None:
        raise ValueError
    return result


# What columns there are


def _names(paths: list[str], dialect: Dialect, compressed: str | None, names_asked: Sequence[str] | None) -> list[str]:
    if names_asked is not None:
        return list(names_asked)
    if not dialect.header:
        raise ArgumentError("make_csv_dataset", "column_names must be given where files do not begin with names.")
    result: list[str] | None = None
    for path in paths:
        names = next((fields for fields, _, _ in fields_of(path, dialect._replace(header=False), compressed)), [])
        if result is not None and names != result:
            raise DataError("make_csv_dataset", f"{path} has other columns than {paths[0]}: {names} and {result}.")
        result = names
    if not result or len({*result}) != len(result):
        raise DataError("make_csv_dataset", f"{paths[0]}: its first line is no list of names: {result}.")
    return result


def _chosen(names: list[str], selected: Sequence[Any] | None) -> list[int]:
    """Numbers of the columns that are wanted, by name or number."""
    if selected is None:
        return [*range(len(names))]
    for one in selected:
        if one not in names if isinstance(one, str) else not 0 <= one < len(names):
            raise ArgumentError("make_csv_dataset", f"select_columns: {one!r} is none of the columns {names}.")
    return sorted({names.index(one) if isinstance(one, str) else int(one) for one in selected})


def _inferred(
    paths: list[str], dialect: Dialect, compressed: str | None, chosen: list[int], limit: int | None, count: int
) -> list[Column]:
    """The narrowest kind that holds the first fields of each column."""
    kinds = [0] * len(chosen)
    seen = 0
    for path in paths:
        for fields, _, _ in fields_of(path, dialect, compressed):
            if seen == limit:
                break
            seen += 1
            if len(fields) != count:
                continue  # reading it says so
            for place, number in enumerate(chosen):
                while kinds[place] < len(_TYPES) and not _fits(fields[number], _TYPES[kinds[place]], dialect.missing):
                    kinds[place] += 1
    return [Column(np.dtype(_TYPES[kind]), 0) if kind < len(_TYPES) else Column(None, "") for kind in kinds]


def _fits(text: str, name: str, missing: str) -> bool:
    """Whether a field is a number of a dtype."""
    try:
        _maker(Column(np.dtype(name), 0), missing)(text)
    except (ValueError, OverflowError):
        return False
    return True
