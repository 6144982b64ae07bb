"""Files that tell agents the rules of a project: which there are, and their sections. No network.

A section is what stands below a heading, up to the next one; Reverie's own block is none. Its key
is made of the file and the headings above it, so that it stays while the text is edited. What
`reverie setup` wrote for an agent is none either: it tells how to remember, and nothing of the
project.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reverie.agent.rule_block import plain, split
from reverie.agent.setup_agents import CURSOR_RULE
from reverie.agent.setup_edits import without_block
from reverie.agent.specstory import fence_after
from reverie.domain.errors import Invalid
from reverie.domain.redaction import redact

NAMES: Final = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".augment-guidelines")
COPILOT: Final = ".github/copilot-instructions.md"
TAG: Final = "agent-file"
MOST_BYTES: Final = 1_000_000
MOST_IMPORTS: Final = 5
"""How deep `@path` of a CLAUDE.md is followed, as Claude Code does."""
_PASSED: Final = {"node_modules", "vendor", "target", "dist", "build", "venv", "__pycache__"}
_HEADING: Final = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_IMPORT: Final = re.compile(r"(?:^|(?<=\s))@([^\s`@,;:()\"']*[\w/])")
_COMMAND: Final = re.compile(
    r"\b(?:commands?|build|tests?|testing|run(?:ning)?|setup|install(?:ation)?|lint(?:ing)?|format"
    r"(?:ting)?|scripts?|usage|develop(?:ment)?|deploy(?:ment)?)\b",
    re.I,
)
_SHELL: Final = re.compile(r"^\s*(?:`{3,}|~{3,})\s*(?:bash|sh|shell|zsh|console)\b", re.M)
_PREFER: Final = re.compile(r"\b(?:preferences?|prefers?|preferred|tone|style of answers?)\b", re.I)
_ABOUT: Final = re.compile(
    r"\b(?:overview|architecture|structure|layout|background|about|context|glossary)\b", re.I
)


@dataclass(frozen=True)
class Section:
    """What a file says below one heading: its `key`, the text as it is remembered, its kind."""

    file: str
    heading: str
    key: str
    content: str
    kind: str
    tags: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Of the text, to see whether the file changed."""
        return hashlib.sha256(self.content.encode()).hexdigest()[:16]


@dataclass
class Found:
    """The rule files of a project and their sections; `refused` says which were not read, why."""

    files: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def rule_files(root: Path) -> Iterator[Path]:
    """The files that agents read by themselves, those at the top first."""
    for at, folders, names in os.walk(root):
        folders[:] = sorted(one for one in folders if one not in _PASSED and one[0] != ".")
        here = Path(at)
        yield from (here / name for name in NAMES if name in names)
        if here == root and (root / COPILOT).exists():
            yield root / COPILOT
        yield from sorted((here / ".cursor" / "rules").glob("**/*.mdc"))


def is_rule_file(root: Path, path: Path) -> bool:
    """Whether agents read a file of this name and place by themselves."""
    full = Path(os.path.normpath(path))
    if not full.is_relative_to(root):
        return False
    name = full.relative_to(root).as_posix()
    is_cursor = ".cursor/rules/" in f"/{name}" and full.suffix == ".mdc"
    return full.name in NAMES or name == COPILOT or is_cursor


def inside(root: Path, path: Path) -> Path:
    """The path, where it is a file of the project. Raises `Invalid` where it, or a folder above
    it, is a link, or it lies outside."""
    full = Path(os.path.normpath(root / path))
    if not full.is_relative_to(root) or full == root:
        raise Invalid("file", f"{path} lies outside of the project {root}")
    at = full
    while at != root:
        if at.is_symlink():
            raise Invalid("file", f"{at.relative_to(root)} is a link: name the file itself")
        at = at.parent
    return full


