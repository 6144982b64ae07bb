"""Files of Anthropic's memory tool (memory_20250818), kept in Reverie and found by recall.

`client.beta.messages.tool_runner(tools=[ReverieMemoryTool(reverie, scope="project/shop")], …)`
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from posixpath import normpath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, unquote

from anthropic.lib.tools import BetaAsyncAbstractMemoryTool
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from reverie.adapters.common import forget_keys, log
from reverie.client import AsyncReverie
from reverie.client.parameters import RememberFields

COLLECTION = "anthropic-memory"
TOP = "/memories"
MAX_REMEMBERED = 30_000
"""The characters of a file that are remembered; its document holds all of it."""


class ReverieMemoryTool(BetaAsyncAbstractMemoryTool):  # type: ignore[misc]
    """The directory /memories of a scope; without `scope`, of the scope of the key.

    A command runs on the files by Anthropic's own tool, so answers and refusals are its own. Each
    file is a document, and its text a memory under a key of its own: a deleted file is forgotten,
    a renamed one is remembered under its new name. Secrets in a file are replaced, and a NUL
    character is refused. A document that is no file below /memories is left alone. Commands of
    one tool run one after the other; of two programs that write the same file at the same time,
    the last one wins.
    """

    def __init__(
        self, client: AsyncReverie, *, scope: str | None = None, cache_control: Any = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._client, self._scope = client, scope
        self._lock = asyncio.Lock()

    async def _run(self, command: Any) -> str:
        return await self._change("execute", command)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        """Deletes and forgets all files of the scope."""
        return await self._change("clear_all_memory")

    async def _change(self, method: str, *arguments: Any) -> str:
        """Runs a method of Anthropic's tool on the files, and keeps what it changed."""
        async with self._lock:
            files: dict[str, Any] = {}
            for prefix in _list_prefixes(arguments):
                found = self._client.list_documents(
                    COLLECTION, scope=self._scope, prefix=quote(prefix)
                )
                files |= {unquote(document.key): document.value async for document in found}
            with TemporaryDirectory() as folder:
                tool = BetaLocalFilesystemMemoryTool(folder)
                before = await asyncio.to_thread(_write_files, Path(folder), files)
                try:
                    return str(await asyncio.to_thread(getattr(tool, method), *arguments))
                finally:
                    # A refused command may have made a directory, as it does on a disk.
                    after = await asyncio.to_thread(_read_files, Path(folder))
                    await self._store_changes(before, after)

    async def _store_changes(
        self, before: dict[str, str | None], after: dict[str, str | None]
    ) -> None:
        gone = sorted(before.keys() - after.keys())
        changed = {
            key: text for key, text in after.items() if key not in before or before[key] != text
        }
        documents = [{"key": quote(key), "value": text} for key, text in changed.items()]
        # Without a scope, memories would be listed of all scopes: the answers name the key's own.
        scope = ""
        if documents:
            put = await self._client.put_documents(COLLECTION, documents, scope=self._scope)
            scope = put.scope
        if gone:
            keys = [quote(key) for key in gone]
            deleted = await self._client.delete_documents(COLLECTION, keys=keys, scope=self._scope)
            scope = deleted.scope
        forgotten = [key for key in gone if not key.endswith("/")]
        for key, text in changed.items():
            if text and text.strip():
                await self._remember(scope, key, text)
            elif text is not None and key in before:
                forgotten.append(key)
        await forget_keys(self._client, scope, [_memory_key(key) for key in forgotten])

    async def _remember(self, scope: str, path: str, text: str) -> None:
        fields: RememberFields = {"kind": "reference", "key": _memory_key(path), "soft": True}
        fields["scope"] = scope
        await self._client.remember(f"{path}\n\n{text[:MAX_REMEMBERED]}", **fields)


def _list_prefixes(arguments: Sequence[Any]) -> list[str]:
    """What the keys begin with that a command may read or change; all, where it names a folder.

    A file above a path is read, too: nothing can be made below it.
    """
    names = ("path", "old_path", "new_path")
    paths = [getattr(command, name, None) for command in arguments for name in names]
    plain = [path for path in paths if path is not None]
    if not plain or any(normpath(path) != path or path.count("/") < 2 for path in plain):
        return [TOP]
    # `/memories/a/b` may be a file, a folder, or lie below a file `/memories/a`.
    return sorted({"/".join(path.split("/")[:3]) for path in plain})


def _memory_key(path: str) -> str:
    """The key of a file's memory; a path may be longer than a key."""
    key = f"anthropic-memory:{path}"
    return key if len(key) <= 200 else f"anthropic-memory:{sha256(path.encode()).hexdigest()}"


def _write_files(folder: Path, files: dict[str, Any]) -> dict[str, str | None]:
    """Writes files, and answers which. Others may write documents: a key may name any path."""
    top = folder.resolve() / "memories"
    written: dict[str, str | None] = {}
    for key, text in files.items():
        path = (folder / key.lstrip("/")).resolve()
        if top not in path.parents or not isinstance(text, str | None):
            log.warning("the document %r is no file below /memories: left alone", key)
            continue
        written[key] = text
        if text is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
    return written


def _read_files(folder: Path) -> dict[str, str | None]:
    """The text of each file by its path; a directory's path ends with `/`, and it has no text."""
    found: dict[str, str | None] = {}
    for path in sorted((folder / "memories").rglob("*")):
        key = f"/{path.relative_to(folder)}"
        if path.is_dir():
            found[f"{key}/"] = None
        else:
            found[key] = path.read_bytes().decode()
    return found
