"""The command `reverie hook EVENT`, called by a coding agent's hooks.

Reads the event as JSON on standard input and prints what the agent should know. Failures never
stop the agent: the exit code is 0.
"""

from __future__ import annotations

import json
import os
import sys
import time

from reverie.agent.coding_agents import (
    find_coding_agent,
    format_answer,
    transcript_paths,
    translate_payload,
)
from reverie.agent.gateway.http_client import CallRefused, GatewayConnection, GatewayUnavailable
from reverie.agent.gateway.location import (
    locate_from_environment,
    resolve_home,
    user_from_environment,
)
from reverie.agent.hooks.delivery import (
    confirm_delivery,
    deliver_pending,
    deliver_session,
    post_in_session,
    run_in_background,
    start_session,
)
from reverie.agent.hooks.options import (
    DEFAULT_AGENT,
    DEFAULT_TIMEOUT_SECONDS,
    EVENTS,
    USAGE,
    parse_options,
    resolve_event_name,
)
from reverie.agent.hooks.session_state import HookSessionState, prune_sessions
from reverie.agent.tool_names import BOOKKEEPING_TOOLS, READ_TOOLS
from reverie.domain.text.control_characters import strip_control_characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

ACTION_TIMEOUT_SECONDS = 0.15
"""Longest time that the gateway has before an edit or a command, all its calls together."""
BACKGROUND_TIMEOUT_SECONDS = 30.0
"""The timeout of calls in the background."""
MAX_QUERY_CHARS = 8_000
"""The length of the user's message that is used to find memories."""
MAX_EDITED, MAX_TESTS = 10, 5
"""The files edited and the tests run last, from which the next files are predicted."""
PATCH_ACTIONS = ("*** Update", "*** Delete", "*** Add")
PATH_ARGUMENTS = ("file_path", "notebook_path", "path")
TURN_EVENTS = frozenset({"UserPromptSubmit", "PostToolUse", "Stop"})
_UNSENT_TOOLS = READ_TOOLS | BOOKKEEPING_TOOLS
MAX_WARNED_FILES = 200
MAX_LATE = 20


def connect_gateway(
    environ: Mapping[str, str], timeout: float, agent: str = "", project: str = ""
) -> GatewayConnection | None:
    """Returns the gateway that a hook may call; None if there is none, or no key for it.

    `agent` and `project` are those that `reverie setup` made a key for.
    """
    location, ca = locate_from_environment(environ, agent, project)
    if not location.key:
        return None
    user = user_from_environment(environ)
    return GatewayConnection(location.url, location.key, timeout, ca, user=user)


class HookCall:
    """One call of a hook: the payload, the state of its session, and the gateway if one runs."""

    def __init__(self, event: str, payload: dict[str, Any], options: Mapping[str, str]) -> None:
        agent = options.get("agent") or DEFAULT_AGENT
        self.event = event
        self.coding_agent = find_coding_agent(agent)
        self.payload = payload
        self.folder = os.path.join(resolve_home(os.environ), "hooks")
        self.timeout = float(options.get("seconds") or DEFAULT_TIMEOUT_SECONDS)
        self.state = HookSessionState(
            self.folder, agent, self.text_field("session_id") or "unnamed"
        )
        self._project = options.get("project")
        self.trace_id = ""
        """The trace of the preflow whose memories are written out."""
        self.gateway = connect_gateway(os.environ, self.timeout, agent, self._project or "")

    @property
    def answer_reaches_model(self) -> bool:
        """Whether the model gets to read the answer to this event."""
        return self.event in self.coding_agent.shows

    def text_field(self, name: str) -> str:
        """A text field of the payload; empty if it is missing.

        NUL and lone surrogates, which no gateway and no file name takes, are replaced.
        """
        value = self.payload.get(name)
        if not isinstance(value, str):
            return ""
        return value.encode(errors="replace").decode().replace("\0", "\ufffd")

    def update_session_facts(self) -> None:
        """Records the project and the transcript of the session, if they are new."""
        facts, path = self.state.facts, self._find_transcript()
        changes: dict[str, Any] = {}
        if "project" not in facts or self.event == "SessionStart":
            from reverie.agent.git.project_detection import detect_project

            location = detect_project(
                self.text_field("cwd") or os.getcwd(), self._project, os.environ
            )
            changes = {
                "root": location.root,
                "project": location.project,
                "branch": location.branch,
                "key_project": self._project,
            }
        if path and path not in facts.get("transcripts", ()):
            changes["transcripts"] = [*facts.get("transcripts", ()), path]
        if changes:
            self.state.save(**changes)

    def _find_transcript(self) -> str:
        """The transcript that the session's turns are read from; empty if events hold them."""
        if not self.coding_agent.reads_transcript:
            return ""
        if path := self.text_field("transcript_path"):
            return path
        session, home = self.state.external_id, os.path.expanduser("~")
        if os.path.basename(session) != session:
            return ""
        paths = (
            os.path.join(folder, session, name)
            for folder in transcript_paths(self.state.agent, home)
            for name in (f"{session}.messages.json", "api_conversation_history.json")
        )
        return next(filter(os.path.isfile, paths), "")