def read_text(path: Path) -> str:
    """A file's text with its line ends as they are. Raises `Invalid` where it is none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Invalid("file", f"{path} holds more than {MOST_BYTES} bytes")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid("file", f"{path} is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise Invalid("file", f"{path} cannot be read: {error.strerror}") from None


def find(root: Path) -> Found:
    """All sections of the rule files in a project, each file once."""
    found = Found()
    for path in rule_files(root):
        _take(root, path, found, 0)
    return found


def _take(root: Path, path: Path, found: Found, depth: int) -> None:
    try:
        full = inside(root, path)
        name = full.relative_to(root).as_posix()
        if name in found.files:
            return
        sections, imports = sections_of(name, read_text(full))
    except Invalid as error:
        found.refused.append(error.reason)
        return
    found.files.append(name)
    found.sections += sections
    if full.name == "CLAUDE.md" or depth:
        for one in imports if depth < MOST_IMPORTS else ():
            if one.startswith("~") or (full.parent / one).is_file():
                _take(root, full.parent / one, found, depth + 1)


def sections_of(name: str, text: str) -> tuple[list[Section], list[str]]:
    """The sections of a file outside of what Reverie wrote, and the paths that it imports.

    Raises `Invalid` where the block is broken.
    """
    before, _, after = split(name, text)
    own = "" if f"/{name}".endswith(f"/{CURSOR_RULE}") else without_block(before + after)
    front, body = _front(plain(own).removeprefix("\ufeff"))
    folder = Path(name).parent
    topic = tuple(folder.parts[:2]) if folder.parts and folder.parts[0][0] != "." else ()
    made: list[Section] = []
    imports: list[str] = []
    times: dict[str, int] = {}
    for path, lines in _headed(body):
        said = "\n".join(lines).strip("\n").rstrip()
        imports += _imports(lines)
        if not said.strip():
            continue
        place = "/".join(re.sub(r"\W+", "-", one.lower()).strip("-") for one in path) or "top"
        times[place] = times.get(place, 0) + 1
        place += f"-{times[place]}" if times[place] > 1 else ""
        about = _about(front, folder if topic else None, path)
        content = redact(f"{about}\n\n{said}" if about else said).text
        kind, tags = classify(path, said)
        made.append(Section(name, " > ".join(path), _key(name, place), content, kind, tags, topic))
    return made, imports


def classify(headings: tuple[str, ...], said: str) -> tuple[str, tuple[str, ...]]:
    """The kind of a section and its tags, by its headings and what stands in it."""
    title = headings[-1] if headings else ""
    if _PREFER.search(title):
        return "preference", (TAG,)
    if _SHELL.search(said) and (_COMMAND.search(title) or not title):
        return "convention", (TAG, "command")
    if _COMMAND.search(title) and "`" in said:
        return "convention", (TAG, "command")
    return ("context" if _ABOUT.search(title) else "convention"), (TAG,)


def _key(name: str, place: str) -> str:
    key = f"agent-file:{name}#{place}"
    if len(key) <= 180:
        return key
    return f"{key[:160]}~{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _about(front: dict[str, str], folder: Path | None, headings: tuple[str, ...]) -> str:
    """What a section is about: the files it is for, the headings above it."""
    told = [front["description"]] if front.get("description") else []
    if globs := front.get("globs"):
        told.append(f"For files {globs}")
    if folder is not None:
        told.append(f"In {folder.as_posix()}/")
    return ": ".join([*told, " > ".join(headings)] if headings else told)


def _front(text: str) -> tuple[dict[str, str], str]:
    """The front matter of a Cursor rule, and what stands behind it."""
    found = re.match(r"---\n(.*?)\n?---(?:\n|$)", text, re.S)
    if not found:
        return {}, text
    pairs = re.findall(r"^(\w+):[ \t]*(.*?)[ \t]*$", found[1], re.M)
    return {name: value.strip("\"'") for name, value in pairs}, text[found.end() :]


def _headed(text: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The lines below each heading, with the headings that it stands under."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        heading = None if fence else _HEADING.fullmatch(line)
        fence = fence_after(fence, line)
        if heading is None:
            lines.append(line)
            continue
        yield tuple(name for _, name in path), lines
        depth = len(heading[1])
        path = [*((deep, name) for deep, name in path if deep < depth), (depth, heading[2])]
        lines = []
    yield tuple(name for _, name in path), lines


def _imports(lines: list[str]) -> list[str]:
    """What `@path` names, outside of code."""
    found, fence = [], ""
    for line in lines:
        before, fence = fence, fence_after(fence, line)
        if not before and not fence:
            found += _IMPORT.findall(re.sub(r"`[^`]*`", "", line))
    return found
