"""`reverie session`: starts a session, appends and corrects turns, ends it."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from reverie.cli.app.common import EXIT_CODES_HELP, Home, Json, Project, Sets
from reverie.cli.app.gateway_client import create_client
from reverie.cli.app.output import print_result, short_id

app = typer.Typer(
    name="session",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Hand over a conversation: start, say, adjust, end.",
    epilog=EXIT_CODES_HELP,
)

Session = Annotated[str, typer.Argument(help="A session's id, also short.")]
Agent = Annotated[str, typer.Option("--agent", help="Who works.")]
Branch = Annotated[str | None, typer.Option("--branch", help="The branch that is checked out.")]
ExternalId = Annotated[
    str | None, typer.Option("--external-id", help="The agent's own name: starts it once.")
]
Content = Annotated[str, typer.Argument(help="What was said; - reads it.")]
Tool = Annotated[str | None, typer.Option("--tool", help="The tool that answered.")]
Summary = Annotated[str | None, typer.Option("--summary", help="What is to be said of it.")]
Correction = Annotated[str, typer.Argument(help="What the user said or changed; - reads it.")]


class TurnRole(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@app.command("start")
def start_session(
    agent: Agent,
    project: Project = None,
    branch: Branch = None,
    external_id: ExternalId = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Start a session, and show what to know before.

    Example: [bold]reverie session start --agent deploy-bot --project shop[/]
    """
    client = create_client(home, sets, project)
    optional_fields = {"project": client.project, "branch": branch, "external_id": external_id}
    body = {"agent": agent, **{name: value for name, value in optional_fields.items() if value}}
    response = client.request("POST", "/v1/sessions/start", body=body)
    print_result(
        response,
        json,
        f"session {short_id(response['session'])} in {response['scope']}",
        response["context"],
    )


@app.command("say")
def append_turn(
    session: Session,
    role: Annotated[TurnRole, typer.Argument(help="Who says it.")],
    content: Content,
    tool: Tool = None,
    external_id: ExternalId = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Add a message to a session.

    Example: [bold]reverie session say 7c2f01aa user "We ship on Thursdays."[/]
    """
    client = create_client(home, sets)
    optional_fields = {"tool": tool, "external_id": external_id}
    turn = {"role": role.value, "content": _read_text(content)}
    turn |= {name: value for name, value in optional_fields.items() if value}
    body = {"session": client.resolve_session_id(session), "turns": [turn]}
    response = client.request("POST", "/v1/turns", body=body)
    print_result(
        response, json, f"{response['accepted']} new, {response['duplicates']} known before"
    )


@app.command("adjust")
def correct_turn(
    session: Session,
    diff: Correction,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Take back what the last turn corrected, and keep what holds instead.

    Example: [bold]reverie session adjust 7c2f01aa "no, on Fridays"[/]
    """
    client = create_client(home, sets)
    path = f"/v1/sessions/{client.resolve_session_id(session)}/adjust"
    response = client.request("POST", path, body={"diff": _read_text(diff)})
    lines = [
        f"{short_id(correction['new'])} stands now: {correction['said']}"
        for correction in response["adjusted"]
    ]
    print_result(
        response,
        json,
        *(lines or [f"nothing was adjusted ({response['skipped'] or 'no correction'})"]),
    )


@app.command("end")
def end_session(
    session: Session,
    summary: Summary = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """End a session; what was said in it is digested soon.

    Example: [bold]reverie session end 7c2f01aa --summary "Moved the release"[/]
    """
    client = create_client(home, sets)
    body = {"summary": summary} if summary else {}
    response = client.request(
        "POST", f"/v1/sessions/{client.resolve_session_id(session)}/end", body=body
    )
    dream = response["dream"]
    print_result(response, json, f"ended; {dream['scope']} will be digested" if dream else "ended")


def _read_text(argument: str) -> str:
    return sys.stdin.read() if argument == "-" else argument
