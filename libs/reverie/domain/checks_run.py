"""The commands with which work was built, tested or released, by the traces of tools."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reverie.domain.turns import TurnText, trace_status, trace_target

MOST = 3
MAX_COMMAND = 60

_CHECK = re.compile(
    r"^(?:\w+=\S+ )*(?:(?:go (?:test|build|vet|generate|mod tidy)|golangci-lint|gofmt|goreleaser"
    r"|(?:npm|pnpm|yarn|bun)(?: run)? \w+|make|just|cargo|pytest|tox|nox|ruff|mypy|uv run|eslint"
    r"|tsc"
    r"|docker compose|docker build|helm|terraform|mvn|gradle|\./gradlew|dotnet|bundle exec|rake|mix"
    r"|swift (?:build|test)|xcodebuild|bazel|ctest|cmake --build|phpunit|composer)\b)"
)
# A command that was for one case only.
_ONCE = re.compile(
    r"…|\s(?:-run|-k|-t|--grep|-m)[\s=]|::|/dev/null|/tmp/|\$\(|\s-v\b.*\.\w+:|\d{4,}"
)


def checks_run(turns: Iterable[TurnText]) -> list[tuple[str, TurnText]]:
    """The frequent ones that went well, each with the last turn that ran it, at most `MOST`."""
    used: dict[str, list[TurnText]] = {}
    for turn in turns:
        if turn.role != "tool" or trace_status(turn.content) != "ok":
            continue
        for command in re.split(r"\s+&&\s+|;\s+", trace_target(turn.content)):
            clean = re.split(r"\s+(?:2>|>|\|)", command)[0].strip()
            if _CHECK.match(clean) and len(clean) <= MAX_COMMAND and not _ONCE.search(clean):
                used.setdefault(clean, []).append(turn)
    best = sorted(used, key=lambda command: -len(used[command]))[:MOST]
    return [(one, used[one][-1]) for one in best]
