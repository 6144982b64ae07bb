"""Common parts of the transcript readers: the session, the numbered lines of a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from reverie.agent.git.project_detection import detect_project
from reverie.agent.transcripts.batch_limits import MAX_LINE_BYTES
from reverie.agent.transcripts.turns import ParsedTurn, dict_or_empty

MAX_SIBLING_BYTES: Final = 1_000_000
MAX_DOCUMENT_BYTES: Final = 200_000_000
"""A longer file that is one JSON document is not read."""


@dataclass(frozen=True)
class TranscriptSession:
    """A session as recorded in its file. `agent` is `<a>/sub/<s>` for a sub-agent."""

    agent: str
    external_id: str
    project: str
    branch: str | None = None


SessionTurn = tuple[TranscriptSession, ParsedTurn]


class TranscriptLines:
    """The lines of a file as text, numbered from 1; their size in bytes is reported to `advance`.

    `unreadable` receives the numbers of lines that are too long, or that `mark_unreadable` names.
    """

    def __init__(
        self, path: Path, advance: Callable[[int], None], unreadable: Callable[[int], None]
    ) -> None:
        self.path = path
        self.line_number = 0
        self._advance = advance
        self._unreadable = unreadable

    def __iter__(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES):
                self.line_number += 1
                self._advance(len(line))
                if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
                    yield line.decode("utf-8-sig" if self.line_number == 1 else "utf-8", "replace")
                    continue
                self.mark_unreadable()
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                    self._advance(len(line))

    def mark_unreadable(self) -> None:
        """The line that was given last cannot be read."""
        self._unreadable(self.line_number)

    def json_entries(self) -> Iterator[dict[str, Any]]:
        """Yields each line's JSON object.

        An incomplete last line is left out, because it may still be being written.
        """
        for line in self:
            if not line.strip("\0 \r\n\t"):
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
            if isinstance(entry, dict):
                yield entry
            elif line.endswith("\n"):
                self.mark_unreadable()

    def json_document(self) -> Any:
        """The JSON of a file that is one document; None if it is none, or incomplete."""
        size = self.path.stat().st_size
        self._advance(size)
        if size > MAX_DOCUMENT_BYTES:
            return None
        try:
            return json.loads(self.path.read_bytes())
        except (ValueError, RecursionError):
            return None

    def skip(self) -> Path:
        """The file, for a reader that opens it by itself; all of it counts as read."""
        self._advance(self.path.stat().st_size)
        return self.path


def is_plain_file(path: Path) -> bool:
    """Whether the path is a file, and no link to one."""
    return path.is_file() and not path.is_symlink()


def read_sibling(path: Path) -> dict[str, Any]:
    """The JSON object in a file beside a transcript; an empty one if there is none."""
    if not is_plain_file(path):
        return {}
    try:
        with path.open("rb") as file:
            return dict_or_empty(json.loads(file.read(MAX_SIBLING_BYTES)))
    except (OSError, ValueError, RecursionError):
        return {}


def dict_items(value: object) -> list[dict[str, Any]]:
    """The objects of a JSON list; none if the value is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def project_of_folder(folder: str | None) -> str:
    """The project of the folder that a session worked in."""
    return detect_project(folder, None, os.environ).project if folder else "home"


def non_blank_text(value: object) -> str | None:
    """The value if it is text that is not blank, at most 200 characters of it."""
    return value[:200] if isinstance(value, str) and value.strip() else None


def parse_epoch(moment: object) -> datetime | None:
    """A time in seconds or milliseconds since 1970."""
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        return None
    try:
        return datetime.fromtimestamp(moment / 1000 if moment > 1e11 else moment, UTC)
    except (OverflowError, OSError, ValueError):
        return None
