"""`reverie groups`: conversations of agents, for scripts; `reverie chat` is for people."""

from __future__ import annotations

import base64
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from reverie.cli.app.errors import EXIT_CODES_HELP
from reverie.cli.app.gateway_client import quote_segment
from reverie.cli.app.options import (
    CommonOptions,
    attach_option,
    common_options,
    drop_unset,
    limit_option,
)
from reverie.cli.app.output import (
    Columns,
    age_cell,
    plural,
    print_json,
    print_plain,
    read_text,
    text_cell,
)
from reverie.domain.formats.attachments import Attachments

app = click.Group(
    "groups",
    help="Talk with groups of agents of the engine, one command at a time.\n\n"
    "Example: reverie groups list",
    epilog=EXIT_CODES_HELP,
)
_group_argument = click.argument("group", help="The id of the group.")


@app.command("list")
@limit_option(50)
@common_options
def list_groups(options: CommonOptions, limit: int) -> None:
    """List groups, newest first.

    Example: reverie groups list
    """
    options.print_table(options.gateway().list_items("/v1/groups", {}, limit), _COLUMNS)


@app.command("create")
@click.argument("agents", nargs=-1, required=True, help="The agents; the first is the default one.")
@click.option("--name", help="What to call it.")
@click.option("--everyone", is_flag=True, help="All answer a message that mentions none of them.")
@click.option("--project", "-p", help="The project.")
@common_options
def create_group(
    options: CommonOptions,
    agents: tuple[str, ...],
    name: str | None,
    everyone: bool,
    project: str | None,
) -> None:
    """Create a group of agents: one conversation, one session.

    Example: reverie groups create beck rams
    """
    body = {"agents": list(agents), "name": name, "project": project}
    body["answers"] = "everyone" if everyone else None
    answer = options.gateway().request("POST", "/v1/groups", body=drop_unset(body))
    options.print_result(answer, f"group {answer['id']}")


@app.command("say")
@_group_argument
@click.argument("text", help="The message; - reads standard input.")
@click.option("--mode", type=click.Choice(["unified", "plan", "dream"]), help="What they may do.")
@attach_option
@common_options
def post_message(
    options: CommonOptions, group: str, text: str, mode: str | None, attach: tuple[Path, ...]
) -> None:
    """Post a message to a group without waiting for the answers.

    Example: reverie groups say GROUP "How do we store prices?" --attach prices.py
    """
    attachments = Attachments()
    for path in attach:
        attachments.add(path.name, path.read_bytes())
    body = drop_unset({"text": read_text(text), "mode": mode}) | attachments.encode()
    answer = options.gateway().request("POST", f"{_path(group)}/messages", body=body)
    options.print_result(answer, f"{plural(len(answer['turns']), 'turn')} began")


@app.command("messages")
@_group_argument
@click.option("--after", type=click.IntRange(min=0), default=0, help="Only after this number.")
@common_options
def list_messages(options: CommonOptions, group: str, after: int) -> None:
    """List what was said in a group, and its newest turns.

    Example: reverie groups messages GROUP
    """
    answer = options.gateway().request("GET", f"{_path(group)}/messages", query={"after": after})
    lines = []
    for item in answer["items"]:
        lines.append(f"{item['author']}: {item['content']}")
        lines += [f"  image {image}" for image in item["images"]]
    waiting = [
        f"turn {turn['id']} of {turn['agent']} waits to call {entry['tool']}: {call}"
        for turn in answer["turns"]
        if turn["status"] == "waiting"
        for call, entry in turn["waits"].items()
        if entry.get("approved") is None
    ]
    options.print_result(answer, *lines, *waiting)


@app.command("image")
@_group_argument
@click.argument("image", help="The id of an image of a message.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="The file to write.")
@common_options
def get_image(options: CommonOptions, group: str, image: str, out: Path | None) -> None:
    """Get an image of a message.

    Example: reverie groups image GROUP IMAGE --out login.png
    """
    answer = options.gateway().request("GET", f"{_path(group)}/images/{quote_segment(image)}")
    if out is not None:
        out.write_bytes(base64.b64decode(answer["data"]))
    summary = f"{answer['media_type']}, {answer['size']} bytes"
    options.print_result(answer, f"{summary}, written to {out}" if out else summary)


@app.command("watch")
@_group_argument
@click.option("--after", type=click.IntRange(min=0), help="Go on after this position.")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Stop after so many events.")
@common_options
def watch_group(options: CommonOptions, group: str, after: int | None, limit: int | None) -> None:
    """Print what happens in the turns of a group, until Ctrl-C.

    Example: reverie groups watch GROUP --after 0
    """
    count = 0
    with suppress(KeyboardInterrupt):
        events = options.gateway().stream_events(f"{_path(group)}/events", {"after": after})
        for position, event in events:
            if event is None:
                continue
            if options.json:
                print_json(event | {"position": int(position or 0)}, indent=None)
            else:
                about = " ".join(str(event["data"].get(name) or "") for name in _SHOWN)
                line = f"{position}  {event['agent']}  {event['type']}  {' '.join(about.split())}"
                print_plain(line[:_LINE].rstrip())
            count += 1
            if count == limit:
                return


@app.command("approve")
@_group_argument
@click.argument("turn", help="The id of the turn.")
@click.argument("call", help="The id of the call.")
@click.option("--deny", is_flag=True, help="Deny it.")
@click.option("--reason", default="", help="Why, for the agent to read.")
@common_options
def approve_call(options: CommonOptions, group: str, deny: bool, **fields: Any) -> None:
    """Approve or deny a tool call that waits.

    Example: reverie groups approve GROUP TURN CALL
    """
    body = {**fields, "approved": not deny}
    answer = options.gateway().request("POST", f"{_path(group)}/approvals", body=body)
    options.print_result(answer, "denied" if deny else "approved")


@app.command("stop")
@_group_argument
@click.option("--turn", help="Only this turn.")
@common_options
def stop_turns(options: CommonOptions, group: str, turn: str | None) -> None:
    """Stop a turn of a group, or all that are open.

    Example: reverie groups stop GROUP
    """
    body = drop_unset({"turn": turn})
    answer = options.gateway().request("POST", f"{_path(group)}/stop", body=body)
    options.print_result(answer, f"{plural(len(answer['turns']), 'turn')} asked to stop")


_SHOWN = ("text", "tool", "call", "arguments", "content", "to", "what", "reason", "error", "status")
"""The fields of an event that a line of `watch` shows."""
_LINE = 200


def _path(group: str) -> str:
    return f"/v1/groups/{quote_segment(group)}"


_COLUMNS: Columns = {
    "id": "id",
    "name": text_cell("name", 40),
    "agents": lambda group: ", ".join(group["agents"]),
    "created": age_cell("created_at"),
}
