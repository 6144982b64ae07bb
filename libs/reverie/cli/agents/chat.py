"""`reverie chat`: a conversation with agents of the engine, with streamed answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from reverie.cli.agents.concurrent_turns import OpenTurns, TurnOrder
from reverie.cli.app.gateway_client import GatewayClient
from reverie.cli.app.options import (
    CommonOptions,
    attach_option,
    common_options,
    drop_unset,
    project_option,
)
from reverie.cli.app.output import confirm, err, out, plural, print_json, print_plain, read_text
from reverie.domain.core.errors import InvalidInput, ReverieError, Unavailable
from reverie.domain.formats.attachments import Attachments

HELP = """/agents          the agents of this conversation, and all others
/model [NAME]    let the default agent use another model, in all conversations
/plan, /unified  change what agents may do from the next message on
/attach PATH     send a file or an image with the next message
/history         what was said
/stop            stop all turns that are open
/quit            leave; the conversation stays"""
HISTORY_FILE = "chat_history"
MAX_RECONNECTS = 5
RECONNECT_SECONDS = 0.5


@dataclass
class Conversation:
    """A group, and the attachments of the next message."""

    client: GatewayClient
    group: dict[str, Any]
    as_json: bool = False
    mode: str | None = None
    attachments: Attachments = field(default_factory=Attachments)
    _speaker: str = ""

    @property
    def path(self) -> str:
        """The path of the group."""
        return f"/v1/groups/{self.group['id']}"

    def post_message(self, text: str) -> bool:
        """Posts a message and shows the answers; returns whether all turns ended well.

        Ctrl-C stops the turns and not the program, also where a call waits to be allowed.
        """
        body = drop_unset({"text": text, "mode": self.mode}) | self.attachments.encode()
        posted = self.client.request("POST", f"{self.path}/messages", body=body)
        self.attachments = Attachments()
        position, is_stopping, succeeded = int(posted["after"]), False, True
        open_turns, turns = OpenTurns(posted["turns"].values()), TurnOrder[dict[str, Any]]()
        while open_turns:
            try:
                for at, event in self._events(position):
                    # People read one turn after the other, programs read as it arrives.
                    is_last = event["type"] == "result"
                    shown = [event] if self.as_json else turns.add(event["turn"], event, is_last)
                    for one in shown:
                        open_turns.note(one["type"], one["turn"], one["data"])
                    position = at
                    for one in shown:
                        succeeded &= self._show(one)
                    if not open_turns:
                        break
            except (KeyboardInterrupt, click.Abort):
                if is_stopping:
                    raise
                is_stopping = True
                self.stop()
        return succeeded

    def stop(self) -> int:
        """Stops the turns that are open; returns their number."""
        answer = self.client.request("POST", f"{self.path}/stop", body={})
        return len(answer["turns"])

    def attach(self, place: Path) -> None:
        """Reads a file to send with the next message."""
        self.attachments.add(place.name, place.read_bytes())

    def _events(self, after: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Events after a position, across reconnects."""
        failures = 0
        while True:
            try:
                for id, data in self.client.stream_events(f"{self.path}/events", {"after": after}):
                    if data is not None:
                        failures, after = 0, int(id or after)
                        yield after, data
            except Unavailable:
                failures += 1
                if failures > MAX_RECONNECTS:
                    raise
                time.sleep(RECONNECT_SECONDS * failures)

    def _show(self, event: dict[str, Any]) -> bool:
        """Prints an event; False for a turn that failed."""
        kind, data = event["type"], event["data"]
        if self.as_json:
            print_json(event, indent=None)
        elif kind == "text_delta":
            self._name_speaker(event["agent"])
            out().print(data["text"], end="", markup=False, highlight=False)
        elif kind == "memory" and data["memories"]:
            self._note(f"{event['agent']} is given {plural(len(data['memories']), 'memory')}")
        elif kind == "tool_call":
            self._note(f"{event['agent']} calls {data['tool']} {data['arguments'][:100]}")
        elif kind == "turn_started" and data["attempt"] > 1:
            self._note(f"{event['agent']} begins this step again: its worker died")
        elif kind == "notice":
            self._note(" ".join(str(value) for value in data.values()))
        elif kind == "stop" and data["error"]:
            self._note(f"{event['agent']} stopped: {data['error']}")
        if kind == "approval":
            self._decide(event)
        if kind != "result":
            return True
        self._end_line()
        return bool(data["status"] == "done")

    def _decide(self, event: dict[str, Any]) -> None:
        data = event["data"]
        self._end_line()
        asked = f"{event['agent']} wants to call {data['tool']} {data['arguments'][:300]}"
        approved = not self.as_json and confirm(f"{asked}\nAllow it?", abort=False)
        body = {"turn": event["turn"], "call": data["call"], "approved": approved}
        try:
            self.client.request("POST", f"{self.path}/approvals", body=body)
        except ReverieError as error:
            self._note(f"not decided: {error}")

    def _name_speaker(self, agent: str) -> None:
        if agent != self._speaker and len(self.group["agents"]) > 1:
            self._end_line()
            out().print(f"{agent}: ", end="", style="bold", markup=False)
        self._speaker = agent

    def _end_line(self) -> None:
        if self._speaker:
            out().print()
        self._speaker = ""

    def _note(self, text: str) -> None:
        self._end_line()
        err().print(f"  {text}", style="dim", markup=False)


