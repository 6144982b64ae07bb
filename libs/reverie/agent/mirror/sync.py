"""Synchronises files and memories, by comparing both with their last common state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final, Literal, Protocol

from reverie.agent.mirror.folder import MirrorEntry, MirrorFolder
from reverie.agent.mirror.record import (
    MirrorRecord,
    build_path,
    parse_record,
    record_of_memory,
    render_record,
    unify_lines,
)
from reverie.domain.core.errors import InvalidInput, ReverieError

FEW_REMOVALS: Final = 10
"""The files, or half of all, that may be removed at once without `--removals`."""


class MirrorMemories(Protocol):
    """The memories that are mirrored. A refused change raises `ReverieError`."""

    def list_active(self) -> list[dict[str, Any]]:
        """All of them, as `GET /v1/memories` shows them."""
        ...

    def get(self, id: str) -> dict[str, Any] | None:
        """An active one; None if it is gone."""
        ...

    def remember(self, body: Mapping[str, Any]) -> tuple[str, int]:
        """Stores a new one; returns its id and version."""
        ...

    def edit(self, id: str, body: Mapping[str, Any], version: int) -> int:
        """Edits one if it still has that version; returns the new version."""
        ...

    def archive(self, id: str, version: int) -> None:
        """Archives one if it still has that version."""
        ...


@dataclass(frozen=True)
class MirrorStep:
    """One change that was made or planned. A `conflict` waits for a person."""

    action: Literal[
        "written", "removed", "remembered", "edited", "archived", "conflict", "rejected"
    ]
    path: str
    reason: str = ""


@dataclass(frozen=True)
class _File:
    path: str
    text: str
    record: MirrorRecord


@dataclass
class MirrorSync:
    """One pass. `prefer` resolves conflicts; the text of the other side is kept beside the file.

    `removals`: memories of any number of removed files are archived. A `dry_run` changes nothing.
    """

    memories: MirrorMemories
    folder: MirrorFolder
    prefer: Literal["file", "memory"] | None = None
    removals: bool = False
    dry_run: bool = False
    steps: list[MirrorStep] = field(default_factory=list)
    _files: dict[str, _File] = field(default_factory=dict)
    _found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self) -> list[MirrorStep]:
        """Synchronises both sides. Raises `InvalidInput` if it would archive too many memories."""
        with self.folder.open():
            new_files = self._read_files()
            self._found = {str(item["id"]): item for item in self.memories.list_active()}
            self._check_scale()
            new_files = [file for file in new_files if not self._adopt(file)]
            self._announce_writes()
            try:
                for id in sorted({*self.folder.entries, *self._files, *self._found}):
                    self._reconcile(id)
                for file in new_files:
                    self._remember(file)
            finally:
                if not self.dry_run:
                    self.folder.save_state()
        return self.steps

    def _read_files(self) -> list[_File]:
        """Reads all files; returns those that are new memories."""
        new: list[_File] = []
        owners = {entry.path: id for id, entry in self.folder.entries.items()}
        paths = sorted(self.folder.list_files(), key=lambda path: (path not in owners, path))
        for path in paths:
            try:
                text = self.folder.read(path)
                record = parse_record(text or "")
                if record is None and text is not None and path in owners:
                    raise ValueError("it is empty or has no front matter")
            except ValueError as error:
                self._note("rejected", path, f"cannot be read: {error}")
                if path in owners:
                    # The file exists: one that cannot be read now was not removed.
                    self._files[owners[path]] = _File(path, "", MirrorRecord(""))
                continue
            if text is None or record is None:
                continue
            file = _File(path, text, record)
            if record.id is None:
                new.append(file)
            elif record.id in self._files:
                other = self._files[record.id].path
                self._note("conflict", path, f"{other} has its id: remove the line for a new one")
            else:
                self._files[record.id] = file
        return new

    def _check_scale(self) -> None:
        known = {id for id, entry in self.folder.entries.items() if entry.file}
        if self.removals:
            return
        if known and not known & self._found.keys():
            reason = "memory has none of what is mirrored here: is this the right key and gateway?"
            raise InvalidInput("FOLDER", reason)
        removed = len((known & self._found.keys()) - self._files.keys())
        if removed > max(FEW_REMOVALS, len(known) // 2):
            reason = f"{removed} of {len(known)} files are gone: --removals archives their memories"
            raise InvalidInput("FOLDER", reason)

    def _announce_writes(self) -> None:
        """Records what is about to be written, so that a killed pass is no edit by a person."""
        for id, memory in self._found.items():
            entry, file = self.folder.entries.get(id), self._files.get(id)
            record = record_of_memory(memory)
            if entry is None and file is None:
                entry = self.folder.entries[id] = MirrorEntry(build_path(memory))
            elif entry and file and entry.pending == file.record.fingerprint:
                entry.file = entry.memory = entry.pending
            if entry:
                entry.pending = record.fingerprint
        if not self.dry_run:
            self.folder.save_state()

    def _reconcile(self, id: str) -> None:
        file, memory = self._files.get(id), self._found.get(id)
        entry = self.folder.entries.get(id)
        if file and not file.text:
            return
        if file and memory:
            self._compare(id, file, memory, entry or MirrorEntry(file.path))
        elif memory:
            self._restore_or_archive(id, memory, entry or MirrorEntry(build_path(memory)))
        elif file:
            self._settle_deleted(id, file, entry)
        else:
            self.folder.entries.pop(id, None)

    def _compare(self, id: str, file: _File, memory: dict[str, Any], entry: MirrorEntry) -> None:
        record = record_of_memory(memory)
        ours, theirs = file.record.fingerprint, record.fingerprint
        if ours == theirs or (ours, theirs) == (entry.file, entry.memory):
            self._settle(id, file.path, ours, theirs)
        elif ours == entry.file == entry.memory:
            self._pull(id, file, record)
        elif theirs == entry.memory or self.prefer == "file":
            self._push(id, file, memory)
        elif self.prefer == "memory":
            if not self.dry_run:
                self.folder.save_copy(file.path, file.text)
            self._pull(id, file, record)
        elif entry.copied == theirs and entry.copy and self.folder.read(entry.copy) is None:
            # The copy was removed, so a person has settled the conflict in the file.
            self._push(id, file, memory)
        else:
            self._report_conflict(id, file, record, entry)

    def _report_conflict(
        self, id: str, file: _File, record: MirrorRecord, entry: MirrorEntry
    ) -> None:
        theirs = record.fingerprint
        if not self.dry_run and entry.copied != theirs:
            entry.copy = self.folder.save_copy(file.path, render_record(record))
            entry.copied = theirs
        self.folder.entries[id] = replace(entry, path=file.path, pending=None)
        copy = entry.copy or "a copy"
        reason = f"edited here and in memory, which {copy} shows: settle it here, remove that"
        self._note("conflict", file.path, reason)

    def _settle(self, id: str, path: str, file: str, memory: str | None) -> None:
        self.folder.entries[id] = MirrorEntry(path, file, memory)

    def _pull(self, id: str, file: _File, record: MirrorRecord) -> None:
        """Writes the memory to its file, unless the file was edited since it was read."""
        text = render_record(replace(record, extra=file.record.extra))
        if self.dry_run or self.folder.write(file.path, file.text, text):
            self._note("written", file.path)
            self._settle(id, file.path, record.fingerprint, record.fingerprint)

    def _push(self, id: str, file: _File, memory: dict[str, Any]) -> None:
        """Applies the edits of the file to the memory, unless that changed since it was read."""
        record = record_of_memory(memory)
        changes = file.record.changes_since(record)
        if (file.record.scope, file.record.key) != (record.scope, record.key):
            self._note("rejected", file.path, "scope and key do not change: restore them")
        if not changes:
            self._settle(id, file.path, file.record.fingerprint, record.fingerprint)
            return
        body, versions = {**changes, "reason": "edited in the mirror"}, list[int]()
        if not self._attempt(
            file.path,
            lambda: versions.append(self.memories.edit(id, body, memory["version"])),
        ):
            return
        self._note("edited", file.path)
        stored = None if self.dry_run else self.memories.get(id)
        if stored and stored["version"] not in versions:
            # It changed since: the next pass compares again.
            return
        theirs = record_of_memory(stored).fingerprint if stored else file.record.fingerprint
        self._settle(id, file.path, file.record.fingerprint, theirs)

    def _restore_or_archive(self, id: str, memory: dict[str, Any], entry: MirrorEntry) -> None:
        """Writes a file that is new, or whose memory changed since it was removed."""
        record = record_of_memory(memory)
        if entry.memory == record.fingerprint:
            if self._attempt(entry.path, lambda: self.memories.archive(id, memory["version"])):
                self._note("archived", entry.path, "its file was removed")
                self.folder.entries.pop(id, None)
            return
        if self.dry_run or self.folder.write(entry.path, None, render_record(record)):
            reason = "it was removed here, and edited in memory" if entry.memory else ""
            self._note("written", entry.path, reason)
            self._settle(id, entry.path, record.fingerprint, record.fingerprint)
        else:
            # Another file is in its place, which the next pass reads.
            self.folder.entries.pop(id, None)

    def _settle_deleted(self, id: str, file: _File, entry: MirrorEntry | None) -> None:
        """Removes the file of a memory that is gone, unless it was edited."""
        if self.memories.get(id) is not None:
            return
        # The file may contain a text that memory never had, such as a secret.
        if entry and entry.memory == entry.file == file.record.fingerprint:
            if self.dry_run or self.folder.remove(file.path, file.text):
                self._note("removed", file.path, "its memory is gone")
                self.folder.entries.pop(id, None)
        elif self.prefer == "file":
            self._remember(file)
            self.folder.entries.pop(id, None)
        elif self.prefer == "memory":
            if not self.dry_run:
                self.folder.save_copy(file.path, file.text)
                self.folder.remove(file.path, file.text)
            self._note("removed", file.path, "its memory is gone; a copy keeps the text")
            self.folder.entries.pop(id, None)
        else:
            reason = "edited here, and gone from memory: remove the file, or its id for a new one"
            self._note("conflict", file.path, reason)

    def _remember(self, file: _File) -> None:
        """Stores a new file as a memory, and writes its id into the file."""
        record = file.record
        body = {
            "content": record.content,
            "scope": _scope_of(file),
            "kind": record.kind,
            "key": record.key,
            "tags": list(record.tags),
            "pinned": record.pinned,
        }
        body = {name: value for name, value in body.items() if value}
        made: list[tuple[str, int]] = []
        if not self._attempt(file.path, lambda: made.append(self.memories.remember(body))):
            return
        self._note("remembered", file.path)
        for id, version in made:
            stored = self.memories.get(id)
            if stored is not None and id not in self._found:
                self._name_file(file, stored, is_same=stored["version"] == version)

    def _name_file(self, file: _File, memory: dict[str, Any], *, is_same: bool = True) -> None:
        """Writes the id of its memory into a file; they are in step if the fields are equal."""
        kept = record_of_memory(memory)
        complete = replace(file.record, id=kept.id, scope=kept.scope, kind=kept.kind, key=kept.key)
        if self.folder.write(file.path, file.text, render_record(complete)):
            theirs = kept.fingerprint if is_same else None
            self._settle(str(memory["id"]), file.path, complete.fingerprint, theirs)

    def _adopt(self, file: _File) -> bool:
        """Whether a file without an id equals an existing memory."""
        asked = (_scope_of(file), file.record.content)
        for id, memory in self._found.items():
            if (memory["scope"], unify_lines(memory["content"])) != asked:
                continue
            if id in self._files:
                other = self._files[id].path
                self._note("conflict", file.path, f"{other} says the same: remove one of them")
            elif not self.dry_run:
                self._name_file(file, memory)
                self._files[id] = replace(file, text="")
            return True
        return False

    def _attempt(self, path: str, change: Any) -> bool:
        """Makes a change. A refusal is recorded, and the next pass tries again."""
        if self.dry_run:
            return True
        try:
            change()
        except InvalidInput as error:
            self._note("rejected", path, error.reason)
            return False
        except ReverieError as error:
            if error.code == "unavailable":
                raise
            self._note("rejected", path, str(error))
            return False
        return True

    def _note(self, action: Any, path: str, reason: str = "") -> None:
        self.steps.append(MirrorStep(action, path, reason))


def _scope_of(file: _File) -> str | None:
    """The scope that a file names, else that of its folder."""
    folder = PurePosixPath(file.path).parent.as_posix()
    return file.record.scope or (None if folder == "." else folder)
