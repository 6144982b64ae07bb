"""`reverie hook EVENT`: what an agent calls at the turns of its session.

The event comes as JSON on standard input and what the agent shall know goes out in its format.
Whatever happens here, the agent goes on: no answer is an answer, and the exit code is 0.
"""

from __future__ import annotations

import json
import os
import sys
import time

from reverie.agent.hook_gateway import Away, Gateway, Refused, find_gateway, home_of
from reverie.agent.hook_notes import Notes, tidy
from reverie.agent.hook_tell import beside, in_session, start, tell, tell_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

SECONDS = 3.0
"""What an agent may be kept waiting."""
BESIDE_SECONDS = 30.0
"""How long a call may take that nobody waits for."""
QUERY_CHARS = 8_000
"""Of what the user says, taken to look for memories."""
READABLE = "claude-code"
"""The agent whose transcripts can be read as they grow."""
PATHS = ("file_path", "notebook_path", "path")
LOOKING = frozenset({"Read", "Glob", "Grep", "LS", "TodoWrite"})
TELLING = frozenset({"UserPromptSubmit", "PostToolUse", "Stop"})
MOST_WARNED = 200
USAGE = """Usage: reverie hook EVENT [--project NAME] [--agent NAME] [--seconds N]

Answers a hook of a coding agent: reads its JSON on standard input, prints what the agent shall
know. `reverie setup` writes the configuration. EVENT is one of
{events}.

  --project  whose memories; unset: REVERIE_PROJECT, project in reverie.toml, git config
             reverie.project, else the repository's name
  --agent    the agent's name (default claude-code)
  --seconds  how long the agent may be kept waiting (default {seconds:g})

Example: reverie hook SessionStart --project shop < event.json

Exit codes: 0, also where Reverie is away (it answers nothing, and sends later); 1 wrong usage.
"""


class Hook:
    """One call: the event's payload, the notes of its session, the gateway if there is one."""

    def __init__(self, event: str, payload: dict[str, Any], options: Mapping[str, str]) -> None:
        self.event = event
        self.payload = payload
        self.folder = os.path.join(home_of(os.environ), "hooks")
        self.seconds = float(options.get("seconds") or SECONDS)
        agent = options.get("agent") or READABLE
        self.notes = Notes(self.folder, agent, self.text("session_id") or "unnamed")
        self.gateway = find_gateway(os.environ, self.seconds)
        self._project = options.get("project")

    def text(self, name: str) -> str:
        """A field of the payload; empty where it is missing or no text."""
        value = self.payload.get(name)
        return value if isinstance(value, str) else ""

    def know(self) -> None:
        """Notes the place and the transcript of the session, where they are new."""
        facts, path = self.notes.facts, self.text("transcript_path")
        new: dict[str, Any] = {}
        if "project" not in facts or self.event == "SessionStart":
            from reverie.agent.hook_place import where

            found = where(self.text("cwd") or os.getcwd(), self._project, os.environ)
            new = {"root": found.root, "project": found.project, "branch": found.branch}
        if self.notes.agent == READABLE and path and path not in facts.get("transcripts", ()):
            new["transcripts"] = [*facts.get("transcripts", ()), path]
        if new:
            self.notes.save(**new)


def session_start(hook: Hook) -> str:
    """Starts the session or takes it up again; answers what to know before starting."""
    hook.notes.save(ended=False, compacted=hook.text("source") == "compact", warned=[])
    return str(start(hook.notes, hook.gateway)["context"]) if hook.gateway else ""


def user_prompt(hook: Hook) -> str:
    """Answers what the session needs for this message and was not given yet."""
    said = hook.text("prompt").strip()
    if not said or is_command(said) or hook.gateway is None:
        return ""
    compacted = bool(hook.notes.facts.get("compacted"))
    body = {"query": said[:QUERY_CHARS], "compacted": compacted}
    answer = in_session(hook.notes, hook.gateway, "/v1/preflow", body)
    if compacted and "session" not in answer["degraded"]:
        hook.notes.save(compacted=False)
    return str(answer["markdown"])


def is_command(said: str) -> bool:
    """Whether it is for the program (`/clear`), rather than about a path (`/etc/hosts`)."""
    return said.startswith("/") and "/" not in said.split()[0][1:]


def edit(hook: Hook) -> str:
    """Answers what leans on the file that is about to change; of each file once."""
    asked = hook.payload.get("tool_input")
    path = next((asked[n] for n in PATHS if asked.get(n)), "") if isinstance(asked, dict) else ""
    facts = hook.notes.facts
    file = os.path.relpath(os.path.join(hook.text("cwd"), str(path)), facts["root"])
    if not path or hook.gateway is None or file.startswith("..") or file in facts.get("warned", ()):
        return ""
    from reverie.agent.hook_impact import warning

    said = warning(hook.gateway, file, facts["project"])
    hook.notes.save(warned=[*facts.get("warned", ())[-MOST_WARNED:], file])
    return said


def compact(hook: Hook) -> str:
    """Notes that what was given so far will be gone."""
    hook.notes.save(compacted=True, warned=[])
    return ""


