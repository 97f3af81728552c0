"""Object files as far as a library needs it: what they leave undefined, and archives of them."""

from __future__ import annotations

import struct

from hybridflow.errors import CompileError

_SYMTAB = 2  # the type of a section with symbols
_UNDEFINED = 0  # the section of a symbol that others define


def undefined_symbols(content: bytes) -> list[str]:
    """The names that a 64-bit ELF object file leaves to the linker."""
    if content[:6] != b"\x7fELF\x02\x01":
        raise CompileError("aot", "the object file is none of 64-bit ELF.")
    table, size, count = struct.unpack_from("<Q", content, 40)[0], *struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + k * size) for k in range(count)]
    symbols = []
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != _SYMTAB:
            continue
        texts = sections[link][4]
        for at in range(offset + entry, offset + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", content, at)
            if section == _UNDEFINED:
                end = content.index(b"\0", texts + name)
                symbols.append(content[texts + name : end].decode())
    return sorted(filter(None, symbols))


def archive(name: str, content: bytes, symbols: list[str]) -> bytes:
    """A static library (``ar``) of one object file, with the index of symbols that linkers look for.  It says no time
    and no user, so that it is the same each time."""
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    index_size = 4 + 4 * len(symbols) + len(names)
    index_padded = index_size + index_size % 2
    member = f"{name}/"
    long_names = b"" if len(member) <= 16 else f"{name}/\n".encode()
    place = 8 + 60 + index_padded + (60 + len(long_names) + len(long_names) % 2 if long_names else 0)
    index = struct.pack(">I", len(symbols)) + struct.pack(">I", place) * len(symbols) + names
    parts = [b"!<arch>\n", _member("/", index)]
    if long_names:
        parts.append(_member("//", long_names))
    parts.append(_member("/0" if long_names else member, content))
    return b"".join(parts)


def _member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode()
    return head + content + b"\n" * (len(content) % 2)
