"""Checks the `memory.md` files of an import before any of them is applied. Pure but for reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from reverie.contracts.memories.memories import RememberRequest
from reverie.contracts.memories.system_metadata import RESERVED_KEY_PREFIXES
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import InvalidInput, ReverieError
from reverie.domain.formats.memory_md import MemoryFile, MemorySegment, parse_memory_file
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.characters import is_blank
from reverie.runtime.http.validation import check_size, parse_value
from reverie_services.ingest.write.import_archives import iterate_archive, read_markdown
from reverie_services.ingest.write.import_problems import ImportProblems
from reverie_services.ingest.write.prepared_records import parse_writable_kind

_MAX_TAGS = 50
"""Tags of one request; a memory may have more, from others that were merged into it."""


@dataclass(frozen=True)
class MarkdownBody:
    """An uploaded file or archive, and the scope of the file if the request names it."""

    file: BinaryIO
    is_archive: bool
    scope: str | None


@dataclass(frozen=True)
class CheckedFile:
    """A sound file: its name in an archive, its scope, and its redacted content.

    `written_scope`: the scope with the names that people gave it.
    """

    name: str | None
    scope: str
    written_scope: str
    content: MemoryFile
    redactions: int


@dataclass(frozen=True)
class MarkdownRules:
    """What the files of a body are checked against."""

    principal: Principal
    redactor: Redactor
    content_limit: int


def check_body(body: MarkdownBody, rules: MarkdownRules) -> None:
    """Checks all files. Raises `RefusedImport` with each line, or `MalformedInput`."""
    problems = ImportProblems()
    scopes: dict[str, str | None] = {}
    for checked in iterate_files(body, rules, problems):
        if checked.scope in scopes:
            error = InvalidInput("scope", f"{checked.scope} is the scope of another file, too")
            problems.add(1, error, checked.name)
        scopes[checked.scope] = checked.name
    problems.raise_if_any()
    if not scopes:
        raise InvalidInput("body", "holds no memory.md; a vault of Obsidian cannot be imported")


def iterate_files(
    body: MarkdownBody, rules: MarkdownRules, problems: ImportProblems
) -> Iterator[CheckedFile]:
    """The sound files, one at a time; what is wrong with the others goes to `problems`."""
    body.file.seek(0)
    files = iterate_archive(body.file) if body.is_archive else [(None, read_markdown(body.file))]
    for name, text in files:
        known = problems.count
        content = parse_memory_file(text)
        try:
            written_scope = _find_scope(body, name, content)
            scope = parse_scope(written_scope, rules.redactor)
            rules.principal.check_write(scope)
        except ReverieError as error:
            problems.add(1, error, name)
            continue
        rules_here = replace(rules, redactor=rules.redactor.within(scope))
        content, redactions = _check_content(content, rules_here, problems, name)
        if problems.count == known:
            yield CheckedFile(name, scope, written_scope, content, redactions)


def _find_scope(body: MarkdownBody, name: str | None, content: MemoryFile) -> str:
    """The scope of a file: of a tree its path, or as the file writes it where that is the same."""
    if name is None:
        if not (scope := body.scope or content.scope):
            raise InvalidInput("scope", "name the scope of the file")
        return scope
    path = str(PurePosixPath(name).parent)
    with suppress(InvalidInput):
        if content.scope and parse_scope(content.scope) == parse_scope(path):
            return content.scope
    return path


def _check_content(
    content: MemoryFile, rules: MarkdownRules, problems: ImportProblems, file: str | None
) -> tuple[MemoryFile, int]:
    """The content without secrets, and how many were replaced."""
    segments: list[tuple[int, MemorySegment]] = []
    redactions = 0
    for line, segment in content.segments:
        try:
            redacted, count = _check_segment(segment, rules)
        except ReverieError as error:
            problems.add(line, error, file)
            continue
        segments.append((line, redacted))
        redactions += count
    summary = content.summary
    if summary is not None:
        try:
            check_size("summary", summary, rules.content_limit, "content_limit")
        except ReverieError as error:
            problems.add(1, error, file)
        else:
            redacted_summary = rules.redactor.redact(summary)
            summary, redactions = redacted_summary.text, redactions + redacted_summary.count
    return MemoryFile(content.scope, summary, tuple(segments)), redactions


def _check_segment(segment: MemorySegment, rules: MarkdownRules) -> tuple[MemorySegment, int]:
    if is_blank(segment.text):
        raise InvalidInput("content", "the segment is empty")
    check_size("content", segment.text, rules.content_limit, "content_limit")
    build_request(segment, "global")
    texts = {"content": segment.text, "key": segment.key, "tags": list(segment.keywords or ())}
    redacted = rules.redactor.redact_value(texts)
    if not redacted.count:
        return segment, 0
    keywords = None if segment.keywords is None else tuple(dict.fromkeys(redacted.value["tags"]))
    text, key = redacted.value["content"], redacted.value["key"]
    return replace(segment, text=text, key=key, keywords=keywords), redacted.count


def build_request(segment: MemorySegment, scope: str) -> RememberRequest:
    """A segment as the body that would create its memory. Raises `InvalidInput`.

    The key of a memory that the system made is left out: nobody else gives such keys.
    """
    if segment.kind:
        parse_writable_kind(segment.kind)
    tags = list(segment.keywords or ())
    fields: dict[str, Any] = {
        "content": segment.text,
        "scope": scope,
        "kind": segment.kind,
        "key": None if is_reserved(segment.key) else segment.key,
        "confidence": 0.8 if segment.priority is None else segment.priority,
        "pinned": bool(segment.pinned),
    }
    for start in range(_MAX_TAGS, len(tags), _MAX_TAGS):
        parse_value(RememberRequest, {**fields, "tags": tags[start : start + _MAX_TAGS]})
    request = parse_value(RememberRequest, {**fields, "tags": tags[:_MAX_TAGS]})
    return request.model_copy(update={"tags": tags})


def is_reserved(key: str | None) -> bool:
    """Whether only the system gives such a key."""
    return key is not None and key.lower().startswith(RESERVED_KEY_PREFIXES)
