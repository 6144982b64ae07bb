"""Parses SpecStory Markdown v2 into turns, line by line.

Message headers are numbered from 0 in file order; the number is the turn's external id, with
`.1`, `.2` for further parts of a message. Thinking is dropped. A header inside a code fence or tool
output is content, unless the fence or output never ends.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reverie.agent.transcripts.turns import ParsedTurn, TurnRole

# How many lines may follow a look-alike header before its fence counts as never closed.
MAX_LOOKAHEAD_LINES = 1500
MAX_REREAD_LINES = 30_000
"""Lines of a file that are read again after look-alike headers; from then on each counts as one."""

_HEADER = re.compile(
    r"_\*\*(?P<role>User|Agent)(?P<side> - sidechain)?"
    r"(?: \((?:(?P<model>[^()\s]+) )??(?P<at>[^()]*)\))?\*\*_\s*"
)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_TOOL = re.compile(r"<tool-use(?P<attributes>[^>]*)><details>\s*")
_ATTRIBUTE = re.compile(r'data-tool-(type|name)="([^"]*)"')
_START_THINK = "<think><details>"
_END_TOOL = "</details></tool-use>"
_END_THINK = "</details></think>"
_SUMMARY = re.compile(r"<summary>(?:(?!<summary>)[^\n])*</summary>")
_SESSION = re.compile(r"<!--(?:.*\s)?Session\s++(\S++)\s++\([^()]*+\)\s*+-->")


@dataclass(frozen=True)
class _MessageHeader:
    role: TurnRole
    at: datetime | None
    sidechain: bool


@dataclass
class _MessagePart:
    """A run of lines of one sort: text, think or tool."""

    kind: str
    attributes: str = ""
    lines: list[str] = field(default_factory=list)


@dataclass
class _MessageBlock:
    """The message being read: its parts, and what is open in the last one."""

    header: _MessageHeader
    parts: list[_MessagePart] = field(default_factory=lambda: [_MessagePart("text")])
    fence: str = ""
    depth: int = 0

    @property
    def is_open(self) -> bool:
        return bool(self.fence) or self.parts[-1].kind != "text"

    def add_line(self, line: str) -> None:
        """Adds one line, following what it opens and closes."""
        if self.parts[-1].kind == "text":
            self._add_text_line(line)
        else:
            self._add_inner_line(line)

    def _add_text_line(self, line: str) -> None:
        tool = None if self.fence else _TOOL.match(line)
        if tool:
            self.parts.append(_MessagePart("tool", tool["attributes"], [line[tool.end() :]]))
            self.depth = 1
        elif not self.fence and line.startswith(_START_THINK):
            self.parts.append(_MessagePart("think"))
            self.depth = 1
            self._add_inner_line(line[len(_START_THINK) :])
        else:
            self.parts[-1].lines.append(line)
            self.fence = advance_fence(self.fence, line)

    def _add_inner_line(self, line: str) -> None:
        part = self.parts[-1]
        end = _END_TOOL if part.kind == "tool" else _END_THINK
        if part.kind == "tool" and _TOOL.match(line):
            self.depth += 1
        elif line.startswith(end):
            self.depth -= 1
        if self.depth:
            part.lines.append(line)
        else:
            self.parts.append(_MessagePart("text"))


def parse_markdown(lines: Iterable[str]) -> Iterator[ParsedTurn]:
    """Parses the turns of a transcript, in file order. Never raises, whatever the lines contain.

    Keeps one message at a time in memory; text before the first header is skipped.
    """
    block: _MessageBlock | None = None
    number = -1
    for line in _separate_headers(lines):
        if isinstance(line, _MessageHeader):
            yield from _block_turns(block, number)
            block, number = _MessageBlock(line), number + 1
        elif block is not None:
            block.add_line(line)
    yield from _block_turns(block, number)


def parse_session_id(head: Iterable[str]) -> str:
    """The session that a file's first lines name, or ""."""
    return next((match[1] for line in head if (match := _SESSION.match(line))), "")


