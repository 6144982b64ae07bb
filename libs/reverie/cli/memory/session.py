"""`reverie sessions` and `reverie session`: list, start, extend, correct and end sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.options import (
    CommonOptions,
    common_options,
    drop_unset,
    limit_option,
    project_option,
    session_argument,
)
from reverie.cli.app.output import (
    Columns,
    age_cell,
    plural,
    read_text,
    short_id,
    short_id_cell,
    text_cell,
)
from reverie.domain.core.errors import InvalidInput

app = click.Group(
    "session", help="Store a conversation: start, append, correct, end.", epilog=EXIT_CODES_HELP
)


external_id_option = click.option(
    "--external-id", help="The agent's own id; repeated calls with it have one effect."
)


@click.command("sessions")
@click.argument(
    "id", required=False, help="A session's id, to list its turns; default: list sessions."
)
@click.option("--agent", help="Only sessions of this agent.")
@project_option
@click.option(
    "--replay", is_flag=True, help="Show each turn with the memories recalled and made at it."
)
@limit_option(20)
@common_options
def list_sessions(
    options: CommonOptions,
    id: str | None,
    agent: str | None,
    project: str | None,
    replay: bool,
    limit: int,
) -> None:
    """List sessions, newest first, or the turns of one session.

    With --replay, a session is shown step by step: each turn with the output of
    its tool, the questions to memory and their answers, and the memories made from it.

    Example: reverie sessions 7c2f01aa --replay
    """
    client = options.gateway(project)
    if replay:
        if id is None:
            raise InvalidInput("ID", "give the session to replay")
        path = f"/v1/sessions/{client.resolve_session_id(id)}/replay"
        steps = client.list_items(path, {}, limit)
        options.print_result(steps, *(line for step in steps for line in _format_step(step)))
        return
    if id is not None:
        items = client.list_items(f"/v1/sessions/{client.resolve_session_id(id)}/turns", {}, limit)
        options.print_table(items, _TURN_COLUMNS)
        return
    items = client.list_items("/v1/sessions", {"agent": agent, "project": client.project}, limit)
    options.print_table(items, _SESSION_COLUMNS)


def _format_step(step: dict[str, Any]) -> Iterator[str]:
    """A turn, and indented below it the memories recalled and made at it."""
    turn = step["turn"]
    tool = f" {turn['tool']}" if turn.get("tool") else ""
    yield f"{turn['ordinal']} {turn['role']}{tool}: {turn.get('output') or turn['content']}"
    for recall in step["recalls"]:
        given = recall["returned"] if recall.get("given") is None else recall["given"]
        yield f"    asked: {recall['query']} ({given} given)"
        for memory in recall["memories"]:
            yield f"      {short_id(memory['id'])} {memory['kind']}: {memory['label']}"
    for memory in step["memories"]:
        verb = "learned" if memory["learned"] else "remembered"
        yield f"    {verb}: {short_id(memory['id'])} {memory['kind']}: {memory['label']}"


_TURN_COLUMNS: Columns = {
    "turn": "ordinal",
    "when": age_cell("at"),
    "role": "role",
    "content": text_cell("content", 300),
}
_SESSION_COLUMNS: Columns = {
    "id": short_id_cell("id"),
    "agent": "agent",
    "project": "project",
    "branch": "branch",
    "turns": "turns",
    "started": age_cell("started_at"),
    "ended": age_cell("ended_at"),
    "summary": text_cell("summary", 120),
}


@app.command("start")
@click.option("--agent", required=True, help="The name of the agent.")
@project_option
@click.option("--branch", help="The branch that is checked out.")
@click.option("--group", help="A group of agents that share the scope group/GROUP.")
@click.option("--user", help="The user; default: the setting `user`, git's e-mail or the login.")
@external_id_option
@click.option("--compacted", is_flag=True, help="The agent lost its earlier context.")
@click.option(
    "--context/--no-context",
    "include_context",
    default=True,
    help="Print the context block; its memories count as given to the agent.",
)
@common_options
def start_session(options: CommonOptions, project: str | None, **fields: Any) -> None:
    """Start a session, and print its context.

    Example: reverie session start --agent deploy-bot --project shop
    """
    client = options.gateway(project)
    body = drop_unset({**fields, "project": client.project})
    body["context_shown"] = body["include_context"]
    response = client.request("POST", "/v1/sessions/start", body=body)
    started = f"session {short_id(response['session'])} in {response['scope']}"
    options.print_result(response, started, response["context"])


@app.command("append")
@session_argument
@click.argument(
    "role",
    type=click.Choice(["user", "assistant", "tool", "system"]),
    help="The role of the speaker.",
)
@click.argument("content", help="The text; - reads standard input.")
@click.option("--tool", help="The tool, for the role tool.")
@external_id_option
@common_options
def append_turn(options: CommonOptions, session: str, content: str, **fields: Any) -> None:
    """Append a turn to a session.

    Example: reverie session append 7c2f01aa user "We ship on Thursdays."
    """
    client = options.gateway()
    turn = drop_unset({**fields, "content": read_text(content)})
    body = {"session": client.resolve_session_id(session), "turns": [turn]}
    response = client.request("POST", "/v1/turns", body=body)
    counts = (
        f"{plural(response['accepted'], 'new turn')}, {plural(response['duplicates'], 'duplicate')}"
    )
    options.print_result(response, counts)


@app.command("correct")
@session_argument
@click.argument("correction", help="The user's correction, or a diff; - reads standard input.")
@common_options
def correct_turn(options: CommonOptions, session: str, correction: str) -> None:
    """Apply a correction by the user: outdated memories are superseded.

    Example: reverie session correct 7c2f01aa "no, on Fridays"
    """
    client = options.gateway()
    path = f"/v1/sessions/{client.resolve_session_id(session)}/correct"
    response = client.request("POST", path, body={"diff": read_text(correction)})
    lines = [
        f"{short_id(change['new'])} is active now: {change['quote']}"
        for change in response["corrections"]
    ]
    unchanged = f"no memory was corrected ({response['skipped'] or 'no correction found'})"
    options.print_result(response, *(lines or [unchanged]))


@app.command("end")
@session_argument
@click.option("--summary", help="A summary of the session.")
@common_options
def end_session(options: CommonOptions, session: str, summary: str | None) -> None:
    """End a session; a dream digests it soon.

    Example: reverie session end 7c2f01aa --summary "Moved the release"
    """
    client = options.gateway()
    path = f"/v1/sessions/{client.resolve_session_id(session)}/end"
    response = client.request("POST", path, body={"summary": summary} if summary else {})
    dream = response["dream"]
    message = f"ended; a dream will digest {dream['scope']}" if dream else "ended"
    options.print_result(response, message)