def handle_session_start(hook: HookCall) -> str:
    """Starts or resumes the session, and returns its context."""
    compacted = hook.text_field("source") == "compact" or bool(hook.state.facts.get("compacted"))
    hook.state.save(ended=False, compacted=compacted, warned=[])
    if hook.gateway is None or not hook.answer_reaches_model:
        return ""
    response = start_session(hook.state, hook.gateway, include_context=True, compacted=compacted)
    hook.state.save(compacted=False)
    return str(response["context"])


def handle_user_prompt(hook: HookCall) -> str:
    """Returns the memories for this message that the session has not seen."""
    prompt = hook.text_field("prompt").strip()
    if not prompt or is_command(prompt) or hook.gateway is None or not hook.answer_reaches_model:
        return ""
    compacted = bool(hook.state.facts.get("compacted"))
    body = {"query": prompt[:MAX_QUERY_CHARS], "compacted": compacted}
    response = post_in_session(hook.state, hook.gateway, "/v1/preflow", body)
    if compacted and "session" not in response["degraded"]:
        hook.state.save(compacted=False)
    hook.trace_id = str(response.get("trace_id") or "")
    return str(response["markdown"])


def is_command(prompt: str) -> bool:
    """Returns whether a prompt is a command (`/clear`), and not a path (`/etc/hosts`)."""
    return prompt.startswith("/") and "/" not in prompt.split()[0][1:]


def handle_action(hook: HookCall) -> str:
    """Returns failures, conventions and decisions about the file or command of a tool call."""
    arguments = hook.payload.get("tool_input")
    if hook.gateway is None or not hook.answer_reaches_model or not isinstance(arguments, dict):
        return ""
    path = next((arguments[field] for field in PATH_ARGUMENTS if arguments.get(field)), "")
    text = str(arguments.get("command") or "")
    path = path or find_patched_file(text)
    command = "" if path else " ".join(text.split())
    if command:
        if tests := [*filter(is_test_file, command.replace("::", " ").split())]:
            hook.state.save(tests=tests[-MAX_TESTS:])
        return _recall_before(hook, hook.gateway, "command", command[:MAX_QUERY_CHARS])
    facts = hook.state.facts
    file = os.path.relpath(os.path.join(hook.text_field("cwd"), str(path)), facts["root"])
    if not path or file.startswith("..") or file in facts.get("warned", ()):
        return ""
    block = _recall_before(hook, hook.gateway, "edit", file)
    hook.state.save(warned=[*facts.get("warned", ())[-MAX_WARNED_FILES:], file])
    return block


def find_patched_file(command: str) -> str:
    """The first file of a patch in the form of Codex; empty if the text is no such patch."""
    if "*** Begin Patch" in command:
        for line in command.splitlines():
            action, mark, path = line.partition(" File: ")
            if mark and action in PATCH_ACTIONS:
                return path.strip()
    return ""


def is_test_file(word: str) -> bool:
    """Whether a word of a command is a path like that of a test."""
    return "." in word.rpartition("/")[2] and ("test" in word or "spec" in word)


def _recall_before(hook: HookCall, gateway: GatewayConnection, action: str, subject: str) -> str:
    """The block for an action; a gateway that is not that fast is as good as none."""
    import signal
    from zlib import crc32

    def on_deadline(*_: object) -> None:
        raise GatewayUnavailable("the time before an action is over")

    # The gateway may have recorded as given what came too late: it is asked for again.
    key, late_keys = crc32(subject.encode()), hook.state.facts.get("late", [])
    body = {"query": subject, "before": action, "include_seen": key in late_keys}
    if action == "edit":
        facts = hook.state.facts
        body["edited"] = [*facts.get("warned", ())][-MAX_EDITED:]
        body["tests"] = [*facts.get("tests", ())]
    signal.signal(signal.SIGALRM, on_deadline)
    signal.setitimer(signal.ITIMER_REAL, min(hook.timeout, ACTION_TIMEOUT_SECONDS))
    try:
        response = post_in_session(hook.state, gateway, "/v1/preflow", body)
    except GatewayUnavailable:
        hook.state.save(late=[*late_keys[-MAX_LATE:], key])
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if key in late_keys:
        hook.state.save(late=[other for other in late_keys if other != key])
    hook.trace_id = str(response.get("trace_id") or "")
    return str(response["markdown"])


def handle_compact(hook: HookCall) -> str:
    """Records that the agent loses its earlier context; all may be given to it again."""
    hook.state.save(compacted=True, warned=[], late=[])
    return ""


def handle_nothing(hook: HookCall) -> str:
    """Returns nothing; all work is done in the background."""
    return ""


def handle_subagent_stop(hook: HookCall) -> str:
    """Records a sub-agent's transcript as a session of its own that has ended."""
    path = hook.text_field("agent_transcript_path")
    if path:
        kind = hook.text_field("agent_type") or "subagent"
        sub_agent = hook.text_field("agent_id") or os.path.basename(path)
        name = f"{hook.text_field('session_id')}/{sub_agent}"
        names = ("project", "branch", "root", "key_project")
        facts = {name: hook.state.facts.get(name) for name in names}
        hook.state = HookSessionState(hook.folder, f"{hook.state.agent}/sub/{kind}", name)
        hook.state.save(**facts, transcripts=[path], ended=True)
    return ""