@click.command("chat")
@click.argument("text", required=False, help="One message; without it, a conversation begins.")
@click.option("--agent", "-a", "agents", multiple=True, help="An agent; may be repeated.")
@click.option("--group", "-g", "group", help="Go on with the conversation of this id.")
@click.option(
    "--everyone", is_flag=True, help="All agents answer a message that mentions none of them."
)
@click.option("--mode", type=click.Choice(["unified", "plan", "dream"]), help="What agents may do.")
@attach_option
@project_option
@common_options
def chat(
    options: CommonOptions,
    text: str | None,
    agents: tuple[str, ...],
    group: str | None,
    everyone: bool,
    mode: str | None,
    attach: tuple[Path, ...],
    project: str | None,
) -> None:
    """Talk to agents of the engine, which recall and remember in each turn.

    Ctrl-C stops the turn, and a second one the program. /help lists what else
    there is. The engine must be enabled (engine_enabled).

    Example: reverie chat --agent beck --agent rams "How do we store prices?"

    Exit codes: 0 ok, 1 a turn failed, 2 usage, 3 no gateway.
    """
    client = options.gateway(project)
    if group is not None:
        found = client.list_items("/v1/groups", {}, 1000)
        matching = [item for item in found if item["id"].replace("-", "").endswith(group)]
        matching = matching or [item for item in found if item["id"] == group]
        if len(matching) != 1:
            raise InvalidInput("group", "names no conversation, or several")
        conversation = Conversation(client, matching[0], options.json, mode)
    else:
        body = {"agents": list(agents) or ["beck"], "project": client.project}
        body["answers"] = "everyone" if everyone else "default"
        made = client.request("POST", "/v1/groups", body=drop_unset(body))
        conversation = Conversation(client, made, options.json, mode)
    for place in attach:
        conversation.attach(place)
    if text is not None:
        if not conversation.post_message(read_text(text)):
            raise click.exceptions.Exit(1)
        return
    with suppress(EOFError, KeyboardInterrupt, click.Abort):
        _converse(conversation, options.settings().home / HISTORY_FILE)


def _converse(conversation: Conversation, history: Path) -> None:
    """Reads messages and commands until the end of the input."""
    import readline

    with suppress(OSError):
        readline.read_history_file(history)
    names = ", ".join(conversation.group["agents"])
    err().print(f"{names}; conversation {conversation.group['id']}; /help", markup=False)
    try:
        while (line := _read_line()) != "/quit":
            try:
                if line.startswith("/"):
                    _run_command(conversation, *line[1:].partition(" ")[::2])
                elif line:
                    conversation.post_message(line)
            except (ReverieError, OSError) as error:
                err().print(f"reverie: {error}", markup=False)
    finally:
        with suppress(OSError):
            readline.write_history_file(history)


def _read_line() -> str:
    """The next line. Ctrl-C forgets what was typed, and at an empty prompt it leaves."""
    import readline

    try:
        return input("> ").strip()
    except KeyboardInterrupt:
        if not readline.get_line_buffer():
            raise
        out().print()
        return ""


def _run_command(conversation: Conversation, name: str, argument: str) -> None:
    client, group = conversation.client, conversation.group
    match name:
        case "agents":
            for agent in client.request("GET", "/v1/agents")["items"]:
                mark = "*" if agent["name"] in group["agents"] else " "
                print_plain(f"{mark} {agent['name']}  {', '.join(agent['spec']['models'])}")
        case "model":
            _change_model(conversation, argument.strip())
        case "plan" | "unified":
            conversation.mode = name
            print_plain(f"from the next message on: {name}")
        case "attach" if argument.strip():
            conversation.attach(Path(argument.strip()).expanduser())
            given = conversation.attachments
            kinds = [*given.files, *(kind for kind, _ in given.images)]
            print_plain(f"with the next message: {', '.join(kinds)}")
        case "history":
            newest = {"before": 0, "limit": 200}
            for item in client.request("GET", f"{conversation.path}/messages", query=newest)[
                "items"
            ]:
                print_plain(f"{item['author']}: {item['content']}")
        case "stop":
            print_plain(f"{plural(conversation.stop(), 'turn')} asked to stop")
        case _:
            print_plain(HELP)


def _change_model(conversation: Conversation, name: str) -> None:
    """Lets the default agent use the model of that name; without one, lists them."""
    found = conversation.client.request("GET", "/v1/agents")
    default = conversation.group["agents"][0]
    spec = next((one["spec"] for one in found["items"] if one["name"] == default), None)
    if spec is None or not name:
        print_plain(f"{default}: {', '.join(spec['models']) if spec else 'it was deleted'}")
        print_plain(f"models: {', '.join(found['models'])}")
        return
    conversation.client.request("PUT", f"/v1/agents/{default}", body={**spec, "models": [name]})
    print_plain(f"{default} uses {name} from now on")
