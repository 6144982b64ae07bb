"""Archives that lie about what they hold are refused."""

from __future__ import annotations

import io
import tarfile

import pytest

from tests.support.import_files import (
    send_import,
)
from tests.support.stack import Stack


def _tar(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _entry(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    return info


NAME = "project/shop/memory.md"
TEXT = b"<!-- segment: x -->\nCarts expire after a day.\n"


def _sparse() -> bytes:
    """A header of 512 bytes that says a gigabyte of nothing."""
    header = bytearray(_entry(NAME, tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % 2**30
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


def _pax_sparse() -> bytes:
    info = _entry(NAME)
    info.pax_headers = {"GNU.sparse.size": str(2**30), "GNU.sparse.map": "0,0"}
    return _tar((info, TEXT))


def _lying() -> bytes:
    info = _entry(NAME)
    info.size = 2**30
    return info.tobuf(tarfile.GNU_FORMAT) + TEXT.ljust(512, b"\0") + bytes(1024)


def _negative() -> bytes:
    info = _entry(NAME)
    info.pax_headers = {"size": "-1024"}
    return _tar((info, TEXT))


def _linked() -> bytes:
    info = _entry(NAME, tarfile.SYMTYPE)
    info.linkname = "/etc/passwd"
    return _tar((info, b""))


HOSTILE = {
    "sparse": _sparse(),
    "sparse by an extended header": _pax_sparse(),
    "sizes that lie": _lying(),
    "a negative size": _negative(),
    "a link": _linked(),
    "a device": _tar((_entry(NAME, tarfile.CHRTYPE), b"")),
    "an extended header without end": _tar((_entry("x", tarfile.XHDTYPE), b"1" * 70_000)),
    "no files": _tar((_entry("readme.txt"), b"x")),
    "nothing": b"",
    "no archive": b"x" * 2000,
    "a scope twice": _tar((_entry(NAME), TEXT), (_entry(NAME), TEXT)),
    "a path that is no scope": _tar((_entry("a/b/c/d/e/f/g/memory.md"), TEXT)),
    "no text": _tar((_entry(NAME), b"\xff\xfe")),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_is_refused_and_nothing_of_it_is_stored(
    stack: Stack, name: str
) -> None:
    sound = _tar((_entry("project/a/memory.md"), b"<!-- segment: x -->\nA sound one.\n"))
    mixed = sound[: sound.index(b"A sound one") + 512 - 20 - 12].ljust(1024, b"\0") + HOSTILE[name]
    for data in (HOSTILE[name], mixed):
        if name in {"no files", "nothing"} and data is mixed:
            continue
        status, body = await send_import(stack, data, kind="application/x-tar")
        assert status in {400, 422}, body
        assert body["detail"]
    listed = await stack.get("/v1/memories?scope=project/a")
    assert listed["items"] == []


async def test_a_file_of_the_tree_is_refused_with_its_name_and_line(stack: Stack) -> None:
    text = b"<!-- segment: x -->\nFine.\n\n<!-- segment: y -->\n<!-- kind: sorcery -->\nBad.\n"
    data = _tar((_entry("project/a/memory.md"), TEXT), (_entry("project/b/memory.md"), text))
    status, body = await send_import(stack, data, kind="application/x-tar")
    assert (status, body["field"]) == (422, "project/b/memory.md, line 4: kind")
    assert (await stack.get("/v1/memories"))["items"] == []
