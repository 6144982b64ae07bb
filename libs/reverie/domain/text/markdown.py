"""Parsing of agents' Markdown into blocks, sentences and plain text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# A longer line is a dump, not prose.
MAX_LINE = 2_000

BlockType = Literal["heading", "text", "item", "row", "code"]

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s++((?:[^\s#]++|#++(?!$)|\s++(?!#*+$))+)\s*+#*+")
_BOLD_LINE = re.compile(r"\s*(?:\d+[.)]\s+)?\*\*([^*]+?):?\*\*:?\s*$")
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(.*)")
_ROW = re.compile(r"\s*\|(.+)\|\s*$")
_HORIZONTAL_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$|[\s|:+-]+$")
_DRAWING = re.compile(r"[│┌└├─▼▲═║╔╚┐┘┤┬┴┼]|^\s*(?:→|↓)")
# Bounded, as each may begin at every sign of a text.
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\(([^)\[\s]{0,2000})(?:[^\S\n][^)\[\n]{0,500})?\)")
# Two underscores around a word are a name of Python.
_EMPHASIS = re.compile(
    r"(?<![\w*`'\"])(?!__\w+__(?!\w))(\*{1,3}|_{1,3})(?=\S)([^`\n]{0,500}?\S)\1(?![\w*`])"
)
_LEFT_EMPHASIS = re.compile(r"(?<![*'\"])\*\*(?![*'\"])")
_TAG = re.compile(r"</?[a-z][a-z-]*(?:\s[^<>]*)?/?>")
_SYMBOLS = re.compile(
    "[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\u26a1\u231a-\u23ff]+\\s*"
)
_CHECKBOX = re.compile(r"^\[[ xX⚡]?\]\s*")
_LIST_NUMBER = re.compile(r"^\d{1,3}[.)]\s+")
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)\s+(?=[\"'`(\[]?[A-Z0-9\u4e00-\u9fff`])"
    r"|(?<=[。！？])|\n"
)
MAX_COMMANDS, MAX_COMMAND = 6, 120
_SHELL_FENCE = re.compile(
    r"^[ \t]*```[ \t]*+(bash|sh|shell|console|zsh)?[ \t]*+\n([^`]{1,800}?)\n[ \t]*```[ \t]*$",
    re.M | re.I,
)
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.S)
_ENV_ASSIGNMENT = re.compile(r"(?:export )?([A-Z][A-Z0-9]*_[A-Z0-9_]+)=")


@dataclass(frozen=True)
class MarkdownBlock:
    """A paragraph, list item, heading, table row or fenced code, without its marker."""

    type: BlockType
    text: str
    depth: int = 0


def parse_blocks(text: str, include_code: bool = False) -> list[MarkdownBlock]:
    """Parses the blocks in order; code, quotes, drawings and rules are left out.

    With `include_code`, a fence with its language is a block of code, and a few shell commands or
    names of settings in a fence are an item.
    """
    parsed: list[MarkdownBlock] = []
    after_gap = True
    if include_code and "```" in text:
        text = _SHELL_FENCE.sub(_render_command_fence, text)
    for line in _iter_prose_lines(text):
        if isinstance(line, MarkdownBlock):
            parsed += [line] if include_code else []
            after_gap = True
            continue
        if not line.strip() or _HORIZONTAL_RULE.fullmatch(line):
            after_gap = True
            continue
        block = _parse_block(line)
        if (
            not after_gap
            and parsed
            and block.type == "text"
            and parsed[-1].type in {"text", "item"}
        ):
            last = parsed[-1]
            parsed[-1] = MarkdownBlock(last.type, f"{last.text} {line.strip()}", last.depth)
        else:
            parsed.append(block)
        after_gap = block.type == "heading"
    return parsed


def to_plain_text(text: str) -> str:
    """One line without emphasis, link targets, tags and images; code stays in backticks."""
    pieces = re.split(r"(`[^`\n]*`)", _LINK.sub(r"\1", text))
    for index, piece in enumerate(pieces):
        if not piece.startswith("`"):
            plain = _SYMBOLS.sub("", _TAG.sub(" ", piece))
            plain = _LEFT_EMPHASIS.sub("", _EMPHASIS.sub(r"\2", plain))
            # Emphasis around code is cut by the code.
            plain = re.sub(r"^\*(?=[\s.,;:)]|$)", "", plain) if index else plain
            last = index == len(pieces) - 1
            pieces[index] = plain if last else re.sub(r"(?:(?<=[\s(])|^)\*$", "", plain)
    text = "".join(pieces)
    return _LIST_NUMBER.sub("", _CHECKBOX.sub("", " ".join(text.split()))).strip()


def without_code(text: str) -> str:
    """The text without its fenced code."""
    return _CODE_BLOCK.sub("", text).rstrip() if "```" in text else text


def split_sentences(text: str) -> list[str]:
    """Splits an English or Chinese text into sentences. A full stop inside `code` ends none."""
    complete: list[str] = []
    pieces: list[str] = []
    is_code_open = False
    for piece in _SENTENCE_END.split(text):
        if not is_code_open and not piece.strip():
            continue
        pieces.append(piece if is_code_open else piece.strip())
        is_code_open ^= bool(piece.count("`") % 2)
        if not is_code_open:
            complete.append(" ".join(pieces))
            pieces = []
    return [*complete, " ".join(pieces)] if pieces else complete


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, cut after a sentence if possible, else after a word."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    stop = max(head.rfind(mark) for mark in (". ", "; ", "。", "；"))
    if stop > limit // 2:
        return head[: stop + 1].rstrip("; ")
    word = head[: limit - 1].rsplit(" ", 1)[0]
    return f"{(word if len(word) > limit // 2 else head[: limit - 1]).rstrip(' ,;:-')}…"


def _render_command_fence(fence: re.Match[str]) -> str:
    """A short code block of commands as a list item, or of settings as their names."""
    lines = [line.strip() for line in fence[2].splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    names = [_ENV_ASSIGNMENT.match(line) for line in lines]
    if not lines or len(lines) > MAX_COMMANDS or any(len(line) > MAX_COMMAND for line in lines):
        return fence[0]
    if all(names):
        return "\n- " + ", ".join(f"`{name[1]}`" for name in names if name) + "\n"
    if not fence[1]:
        return fence[0]
    matches = (re.fullmatch(r"(?s)(?:\$ )?(.*?)(?:(?<!\s)\s++#\s*(.*))?", line) for line in lines)
    items = (
        f"`{match[1]}`" + (f" ({match[2]})" if match[2] else "")
        for match in matches
        if match and match[1]
    )
    return "\n- " + "; ".join(items) + "\n"


def _iter_prose_lines(text: str) -> Iterator[str | MarkdownBlock]:
    """Yields the lines of prose, and each closed fence as a block of code."""
    fence = ""
    code: list[str] = []
    for line in text.splitlines():
        match = _FENCE.match(line)
        if match and (not fence or match[1].startswith(fence)):
            code.append(line)
            if fence:
                yield MarkdownBlock("code", _dedent(code))
                code = []
            fence = "" if fence else match[1]
        elif fence:
            code.append(line)
        elif (
            len(line) <= MAX_LINE
            and not _DRAWING.search(line)
            and not line.lstrip().startswith(">")
        ):
            yield line


def _dedent(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(line.expandtabs(4).rstrip() for line in lines))


def _parse_block(line: str) -> MarkdownBlock:
    if match := _HEADING.fullmatch(line):
        return MarkdownBlock("heading", match[2], len(match[1]))
    if match := _BOLD_LINE.fullmatch(line):
        return MarkdownBlock("heading", match[1], 7)
    if match := _ROW.fullmatch(line):
        return MarkdownBlock("row", match[1])
    if match := _ITEM.fullmatch(line):
        return MarkdownBlock("item", match[2], len(match[1].expandtabs(4)))
    return MarkdownBlock("text", line.strip())
