"""`reverie session`: hands a conversation over by hand, or from a script."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from reverie.cli.asking import desk
from reverie.cli.common import CODES, Home, Json, Sets
from reverie.cli.options import Project
from reverie.cli.shown import short, tell

app = typer.Typer(
    name="session",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Hand over a conversation: start, say, adjust, end.",
    epilog=CODES,
)

Session = Annotated[str, typer.Argument(help="A session's id, also short.")]
Agent = Annotated[str, typer.Option("--agent", help="Who works.")]
Branch = Annotated[str | None, typer.Option("--branch", help="The branch that is checked out.")]
External = Annotated[
    str | None, typer.Option("--external-id", help="The agent's own name: starts it once.")
]
Content = Annotated[str, typer.Argument(help="What was said; - reads it.")]
Tool = Annotated[str | None, typer.Option("--tool", help="The tool that answered.")]
Summary = Annotated[str | None, typer.Option("--summary", help="What is to be said of it.")]
Correction = Annotated[str, typer.Argument(help="What the user said or changed; - reads it.")]


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@app.command("start")
def start(
    agent: Agent,
    project: Project = None,
    branch: Branch = None,
    external_id: External = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Start a session, and show what to know before.

    Example: [bold]reverie session start --agent deploy-bot --project shop[/]
    """
    at = desk(home, sets, project)
    given = {"project": at.project, "branch": branch, "external_id": external_id}
    body = {"agent": agent, **{name: value for name, value in given.items() if value}}
    done = at.ask("POST", "/v1/sessions/start", body=body)
    tell(done, json, f"session {short(done['session'])} in {done['scope']}", done["context"])


@app.command("say")
def say(
    session: Session,
    role: Annotated[Role, typer.Argument(help="Who says it.")],
    content: Content,
    tool: Tool = None,
    external_id: External = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Add a message to a session.

    Example: [bold]reverie session say 7c2f01aa user "We ship on Thursdays."[/]
    """
    at = desk(home, sets)
    told = {"tool": tool, "external_id": external_id}
    turn = {"role": role.value, "content": _text(content)}
    turn |= {name: value for name, value in told.items() if value}
    body = {"session": at.session(session), "turns": [turn]}
    done = at.ask("POST", "/v1/turns", body=body)
    tell(done, json, f"{done['accepted']} new, {done['duplicates']} known before")


@app.command("adjust")
def adjust(
    session: Session,
    diff: Correction,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Take back what the last turn corrected, and keep what holds instead.

    Example: [bold]reverie session adjust 7c2f01aa "no, on Fridays"[/]
    """
    at = desk(home, sets)
    where = f"/v1/sessions/{at.session(session)}/adjust"
    done = at.ask("POST", where, body={"diff": _text(diff)})
    lines = [f"{short(one['new'])} stands now: {one['said']}" for one in done["adjusted"]]
    tell(done, json, *(lines or [f"nothing was adjusted ({done['skipped'] or 'no correction'})"]))


@app.command("end")
def end(
    session: Session,
    summary: Summary = None,
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """End a session; what was said in it is digested soon.

    Example: [bold]reverie session end 7c2f01aa --summary "Moved the release"[/]
    """
    at = desk(home, sets)
    body = {"summary": summary} if summary else {}
    done = at.ask("POST", f"/v1/sessions/{at.session(session)}/end", body=body)
    dream = done["dream"]
    tell(done, json, f"ended; {dream['scope']} will be digested" if dream else "ended")


def _text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given
