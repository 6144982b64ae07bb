"""`reverie sessions` and `reverie session`: list, start, extend, correct and end sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.options import common_options, drop_unset, limit_option, project_option
from reverie.cli.app.output import (
    age_cell,
    build_table,
    print_result,
    read_text,
    short_id,
    short_id_cell,
    text_cell,
)

app = click.Group(
    "session", help="Store a conversation: start, append, correct, end.", epilog=EXIT_CODES_HELP
)


@click.command("sessions")
@click.argument(
    "id", required=False, help="A session's id, to list its turns; default: list sessions."
)
@click.option("--agent", help="Only sessions of this agent.")
@project_option
@limit_option(20)
@common_options
def list_sessions(
    id: str | None,
    agent: str | None,
    project: str | None,
    limit: int,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """List sessions, newest first, or the turns of one session.

    Example: reverie sessions --project shop
    """
    client = create_client(home, sets, project)
    if id is not None:
        items = client.list_items(f"/v1/sessions/{client.resolve_session_id(id)}/turns", {}, limit)
        print_result(items, json, build_table(items, _TURN_COLUMNS))
        return
    items = client.list_items("/v1/sessions", {"agent": agent, "project": client.project}, limit)
    print_result(items, json, build_table(items, _SESSION_COLUMNS))


_TURN_COLUMNS: dict[str, Any] = {
    "turn": "ord",
    "when": age_cell("at"),
    "role": "role",
    "content": text_cell("content", 300),
}
_SESSION_COLUMNS: dict[str, Any] = {
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
@click.option("--external-id", help="The agent's own id; repeated calls with it have one effect.")
@common_options
def start_session(
    agent: str,
    project: str | None,
    branch: str | None,
    external_id: str | None,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Start a session, and print its context.

    Example: reverie session start --agent deploy-bot --project shop
    """
    client = create_client(home, sets, project)
    body = drop_unset(
        {
            "agent": agent,
            "project": client.project,
            "branch": branch,
            "external_id": external_id,
        }
    )
    response = client.request("POST", "/v1/sessions/start", body=body)
    print_result(
        response,
        json,
        f"session {short_id(response['session'])} in {response['scope']}",
        response["context"],
    )


@app.command("append")
@click.argument("session", help="A session's id, in full or shortened.")
@click.argument(
    "role",
    type=click.Choice(["user", "assistant", "tool", "system"]),
    help="The role of the speaker.",
)
@click.argument("content", help="The text; - reads standard input.")
@click.option("--tool", help="The tool, for the role tool.")
@click.option("--external-id", help="The agent's own id; repeated calls with it have one effect.")
@common_options
def append_turn(
    session: str,
    role: str,
    content: str,
    tool: str | None,
    external_id: str | None,
    home: Path | None,
    sets: tuple[str, ...],
    json: bool,
) -> None:
    """Append a turn to a session.

    Example: reverie session append 7c2f01aa user "We ship on Thursdays."
    """
    client = create_client(home, sets)
    turn = drop_unset(
        {"role": role, "content": read_text(content), "tool": tool, "external_id": external_id}
    )
    body = {"session": client.resolve_session_id(session), "turns": [turn]}
    response = client.request("POST", "/v1/turns", body=body)
    print_result(
        response, json, f"{response['accepted']} new turns, {response['duplicates']} duplicates"
    )


@app.command("correct")
@click.argument("session", help="A session's id, in full or shortened.")
@click.argument("correction", help="The user's correction, or a diff; - reads standard input.")
@common_options
def correct_turn(
    session: str, correction: str, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """Apply a correction by the user: outdated memories are superseded.

    Example: reverie session correct 7c2f01aa "no, on Fridays"
    """
    client = create_client(home, sets)
    path = f"/v1/sessions/{client.resolve_session_id(session)}/adjust"
    response = client.request("POST", path, body={"diff": read_text(correction)})
    lines = [
        f"{short_id(change['new'])} is active now: {change['said']}"
        for change in response["adjusted"]
    ]
    print_result(
        response,
        json,
        *(lines or [f"no memory was corrected ({response['skipped'] or 'no correction found'})"]),
    )


@app.command("end")
@click.argument("session", help="A session's id, in full or shortened.")
@click.option("--summary", help="A summary of the session.")
@common_options
def end_session(
    session: str, summary: str | None, home: Path | None, sets: tuple[str, ...], json: bool
) -> None:
    """End a session; a dream digests it soon.

    Example: reverie session end 7c2f01aa --summary "Moved the release"
    """
    client = create_client(home, sets)
    body = {"summary": summary} if summary else {}
    response = client.request(
        "POST", f"/v1/sessions/{client.resolve_session_id(session)}/end", body=body
    )
    dream = response["dream"]
    print_result(
        response, json, f"ended; a dream will digest {dream['scope']}" if dream else "ended"
    )
