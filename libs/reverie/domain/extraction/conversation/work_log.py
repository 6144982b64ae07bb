"""Files that a session's tools used and wrote, and the commands that verified the work.

A file that was only listed or read is not related to a memory: only one that the memory names,
that the reported work wrote, or in which the conversation locates a name of the memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from reverie.domain.entities.file_paths import (
    extract_identifiers,
    extract_paths,
    extract_tool_files,
    is_same_file,
)
from reverie.domain.text.turns import TurnText, tool_call_status, tool_call_target

MAX_FILES = 16

_WRITE_TOOLS = frozenset({"edit", "write", "multiedit", "notebookedit", "apply_patch", "create"})
# Forms of a code name that do not also occur in prose or on a command line.
_IDENTIFIER_SHAPE = re.compile(r"[a-z][A-Z]|[A-Z][a-z]+[A-Z]|[a-z0-9]_[a-z0-9]|[A-Z]_[A-Z]")


@dataclass(frozen=True)
class WorkLog:
    """The work in a session.

    It has the files given to tools, when each was written, and files that a message names together
    with one code name and no other file.
    """

    used_files: tuple[tuple[datetime, str], ...]
    write_times: Mapping[str, tuple[datetime, ...]]
    files_by_name: Mapping[str, frozenset[str]]


def collect_work_log(turns: Iterable[TurnText], roots: Sequence[str] = ()) -> WorkLog:
    """Collects the work of turns. `roots`: the folders that absolute paths are relative to."""
    turn_list = list(turns)
    used_files = [(turn.at, file) for turn in turn_list for file in _list_turn_files(turn, roots)]
    write_times: defaultdict[str, list[datetime]] = defaultdict(list)
    for turn in select_write_turns(turn_list):
        for file in _list_turn_files(turn, roots):
            write_times[file].append(turn.at)
    files_by_name: defaultdict[str, set[str]] = defaultdict(set)
    for turn in turn_list:
        for name, file in _iter_name_files(turn, roots):
            files_by_name[name].add(
                _resolve_path(file, _list_files_used_until(used_files, turn.at))
            )
    return WorkLog(
        tuple(used_files),
        {file: tuple(times) for file, times in write_times.items()},
        {
            name: frozenset(_drop_shorter_names(sorted(files)))
            for name, files in files_by_name.items()
        },
    )


def find_related_files(
    text: str,
    write_turns: Iterable[TurnText],
    work_log: WorkLog,
    until: datetime,
    roots: Sequence[str] = (),
) -> tuple[str, ...]:
    """Finds the files that a memory is about.

    These are files that it names and files changed by the turns it reports. If it names none, they
    are the homes of its code names. `until`: the time of the statement.
    """
    used_files = _list_files_used_until(work_log.used_files, until)
    related = [_resolve_path(file, used_files) for file in extract_paths(text, roots)]
    related += [file for turn in write_turns for file in _list_turn_files(turn, roots)]
    if not related:
        candidates = (
            work_log.files_by_name.get(name, frozenset())
            for name in sorted(extract_identifiers(text))
        )
        related = [next(iter(files)) for files in candidates if len(files) == 1]
    return tuple(_drop_shorter_names(related))[:MAX_FILES]


def find_last_writes(
    files: Iterable[str], work_log: WorkLog, until: datetime
) -> tuple[tuple[str, datetime], ...]:
    """Returns which of the files were written by then, each with the time of the last write."""
    last_writes: list[tuple[str, datetime]] = []
    for file in dict.fromkeys(files):
        earlier = [
            moment
            for path, times in work_log.write_times.items()
            if is_same_file(file, path)
            for moment in times
            if moment <= until
        ]
        if earlier:
            last_writes.append((file, max(earlier)))
    return tuple(last_writes)


def find_place_of_work(work_log: WorkLog) -> str:
    """The folder of all files that were written, or the file if it is one; "" if there is none."""
    parts = [path.split("/") for path in work_log.write_times]
    shared = [
        names[0] for names in takewhile(lambda n: len(set(n)) == 1, zip(*parts, strict=False))
    ]
    return "/".join(shared)


def select_write_turns(turns: Iterable[TurnText]) -> list[TurnText]:
    """The tool turns that wrote a file."""
    return [
        turn
        for turn in turns
        if turn.role == "tool"
        and (turn.tool or "").lower() in _WRITE_TOOLS
        and tool_call_status(turn.content) == "ok"
    ]


def _list_turn_files(turn: TurnText, roots: Sequence[str] = ()) -> list[str]:
    """Lists the files given to a tool; none for a message."""
    return extract_tool_files(turn, roots) if turn.role == "tool" else []


def _list_files_used_until(
    used_files: Iterable[tuple[datetime, str]], until: datetime
) -> list[str]:
    """The files that tools had been given by then, each once, the last one last."""
    earlier = [file for used_at, file in used_files if used_at <= until]
    return list(dict.fromkeys(reversed(earlier)))[::-1]


def _resolve_path(file: str, used_files: Sequence[str]) -> str:
    """Resolves a file named by its end to a path that tools were given.

    Returns the name itself if no path matches, or if it has a folder and was given itself.
    Otherwise returns the longest match if it ends with all others, else the last match.
    """
    matches = [path for path in used_files if path.endswith(f"/{file}")]
    if not matches or ("/" in file and file in used_files):
        return file
    longest = max(matches, key=len)
    return longest if all(longest.endswith(path) for path in matches) else matches[-1]


def _iter_name_files(turn: TurnText, roots: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Names of code, each with the one file that its line of a message names."""
    if turn.role != "assistant":
        return
    for line in turn.content.splitlines():
        if "." not in line or not _IDENTIFIER_SHAPE.search(line):
            continue
        names = [name for name in extract_identifiers(line) if _IDENTIFIER_SHAPE.search(name)]
        files = extract_paths(line, roots) if names else []
        if len(files) == 1:
            yield from ((name, files[0]) for name in names)


