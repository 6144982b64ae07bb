"""The words of the command `reverie hook`: its usage, its options, the names of events."""

from __future__ import annotations

from reverie.agent.coding_agents import find_coding_agent

# Not imported from `typing`, which is slow to import: a hook starts at every turn.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_TIMEOUT_SECONDS = 3.0
"""Longest time that an agent waits for a hook."""
MAX_TIMEOUT_SECONDS = 600.0
DEFAULT_AGENT = "claude-code"
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)
USAGE = """Usage: reverie hook EVENT [--project NAME] [--agent NAME] [--seconds N]

Handle a hook event of a coding agent: read its JSON from standard input, and print context for
the agent. `reverie setup` writes the configuration. EVENT is one of
{events}.

  --project  the project; default: REVERIE_PROJECT, project in reverie.toml, git config
             reverie.project, or the name of the repository
  --agent    the agent's name (default claude-code)
  --seconds  how long the agent may wait at most (default {seconds:g})

Example: reverie hook SessionStart --project shop < event.json

Exit codes: 0, also if Reverie does not run (turns are sent later); 1 wrong usage.
"""


def resolve_event_name(event: str, agent: str) -> tuple[str, str] | None:
    """Our event of a name, and the agent's own; people may write `session-start`."""
    theirs = find_coding_agent(agent).events
    names = {_plain(name): (name, name) for name in EVENTS}
    names |= {_plain(name): (ours, name) for name, ours in theirs.items()}
    return names.get(_plain(event))


def _plain(event: str) -> str:
    return event.replace("-", "").replace("_", "").lower()


def parse_options(arguments: Sequence[str]) -> dict[str, str] | None:
    """Parses options given as `--name value` or `--name=value`; None if they are invalid."""
    options: dict[str, str] = {}
    words = [part for word in arguments for part in word.split("=", 1)]
    for name, value in zip(words[::2], words[1::2], strict=False):
        if name not in {"--project", "--agent", "--seconds"}:
            return None
        options[name[2:]] = value
    if "seconds" in options and not _is_duration(options["seconds"]):
        return None
    return options if len(words) % 2 == 0 else None


def _is_duration(text: str) -> bool:
    try:
        return 0 < float(text) <= MAX_TIMEOUT_SECONDS
    except ValueError:
        return False
