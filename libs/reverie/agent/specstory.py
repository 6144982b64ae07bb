"""SpecStory Markdown v2 into turns, line by line.

A message begins with `_**User (time)**_` or `_**Agent (model time)**_`; such headers are
numbered from 0 in file order, sidechains included, and the number is the turn's external id.
A message of several parts (text, then a tool call) gives `00012`, `00012.1`, ... Thinking is
dropped: it is the model's scratch pad, but its header still takes a number. Text in a
sidechain is the assistant's. A header inside a code fence or a tool's output is content,
unless the fence or output never ends.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from reverie.agent.transcripts import ParsedTurn, Role, Transcript
from reverie.domain.errors import Malformed

# How many lines may follow a look-alike header before its fence counts as never closed.
PATIENCE = 1500

_HEADER = re.compile(
    r"_\*\*(?P<role>User|Agent)(?P<side> - sidechain)?"
    r"(?: \((?:(?P<model>[^()\s]+) )??(?P<at>[^()]*)\))?\*\*_\s*"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TOOL = re.compile(r"<tool-use(?P<attributes>[^>]*)><details>\s*")
_ATTRIBUTE = re.compile(r'data-tool-(type|name)="([^"]*)"')
_THINK = "<think><details>"
_END_TOOL = "</details></tool-use>"
_END_THINK = "</details></think>"
_SUMMARY = re.compile(r"<summary>[^\n]*</summary>")
_SESSION = re.compile(r"<!--\s*(?:.*\s)?Session\s+(\S+)\s+\(([^)]*)\)\s*-->")


@dataclass(frozen=True)
class _Header:
    role: Role
    at: datetime | None
    sidechain: bool


@dataclass
class _Part:
    """A run of lines of one sort: text, think or tool."""

    sort: str
    attributes: str = ""
    lines: list[str] = field(default_factory=list)


@dataclass
class _Block:
    """The message being read: its parts, and what is open in the last one."""

    header: _Header
    parts: list[_Part] = field(default_factory=lambda: [_Part("text")])
    fence: str = ""
    depth: int = 0

    @property
    def open(self) -> bool:
        return bool(self.fence) or self.parts[-1].sort != "text"

    def take(self, line: str) -> None:
        """Adds one line, following what it opens and closes."""
        if self.parts[-1].sort == "text":
            self._take_text(line)
        else:
            self._take_inner(line)

    def _take_text(self, line: str) -> None:
        tool = None if self.fence else _TOOL.match(line)
        if tool:
            self.parts.append(_Part("tool", tool["attributes"], [line[tool.end() :]]))
            self.depth = 1
        elif not self.fence and line.startswith(_THINK):
            self.parts.append(_Part("think"))
            self.depth = 1
            self._take_inner(line[len(_THINK) :])
        else:
            self.parts[-1].lines.append(line)
            self.fence = fence_after(self.fence, line)

    def _take_inner(self, line: str) -> None:
        part = self.parts[-1]
        end = _END_TOOL if part.sort == "tool" else _END_THINK
        if part.sort == "tool" and _TOOL.match(line):
            self.depth += 1
        elif line.startswith(end):
            self.depth -= 1
        if self.depth:
            part.lines.append(line)
        else:
            self.parts.append(_Part("text"))


def parse(lines: Iterable[str]) -> Iterator[ParsedTurn]:
    """The turns of a transcript, in file order. Never raises, whatever the lines hold.

    Holds one message at a time in memory; what stands before the first header is skipped.
    """
    block: _Block | None = None
    number = -1
    for line in _headers_told_apart(lines):
        if isinstance(line, _Header):
            yield from _turns(block, number)
            block, number = _Block(line), number + 1
        elif block is not None:
            block.take(line)
    yield from _turns(block, number)


def read_transcript(path: Path) -> Transcript:
    """The session in a file. Raises `Malformed` where it holds no message."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        lines = iter(file)
        head: list[str] = []
        for line in lines:
            head.append(line)
            if _HEADER.fullmatch(line.rstrip("\r\n")):
                break
        turns = tuple(parse(chain(head, lines)))
    if not turns:
        raise Malformed(f"{path.name} holds no SpecStory message (`_**User ...**_`)")
    session_id, started_at = session_of(head)
    first = next((turn.at for turn in turns if turn.at), None)
    return Transcript(session_id or path.stem, started_at or first, turns)


