"""The folder of a mirror: reads its files, and replaces them so that no other edit is lost."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from reverie.agent.clone_paths import replace_atomically
from reverie.domain.core.errors import InvalidInput

STATE_FILE: Final = ".reverie-mirror.json"
_LOCK_FILE: Final = ".reverie-mirror.lock"
_TAKEN, _NEW = ".reverie-taken", ".reverie-new-"
COPY_MARK: Final = ".conflict"


@dataclass
class MirrorEntry:
    """The last state in which both sides were in step: fingerprints of the file and the memory.

    `pending`: what is being written to the file. `copy`: the conflict copy beside it, of a memory
    with the fingerprint `copied`.
    """

    path: str
    file: str | None = None
    memory: str | None = None
    pending: str | None = None
    copy: str | None = None
    copied: str | None = None


class MirrorFolder:
    """The files below a folder, by their path; hidden ones and conflict copies are left out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: dict[str, MirrorEntry] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Locks the folder, and reads the state. Raises `InvalidInput`."""
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.root / _LOCK_FILE, timeout=0):
                self._load_state()
                self._recover()
                yield
        except Timeout:
            raise InvalidInput("FOLDER", f"another mirror works on {self.root}") from None

    def save_state(self) -> None:
        """Stores the state, a line for each memory."""
        lines = (
            f"{json.dumps(id)}: {json.dumps({k: v for k, v in asdict(entry).items() if v})}"
            for id, entry in sorted(self.entries.items())
        )
        replace_atomically(self.root / STATE_FILE, ("{\n" + ",\n".join(lines) + "\n}\n").encode())

    def _load_state(self) -> None:
        try:
            stored = json.loads((self.root / STATE_FILE).read_text("utf-8"))
            self.entries = {id: MirrorEntry(**fields) for id, fields in stored.items()}
            for entry in self.entries.values():
                self._place(entry.path)
                self._place(entry.copy or entry.path)
        except FileNotFoundError:
            self.entries = {}
        except (ValueError, TypeError, AttributeError):
            reason = f"{self.root / STATE_FILE} is damaged: remove it, and files that differ from "
            raise InvalidInput("FOLDER", f"{reason}memory become conflicts") from None

    def _place(self, path: str) -> Path:
        """The full path of a file. Raises `InvalidInput` for a path that leads out of the folder.

        Whoever shares the folder may have written its state and its links.
        """
        root = self.root.resolve()
        place = root / path
        if not place.is_relative_to(root) or place.parent.resolve() != place.parent:
            raise InvalidInput("FOLDER", f"{path} leads out of {self.root}, or through a link")
        return self.root / path

    def list_files(self) -> Iterator[str]:
        """The paths of the files that may be memories."""
        for path in self._walk():
            name = path.name
            if name.endswith(".md") and name[0] != "." and COPY_MARK not in name:
                yield path.relative_to(self.root).as_posix()

    def _walk(self) -> Iterator[Path]:
        for directory, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name[0] != ".")
            yield from (Path(directory) / name for name in sorted(names))

    def read(self, path: str) -> str | None:
        """The text of a file; None if there is none. Raises ValueError if it is not text."""
        return _read(self.root / path)

    def write(self, path: str, expected: str | None, text: str) -> bool:
        """Writes a file if it still is as expected (None: not there); returns whether it did."""
        full = self._place(path)
        full.parent.mkdir(parents=True, exist_ok=True)
        return _link_new(full, text) if expected is None else self._replace(full, expected, text)

    def remove(self, path: str, expected: str) -> bool:
        """Removes a file if it still is as expected; returns whether it did."""
        full = self.root / path
        if not self._replace(full, expected, None):
            return False
        for folder in full.parents:
            if folder == self.root:
                break
            with suppress(OSError):
                folder.rmdir()
        return True

    def save_copy(self, path: str, text: str) -> str:
        """Keeps a text beside a file, in a copy of its own; returns the path of the copy."""
        full, number = self._place(path), 1
        while True:
            suffix = "" if number == 1 else f"-{number}"
            copy = full.with_name(f"{full.stem}{COPY_MARK}{suffix}.md")
            copy.parent.mkdir(parents=True, exist_ok=True)
            if _link_new(copy, text) or _read(copy) == text:
                return copy.relative_to(self.root).as_posix()
            number += 1

    def _replace(self, full: Path, expected: str, text: str | None) -> bool:
        """Renames the file away, compares it with what was read, and then links the new one there.

        With a plain replacement, what an editor saves in between would be lost.
        """
        taken = full.with_name(f".{full.name}{_TAKEN}")
        try:
            os.rename(full, taken)
        except FileNotFoundError:
            return False
        if _read(taken) != expected:
            self._put_back(taken, full)
            return False
        is_written = text is None or _link_new(full, text)
        # An editor that had it open may have written into it meanwhile.
        found = _read(taken)
        if found is not None and found != expected:
            self.save_copy(full.relative_to(self.root).as_posix(), found)
        taken.unlink()
        return is_written

    def _put_back(self, taken: Path, full: Path) -> None:
        try:
            os.link(taken, full)
        except FileExistsError:
            text = _read(taken) or ""
            if text != _read(full):
                self.save_copy(full.relative_to(self.root).as_posix(), text)
        taken.unlink()

    def _recover(self) -> None:
        """Puts back the files that a killed process had renamed away."""
        for path in list(self._walk()):
            if path.name.startswith(_NEW):
                path.unlink()
            elif path.name.endswith(_TAKEN):
                self._put_back(path, path.with_name(path.name[1 : -len(_TAKEN)]))


def _read(path: Path) -> str | None:
    if path.is_symlink():
        raise ValueError("is a link")
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None


def _link_new(full: Path, text: str) -> bool:
    """Puts a whole file at a place that is free; returns whether it was."""
    fd, temporary = tempfile.mkstemp(dir=full.parent, prefix=_NEW)
    try:
        with open(fd, "wb") as file:
            file.write(text.encode())
        os.chmod(temporary, 0o644)
        os.link(temporary, full)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True
