"""Finds the rule files of a project (CLAUDE.md, AGENTS.md, ...) and parses their sections.

A section is the text below a heading; its key comes from the file and the headings above it, so
that it is stable under edits. Text that Reverie wrote is skipped.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reverie.agent.clone_paths import resolve_inside
from reverie.agent.rules.block import normalize_line_ends, split_block
from reverie.agent.setup.agents import CURSOR_RULE_FILE
from reverie.agent.setup.config_edits import remove_block
from reverie.agent.transcripts.specstory import advance_fence
from reverie.domain.core.errors import InvalidInput
from reverie.domain.redaction.redactor import redact

RULE_FILE_NAMES: Final = (
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".cursorrules",
    ".augment-guidelines",
)
COPILOT_FILE: Final = ".github/copilot-instructions.md"
AGENT_FILE_TAG: Final = "agent-file"
MAX_FILE_BYTES: Final = 1_000_000
MAX_IMPORT_DEPTH: Final = 5
"""Depth to which `@path` of a CLAUDE.md is followed, as in Claude Code."""
_SKIPPED_FOLDERS: Final = {
    "node_modules",
    "vendor",
    "target",
    "dist",
    "build",
    "venv",
    "__pycache__",
}
_HEADING: Final = re.compile(r" {0,3}(#{1,6})\s+(.*)")
_IMPORT: Final = re.compile(r"(?:^|(?<=\s))@([^\s`@,;:()\"']*[\w/])")
_COMMAND_TITLE: Final = re.compile(
    r"\b(?:commands?|build|tests?|testing|run(?:ning)?|setup|install(?:ation)?|lint(?:ing)?|format"
    r"(?:ting)?|scripts?|usage|develop(?:ment)?|deploy(?:ment)?)\b",
    re.I,
)
_SHELL_FENCE: Final = re.compile(
    r"^[^\S\n]*+(?:`{3,}+|~{3,}+)\s*+(?:bash|sh|shell|zsh|console)\b", re.M
)
_PREFERENCE_TITLE: Final = re.compile(
    r"\b(?:preferences?|prefers?|preferred|tone|style of answers?)\b", re.I
)
_DECISION_TITLE: Final = re.compile(
    r"\b(?:decisions?|adrs?|rationale|design choices|trade-?offs?|why we)\b", re.I
)
_DECISION: Final = re.compile(
    r"\b(?:we|i|the team)\s+(?:have\s+)?(?:decided|chose|picked|settled on|went with|opted for"
    r"|switched (?:from|to)|moved (?:from|off)|rejected)\b|\b(?:decided|decision)\s*(?::|to\b|on\b"
    r"|against\b|for\b)|\bchosen over\b",
    re.I,
)
_STATEMENT: Final = re.compile(r"(?:^|\n)\s*(?:[-*+]|\d+[.)])\s+|\n\s*\n")
_CONTEXT_TITLE: Final = re.compile(
    r"\b(?:overview|architecture|structure|layout|background|about|context|glossary)\b", re.I
)


@dataclass(frozen=True)
class RuleSection:
    """The text of a file below one heading: its `key`, the text to remember, its kind."""

    file: str
    heading: str
    key: str
    content: str
    kind: str
    tags: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()

    @property
    def content_hash(self) -> str:
        """Hash of the text, to detect changes of the file."""
        return hashlib.sha256(self.content.encode()).hexdigest()[:16]


@dataclass
class RuleFileScan:
    """The rule files of a project and their sections.

    `unreadable` maps each file that could not be read to the reason.
    """

    files: list[str] = field(default_factory=list)
    sections: list[RuleSection] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def iter_rule_files(root: Path) -> Iterator[Path]:
    """The files that agents read by themselves, those at the top first."""
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(
            folder_name
            for folder_name in folders
            if folder_name not in _SKIPPED_FOLDERS and folder_name[0] != "."
        )
        folder = Path(directory)
        yield from (folder / name for name in RULE_FILE_NAMES if name in names)
        if folder == root and (root / COPILOT_FILE).exists():
            yield root / COPILOT_FILE
        cursor = folder / ".cursor"
        if not cursor.is_symlink() and not (cursor / "rules").is_symlink():
            yield from sorted((cursor / "rules").glob("**/*.mdc"))


def is_rule_file(root: Path, path: Path) -> bool:
    """Returns whether agents read a file of this name and place by themselves."""
    full = Path(os.path.normpath(path))
    if not full.is_relative_to(root):
        return False
    name = full.relative_to(root).as_posix()
    is_cursor = ".cursor/rules/" in f"/{name}" and full.suffix == ".mdc"
    return full.name in RULE_FILE_NAMES or name == COPILOT_FILE or is_cursor


def read_rule_file(path: Path) -> str:
    """Reads a file's text with its line ends unchanged.

    Raises `InvalidInput` if it is not a text file.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput("file", f"{path} is not a regular file")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInput("file", f"{path} holds more than {MAX_FILE_BYTES} bytes")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("file", f"{path} is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise InvalidInput("file", f"{path} cannot be read: {error.strerror}") from None


def scan_rule_files(root: Path) -> RuleFileScan:
    """All sections of the rule files in a project, each file once."""
    scan = RuleFileScan()
    for path in iter_rule_files(root):
        _scan_file(root, path, scan, 0)
    return scan


def _scan_file(root: Path, path: Path, scan: RuleFileScan, depth: int) -> None:
    try:
        full = resolve_inside(root, path)
        name = full.relative_to(root).as_posix()
        if name in scan.files:
            return
        sections, imports = parse_sections(name, read_rule_file(full))
    except InvalidInput as error:
        scan.unreadable.append(error.reason)
        return
    scan.files.append(name)
    scan.sections += sections
    if full.name == "CLAUDE.md" or depth:
        for imported in imports if depth < MAX_IMPORT_DEPTH else ():
            if imported.startswith("~") or (full.parent / imported).is_file():
                _scan_file(root, full.parent / imported, scan, depth + 1)


def parse_sections(name: str, text: str) -> tuple[list[RuleSection], list[str]]:
    """Parses the sections of a file outside Reverie's block, and the paths that it imports.

    Raises `InvalidInput` if the block is broken.
    """
    before, _, after = split_block(name, text)
    remaining = "" if f"/{name}".endswith(f"/{CURSOR_RULE_FILE}") else remove_block(before + after)
    front_matter, body = _split_front_matter(normalize_line_ends(remaining).removeprefix("\ufeff"))
    folder = Path(name).parent
    topic = tuple(folder.parts[:2]) if folder.parts and folder.parts[0][0] != "." else ()
    sections: list[RuleSection] = []
    imports: list[str] = []
    counts: dict[str, int] = {}
    for headings, lines in _iter_sections(body):
        section_text = "\n".join(lines).strip("\n").rstrip()
        imports += _find_imports(lines)
        if not section_text.strip():
            continue
        anchor = (
            "/".join(re.sub(r"\W+", "-", heading.lower()).strip("-") for heading in headings)
            or "top"
        )
        counts[anchor] = counts.get(anchor, 0) + 1
        anchor += f"-{counts[anchor]}" if counts[anchor] > 1 else ""
        context = _section_context(front_matter, folder if topic else None, headings)
        content = redact(f"{context}\n\n{section_text}" if context else section_text).text
        kind, tags = classify_section(headings, section_text)
        sections.append(
            RuleSection(
                name, " > ".join(headings), _section_key(name, anchor), content, kind, tags, topic
            )
        )
    return sections, imports


def classify_section(headings: tuple[str, ...], text: str) -> tuple[str, tuple[str, ...]]:
    """Returns the kind and the tags of a section, from its headings and text."""
    title = headings[-1] if headings else ""
    if _PREFERENCE_TITLE.search(title):
        return "preference", (AGENT_FILE_TAG,)
    if _SHELL_FENCE.search(text) and (_COMMAND_TITLE.search(title) or not title):
        return "convention", (AGENT_FILE_TAG, "command")
    if _COMMAND_TITLE.search(title) and "`" in text:
        return "convention", (AGENT_FILE_TAG, "command")
    if _DECISION_TITLE.search(" > ".join(headings)) or _states_decisions(text):
        return "decision", (AGENT_FILE_TAG,)
    return ("context" if _CONTEXT_TITLE.search(title) else "convention"), (AGENT_FILE_TAG,)


def _states_decisions(text: str) -> bool:
    """Whether most of the items and paragraphs of a section say what was decided."""
    statements = [part for part in _STATEMENT.split(text) if part.strip()]
    decisions = sum(_DECISION.search(part) is not None for part in statements)
    return 2 * decisions > len(statements)


def _section_key(name: str, anchor: str) -> str:
    key = f"agent-file:{name}#{anchor}"
    if len(key) <= 180:
        return key
    return f"{key[:160]}~{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _section_context(
    front_matter: dict[str, str], folder: Path | None, headings: tuple[str, ...]
) -> str:
    """Returns the subject of a section: the files it applies to, and the headings above it."""
    parts = [front_matter["description"]] if front_matter.get("description") else []
    if globs := front_matter.get("globs"):
        parts.append(f"For files {globs}")
    if folder is not None:
        parts.append(f"In {folder.as_posix()}/")
    return ": ".join([*parts, " > ".join(headings)] if headings else parts)


def _split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Splits a Cursor rule into its front matter and the text after it."""
    match = re.match(r"---\n(.*?)\n?---(?:\n|$)", text, re.S)
    if not match:
        return {}, text
    pairs = re.findall(r"^(\w+):(.*)$", match[1], re.M)
    return {name: value.strip(" \t").strip("\"'") for name, value in pairs}, text[match.end() :]


def _iter_sections(text: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yields the lines below each heading, with all headings above them."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        heading = None if fence else _HEADING.fullmatch(line)
        fence = advance_fence(fence, line)
        if heading is None:
            lines.append(line)
            continue
        yield tuple(name for _, name in path), lines
        depth, title = len(heading[1]), heading[2].rstrip().rstrip("#").rstrip()
        path = [*((level, name) for level, name in path if level < depth), (depth, title)]
        lines = []
    yield tuple(name for _, name in path), lines


def _find_imports(lines: list[str]) -> list[str]:
    """Finds the paths that `@path` imports, outside code."""
    imports, fence = [], ""
    for line in lines:
        previous_fence, fence = fence, advance_fence(fence, line)
        if not previous_fence and not fence:
            imports += _IMPORT.findall(re.sub(r"`[^`]*`", "", line))
    return imports