def session_of(head: list[str]) -> tuple[str, datetime | None]:
    """The session that a file's first lines name, and when it began."""
    for line in head:
        if match := _SESSION.match(line):
            return match[1], _time(match[2])
    return "", None


def _headers_told_apart(lines: Iterable[str]) -> Iterator[_Header | str]:
    """Headers as `_Header`, all else as text without its line end.

    A header inside an open fence or tool output is held with what follows. When the fence
    closes, all of it was content; when it does not, the header was real and reading resumes
    behind it.
    """
    source = _Pushback(lines)
    state: _Block | None = None
    held: list[str] = []
    while (line := source.next()) is not None or held:
        if line is None or len(held) > PATIENCE:
            real, rest = held[0], held[1:] + ([] if line is None else [line])
            held = []
            source.push(rest)
            state = _Block(_header(real) or _Header("assistant", None, False))
            yield state.header
            continue
        header = _header(line)
        if header and (state is None or not state.open):
            state = _Block(header)
            yield header
            continue
        if state is not None:
            _forget(state)
            state.take(line)
        if held or (header and state is not None):
            held.append(line)
            if state is not None and not state.open:
                yield from held
                held = []
        else:
            yield line


def _forget(state: _Block) -> None:
    """Keeps only the last part, empty: here the state matters, not the text."""
    state.parts = [_Part(state.parts[-1].sort)]


class _Pushback:
    """Lines without their ends, some of which can be given back."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._back: deque[str] = deque()

    def next(self) -> str | None:
        if self._back:
            return self._back.popleft()
        line = next(self._lines, None)
        return None if line is None else line.rstrip("\r\n")

    def push(self, lines: list[str]) -> None:
        self._back.extendleft(reversed(lines))


def fence_after(fence: str, line: str) -> str:
    """The fence that is open after this line (CommonMark 0.31, 4.5), or an empty string."""
    match = _FENCE.fullmatch(line)
    if not match:
        return fence
    mark, info = match[1], match[2]
    if not fence:
        return "" if mark[0] == "`" and "`" in info else mark
    closes = mark[0] == fence[0] and len(mark) >= len(fence) and not info.strip()
    return "" if closes else fence


def _header(line: str) -> _Header | None:
    match = _HEADER.fullmatch(line) if line.startswith("_**") else None
    if not match:
        return None
    sidechain = bool(match["side"])
    user = match["role"] == "User" and not sidechain
    return _Header("user" if user else "assistant", _time(match["at"] or ""), sidechain)


def _time(text: str) -> datetime | None:
    """The time at the end of a header's parentheses; UTC where it names no zone."""
    words = text.split()
    for tail in (words[-1:], words[-2:], words[-3:]):
        try:
            at = datetime.fromisoformat(" ".join(tail).replace(" +", "+"))
        except ValueError:
            continue
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    return None


def _turns(block: _Block | None, number: int) -> Iterator[ParsedTurn]:
    if block is None:
        return
    count = 0
    for part in block.parts:
        turn = _turn(block.header, part, f"{number:05d}{f'.{count}' if count else ''}")
        if turn is not None:
            count += 1
            yield turn


def _turn(header: _Header, part: _Part, external_id: str) -> ParsedTurn | None:
    content = _content(part)
    if part.sort == "think" or (part.sort == "text" and not content):
        return None
    if part.sort == "text":
        return ParsedTurn(external_id, header.role, content, header.at, sidechain=header.sidechain)
    facts = dict(_ATTRIBUTE.findall(part.attributes))
    tool = facts.get("name") or "unknown"
    return ParsedTurn(
        external_id, "tool", content or tool, header.at, tool, facts.get("type"), header.sidechain
    )


def _content(part: _Part) -> str:
    text = "\n".join(part.lines).strip()
    if part.sort == "tool":
        return _SUMMARY.sub("", text, count=1).strip()
    # Messages are set apart by a rule, which belongs to neither.
    return text.removesuffix("\n---").rstrip() if text != "---" else ""