def nothing(hook: Hook) -> str:
    """Answers nothing: what there is to do, nobody waits for."""
    return ""


def subagent_stop(hook: Hook) -> str:
    """Takes a sub-agent's transcript for a session of its own, which is over."""
    path = hook.text("agent_transcript_path")
    if path:
        kind = hook.text("agent_type") or "subagent"
        name = f"{hook.text('session_id')}/{hook.text('agent_id') or os.path.basename(path)}"
        facts = {name: hook.notes.facts.get(name) for name in ("project", "branch", "root")}
        hook.notes = Notes(hook.folder, f"{hook.notes.agent}/sub/{kind}", name)
        hook.notes.save(**facts, transcripts=[path], ended=True)
    return ""


def session_end(hook: Hook) -> str:
    """Notes the end, which is told beside."""
    hook.notes.save(ended=True)
    return ""


EVENTS: dict[str, Callable[[Hook], str]] = {
    "SessionStart": session_start,
    "UserPromptSubmit": user_prompt,
    "PreToolUse": edit,
    "PostToolUse": nothing,
    "PreCompact": compact,
    "SubagentStop": subagent_stop,
    "Stop": nothing,
    "SessionEnd": session_end,
}


ALIASES = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
    "PreCompress": "PreCompact",
}
"""What Gemini CLI calls the same."""


def run(event: str, payload: dict[str, Any], options: Mapping[str, str], called: str = "") -> None:
    """Answers an event, and leaves the rest of the work to a process beside.

    `called`: what the agent calls the event, where that is another name.
    """
    hook = Hook(event, payload, options)
    if not hook.text("session_id") or _idle(event, payload):
        return
    hook.know()
    try:
        said = EVENTS[event](hook)
    except (Away, Refused) as error:
        _debug(error)
        said = ""
    if said:
        _answer(called or event, said)
    if event != "PreToolUse":
        beside(lambda: _afterwards(hook))


def _idle(event: str, payload: Mapping[str, Any]) -> bool:
    """Whether an agent only looked around."""
    return event == "PostToolUse" and payload.get("tool_name") in LOOKING


def _afterwards(hook: Hook) -> None:
    gateway = find_gateway(os.environ, BESIDE_SECONDS)
    if tell(hook.notes, gateway, _own_turn(hook)) and gateway is not None:
        tell_waiting(hook.folder, gateway)
        if hook.event == "SessionStart":
            _announce(gateway, hook.notes.facts["root"], hook.notes.facts["project"])
            tidy(hook.folder)


def _announce(gateway: Gateway, root: str, project: str) -> None:
    """Tells of a clone what was committed; for a folder that is none, nothing is loaded."""
    if os.path.exists(os.path.join(root, ".git")):
        from reverie.agent.hook_commits import announce

        announce(gateway, root, project)


def _own_turn(hook: Hook) -> dict[str, Any] | None:
    """What the event tells of, where no transcript tells it."""
    if hook.notes.facts.get("transcripts") or hook.event not in TELLING:
        return None
    from reverie.agent.hook_spool import turn_of

    return turn_of(hook.event, hook.payload, f"{hook.event}:{time.time_ns()}")


def _answer(event: str, said: str) -> None:
    specific = {"hookEventName": event, "additionalContext": said}
    json.dump({"suppressOutput": True, "hookSpecificOutput": specific}, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()


def named(event: str) -> str | None:
    """The event as agents write it, or as people do on a command line (`session-start`)."""
    plain = event.replace("-", "").replace("_", "").lower()
    return next((one for one in (*EVENTS, *ALIASES) if one.lower() == plain), None)


def main(argv: Sequence[str] | None = None) -> int:
    """Reads the event, answers it; 0 whatever happens, 1 where the call itself is wrong.

    Not 2: to Claude Code that means to stop.
    """
    given = list(sys.argv[2:] if argv is None else argv)
    if not given or given[0] in {"-h", "--help"}:
        sys.stdout.write(USAGE.format(events=", ".join(EVENTS), seconds=SECONDS))
        return 0 if given else 1
    event, options = named(given[0]), _options(given[1:])
    if event is None or options is None:
        sys.stderr.write(f"reverie: no such hook: {' '.join(given)}; see reverie hook --help\n")
        return 1
    try:
        payload = json.load(sys.stdin)
        known = ALIASES.get(event, event)
        run(known, payload if isinstance(payload, dict) else {}, options, event)
    except Exception as error:
        _debug(error)
    return 0


def _options(given: Sequence[str]) -> dict[str, str] | None:
    """`--name value` and `--name=value`; None where something else stands there."""
    found: dict[str, str] = {}
    words = [part for word in given for part in word.split("=", 1)]
    for name, value in zip(words[::2], words[1::2], strict=False):
        if name not in {"--project", "--agent", "--seconds"}:
            return None
        found[name[2:]] = value
    return found if len(words) % 2 == 0 else None


def _debug(error: Exception) -> None:
    if os.environ.get("REVERIE_LOG_LEVEL", "").lower() == "debug":
        sys.stderr.write(f"reverie hook: {type(error).__name__}: {error}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