def handle_session_end(hook: HookCall) -> str:
    """Records the end of the session; it is sent in the background."""
    hook.state.save(ended=True)
    return ""


EVENT_HANDLERS: dict[str, Callable[[HookCall], str]] = {
    "SessionStart": handle_session_start,
    "UserPromptSubmit": handle_user_prompt,
    "PreToolUse": handle_action,
    "PostToolUse": handle_nothing,
    "PreCompact": handle_compact,
    "SubagentStop": handle_subagent_stop,
    "Stop": handle_nothing,
    "SessionEnd": handle_session_end,
}


def handle_event(
    event: str, payload: dict[str, Any], options: Mapping[str, str], agent_event: str = ""
) -> None:
    """Handles an event, and starts a background process for the rest of the work.

    `agent_event` is the agent's own name of the event, if it differs.
    """
    agent = options.get("agent") or DEFAULT_AGENT
    hook = HookCall(event, translate_payload(agent, agent_event or event, payload), options)
    is_read_only = event == "PostToolUse" and hook.payload.get("tool_name") in _UNSENT_TOOLS
    if not hook.text_field("session_id") or is_read_only:
        return
    hook.update_session_facts()
    try:
        context = EVENT_HANDLERS[event](hook)
    except (GatewayUnavailable, CallRefused) as error:
        _log_debug(error)
        context = ""
    if not context:
        hook.trace_id = ""
    else:
        json.dump(format_answer(agent, agent_event or event, context), sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()
    if event != "PreToolUse" or hook.trace_id:
        run_in_background(lambda: _deliver_in_background(hook))


def _deliver_in_background(hook: HookCall) -> None:
    gateway = _connect_for_session(hook.state)
    if gateway is not None and hook.trace_id:
        confirm_delivery(gateway, hook.trace_id)
    if hook.event == "PreToolUse":
        return
    if deliver_session(hook.state, gateway, _turn_from_event(hook)) and gateway is not None:
        deliver_pending(hook.folder, _connect_for_session)
        _announce_commits(hook, gateway)
        if hook.event == "SessionStart":
            prune_sessions(hook.folder)


def _connect_for_session(state: HookSessionState) -> GatewayConnection | None:
    """The gateway, with the key of the session's own agent and project."""
    agent, project = state.agent.partition("/")[0], str(state.facts.get("key_project") or "")
    return connect_gateway(os.environ, BACKGROUND_TIMEOUT_SECONDS, agent, project)


def _announce_commits(hook: HookCall, gateway: GatewayConnection) -> None:
    """Announces what happened in the clone: at the start, and when its head moved since."""
    from reverie.agent.git.project_detection import head_stamp

    root, project = hook.state.facts["root"], hook.state.facts["project"]
    stamp = head_stamp(root)
    if stamp and (hook.event == "SessionStart" or stamp != hook.state.facts.get("head")):
        from reverie.agent.hooks.clone_sync import announce_clone

        announce_clone(gateway, root, project)
        hook.state.save(head=stamp)


def _turn_from_event(hook: HookCall) -> dict[str, Any] | None:
    """The turn of the event, if there is no transcript to read it from."""
    if hook.state.facts.get("transcripts") or hook.event not in TURN_EVENTS:
        return None
    from reverie.agent.hooks.turn_spool import build_turn

    # The `turn_id` of Codex is not the id of a message: a prompt and its answer have the same.
    external_id = hook.text_field("message_id") or f"{hook.event}:{time.time_ns()}"
    return build_turn(hook.event, hook.payload, external_id)


def main(argv: Sequence[str] | None = None) -> int:
    """Reads and handles the event. Returns 0 even after errors, and 1 for wrong usage.

    Never 2, which makes Claude Code stop.
    """
    arguments = list(sys.argv[2:] if argv is None else argv)
    if not arguments or arguments[0] in {"-h", "--help"}:
        sys.stdout.write(USAGE.format(events=", ".join(EVENTS), seconds=DEFAULT_TIMEOUT_SECONDS))
        return 0 if arguments else 1
    options = parse_options(arguments[1:])
    names = resolve_event_name(arguments[0], (options or {}).get("agent") or DEFAULT_AGENT)
    if names is None or options is None:
        wrong = strip_control_characters(" ".join(arguments))
        sys.stderr.write(f"reverie: no such hook or option: {wrong}; see reverie hook --help\n")
        return 1
    try:
        payload = json.load(sys.stdin)
        handle_event(names[0], payload if isinstance(payload, dict) else {}, options, names[1])
    except Exception as error:
        _log_debug(error)
    return 0


def _log_debug(error: Exception) -> None:
    if os.environ.get("REVERIE_LOG_LEVEL", "").lower() == "debug":
        reason = strip_control_characters(str(error))
        sys.stderr.write(f"reverie hook: {type(error).__name__}: {reason}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
