"""Scopes as files, sent as a tar while they are read."""

from __future__ import annotations

import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from io import BytesIO

from reverie.domain.linked_notes import note_name, render_index, render_note
from reverie.domain.segments import render_file
from reverie.store.notes import ScopeNotes

Files = Iterator[tuple[str, str]]


def markdown(scope: ScopeNotes) -> Files:
    """`<scope>/memory.md`."""
    yield f"{scope.scope}/memory.md", render_file(scope.shown, scope.summary, scope.memories)


def vault(scope: ScopeNotes) -> Files:
    """A note for each memory, and the index of the scope."""
    for memory in scope.memories:
        text = render_note(memory, scope.links.get(memory.id, []))
        yield f"{scope.scope}/{note_name(memory)}.md", text
    index = f"{scope.scope.replace('/', '-')}-index.md"
    yield f"{scope.scope}/{index}", render_index(scope.shown, scope.summary, scope.memories)


async def tar(
    scopes: AsyncIterator[ScopeNotes], files: Callable[[ScopeNotes], Files]
) -> AsyncGenerator[bytes, None]:
    """The files of all scopes as one archive, piece by piece; the same rows give the same bytes."""
    sink = _Sink()
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        async for scope in scopes:
            newest = max(int(one.updated_at.timestamp()) for one in scope.memories)
            for name, text in files(scope):
                _add(archive, name, text.encode(), newest)
                if sink.size:
                    yield sink.drain()
    yield sink.drain()


def _add(archive: tarfile.TarFile, name: str, data: bytes, at: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(data), at, 0o644
    archive.addfile(entry, BytesIO(data))


class _Sink(BytesIO):
    """Where the archive writes; drained as it goes."""

    @property
    def size(self) -> int:
        return self.tell()

    def drain(self) -> bytes:
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data
