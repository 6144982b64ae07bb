"""Reads the `memory.md` files of an uploaded body: one file, or a tar of them, within limits."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from reverie.domain.core.errors import InvalidInput, MalformedInput

MAX_MARKDOWN_BYTES = 64 * 1024 * 1024
"""Bytes of one `memory.md`, which is read as a whole."""
MAX_MEMBERS = 100_000
"""Entries of an archive."""
MAX_EXTENSION_BYTES = 64 * 1024
"""Bytes of an extended header, which is read as a whole."""
_BLOCK = tarfile.BLOCKSIZE
_EXTENSIONS = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME})
_PLAIN = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE})
_NO_ARCHIVE = "the body is no tar archive, or is damaged"


def read_markdown(file: BinaryIO) -> str:
    """The text of a body that is one file. Raises `InvalidInput` or `MalformedInput`."""
    return _decode(file.read(MAX_MARKDOWN_BYTES + 1), "body")


def iterate_archive(file: BinaryIO) -> Iterator[tuple[str, str]]:
    """Path and text of each `memory.md` of a tar. Other plain files are left out.

    Raises `MalformedInput` if it is no whole tar, and `InvalidInput` for links, sparse files and
    what exceeds a limit.
    """
    _check_headers(file)
    file.seek(0)
    try:
        # Headers may say a size that differs from what was checked, so each read has a limit.
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for number, entry in enumerate(archive):
                if number >= MAX_MEMBERS:
                    raise InvalidInput("archive", f"holds more than {MAX_MEMBERS} entries")
                if entry.size < 0:
                    raise MalformedInput(_NO_ARCHIVE)
                if entry.issparse() or not (entry.isreg() or entry.isdir()):
                    raise InvalidInput(entry.name[:200], _NOT_PLAIN)
                source = archive.extractfile(entry) if entry.isreg() else None
                if source is not None and PurePosixPath(entry.name).name == "memory.md":
                    yield entry.name, _decode(source.read(MAX_MARKDOWN_BYTES + 1), entry.name[:200])
    except (tarfile.TarError, ValueError, OverflowError, EOFError):
        raise MalformedInput(_NO_ARCHIVE) from None


_NOT_PLAIN = "is a link, a device or a sparse file: an archive holds plain files and folders"


def _check_headers(file: BinaryIO) -> None:
    """Reads the header of each entry, before any library trusts the sizes in it."""
    size = file.seek(0, 2)
    position = count = 0
    while True:
        file.seek(position)
        block = file.read(_BLOCK)
        if count and not block.strip(b"\0"):
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            raise MalformedInput(_NO_ARCHIVE) from None
        count += 1
        if count > 2 * MAX_MEMBERS:
            raise InvalidInput("archive", f"holds more than {MAX_MEMBERS} entries")
        name = header.name.encode("utf-8", "replace").decode()[:200]
        if header.type not in _EXTENSIONS | _PLAIN:
            raise InvalidInput(name, _NOT_PLAIN)
        if header.type in _EXTENSIONS and header.size > MAX_EXTENSION_BYTES:
            raise InvalidInput(name, f"has a header of more than {MAX_EXTENSION_BYTES} bytes")
        length = 0 if header.type == tarfile.DIRTYPE else header.size
        position += _BLOCK + -(-length // _BLOCK) * _BLOCK
        if length < 0 or position > size:
            raise MalformedInput(f"the archive is cut: {name} is not whole")


def _decode(data: bytes, field: str) -> str:
    if len(data) > MAX_MARKDOWN_BYTES:
        raise InvalidInput(field, f"holds more than {MAX_MARKDOWN_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MalformedInput(f"{field}: is not UTF-8") from None
    if "\x00" in text:
        raise MalformedInput(f"{field}: holds a NUL character")
    return text