def _separate_headers(lines: Iterable[str]) -> Iterator[_MessageHeader | str]:
    """Yields headers as `_MessageHeader`, and other lines as text without their line end.

    A header inside an open fence or tool output is buffered with the lines after it. If the fence
    closes, all of it was content. If not, the header was real, and reading resumes after it.
    """
    source = _PushbackLines(lines)
    state: _MessageBlock | None = None
    buffered: list[str] = []
    reread = 0
    while (line := source.next()) is not None or buffered:
        limit = MAX_LOOKAHEAD_LINES if reread < MAX_REREAD_LINES else 0
        if line is None or len(buffered) > limit:
            first, remaining = buffered[0], buffered[1:] + ([] if line is None else [line])
            buffered = []
            reread += len(remaining)
            source.push(remaining)
            state = _MessageBlock(_parse_header(first) or _MessageHeader("assistant", None, False))
            yield state.header
            continue
        header = _parse_header(line)
        if header and (state is None or not state.is_open):
            state = _MessageBlock(header)
            yield header
            continue
        if state is not None:
            # Here the state matters, not the text.
            state.parts = [_MessagePart(state.parts[-1].kind)]
            state.add_line(line)
        if buffered or (header and state is not None):
            buffered.append(line)
            if state is not None and not state.is_open:
                yield from buffered
                buffered = []
        else:
            yield line


class _PushbackLines:
    """Lines without their ends, some of which can be given back."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._pending: deque[str] = deque()

    def next(self) -> str | None:
        if self._pending:
            return self._pending.popleft()
        line = next(self._lines, None)
        return None if line is None else line.rstrip("\r\n")

    def push(self, lines: list[str]) -> None:
        self._pending.extendleft(reversed(lines))


def advance_fence(fence: str, line: str) -> str:
    """The fence that is open after this line (CommonMark 0.31, 4.5), or an empty string."""
    match = _FENCE.fullmatch(line)
    if not match:
        return fence
    marker, info = match[1], match[2]
    if not fence:
        return "" if marker[0] == "`" and "`" in info else marker
    closes = marker[0] == fence[0] and len(marker) >= len(fence) and not info.strip()
    return "" if closes else fence


def _parse_header(line: str) -> _MessageHeader | None:
    match = _HEADER.fullmatch(line) if line.startswith("_**") else None
    if not match:
        return None
    sidechain = bool(match["side"])
    is_user = match["role"] == "User" and not sidechain
    return _MessageHeader(
        "user" if is_user else "assistant", _parse_time(match["at"] or ""), sidechain
    )


def _parse_time(text: str) -> datetime | None:
    """Parses the time at the end of a header's parentheses; UTC if it names no zone."""
    words = text.split()
    for tail in (words[-1:], words[-2:], words[-3:]):
        try:
            at = datetime.fromisoformat(" ".join(tail).replace(" +", "+"))
        except ValueError:
            continue
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    return None


def _block_turns(block: _MessageBlock | None, number: int) -> Iterator[ParsedTurn]:
    if block is None:
        return
    count = 0
    for part in block.parts:
        turn = _build_turn(block.header, part, f"{number:05d}{f'.{count}' if count else ''}")
        if turn is not None:
            count += 1
            yield turn


def _build_turn(header: _MessageHeader, part: _MessagePart, external_id: str) -> ParsedTurn | None:
    content = _part_content(part)
    if part.kind == "think" or (part.kind == "text" and not content):
        return None
    if part.kind == "text":
        return ParsedTurn(external_id, header.role, content, header.at, sidechain=header.sidechain)
    attributes = dict(_ATTRIBUTE.findall(part.attributes))
    tool = attributes.get("name") or "unknown"
    return ParsedTurn(
        external_id,
        "tool",
        content or tool,
        header.at,
        tool,
        attributes.get("type"),
        header.sidechain,
    )


def _part_content(part: _MessagePart) -> str:
    text = "\n".join(part.lines).strip()
    if part.kind == "tool":
        return _SUMMARY.sub("", text, count=1).strip()
    # Messages are set apart by a rule, which belongs to neither.
    return text.removesuffix("\n---").rstrip() if text != "---" else ""