def _drop_shorter_names(files: Iterable[str]) -> list[str]:
    """Each file once: of two names of one, the longer."""
    unique = list(dict.fromkeys(files))
    return [file for file in unique if not any(other.endswith(f"/{file}") for other in unique)]


MAX_COMMANDS = 3
MAX_COMMAND_LENGTH = 60

_VERIFICATION_COMMAND = re.compile(
    r"^(?:\w+=\S+ )*(?:(?:go (?:test|build|vet)|golangci-lint|goreleaser"
    r"|(?:npm|pnpm|yarn|bun)(?: run)? \w+|make|just|cargo|pytest|tox|nox|ruff|mypy|uv run|eslint"
    r"|tsc"
    r"|docker compose|docker build|helm|terraform|mvn|gradle|\./gradlew|dotnet|bundle exec|rake|mix"
    r"|swift (?:build|test)|xcodebuild|bazel|ctest|cmake --build|phpunit|composer)\b)"
)
# A command that was for one case only.
_ONE_OFF_COMMAND = re.compile(
    r"…|\s(?:-run|-k|-t|--grep|-m)[\s=]|::|/dev/null|/tmp/|\$\(|\s-v\b(?:(?!\s-v\b).)*\.\w+:|\d{4,}"
)
_FOLDER = re.compile(r"(?<![\w@/-])(?<![\w.-]\.)(?:\./)?([\w-][\w.-]*(?:/[\w-][\w.-]*)+)")


def find_verification_commands(turns: Iterable[TurnText], place: str) -> list[tuple[str, TurnText]]:
    """The frequent ones that went well, each with the last turn that ran it, at most
    `MAX_COMMANDS`.

    `place`: where the work was; the command of another folder says nothing of it.
    """
    turns_by_command: dict[str, list[TurnText]] = {}
    for turn in turns:
        if turn.role != "tool" or tool_call_status(turn.content) != "ok":
            continue
        for command in re.split(r"(?<!\s)\s++&&\s+|;\s+", tool_call_target(turn.content)):
            command_line = re.split(r"(?<!\s)\s++(?:2>|>|\|)", command)[0].strip()
            command_line = command_line.replace(" -v ", " ")
            if (
                _VERIFICATION_COMMAND.match(command_line)
                and len(command_line) <= MAX_COMMAND_LENGTH
                and not _ONE_OFF_COMMAND.search(command_line)
                and all(f"/{f}/" in f"/{place}/" for f in _FOLDER.findall(command_line))
            ):
                turns_by_command.setdefault(command_line, []).append(turn)
    most_used = sorted(turns_by_command, key=lambda command: -len(turns_by_command[command]))[
        :MAX_COMMANDS
    ]
    return [(text, turns_by_command[text][-1]) for text in most_used]
