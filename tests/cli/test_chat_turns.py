"""How long `reverie chat` waits for the turns of a message, whatever the order of their events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import click
import pytest

from reverie.cli.agents import chat
from reverie.domain.core.errors import Unavailable

GROUP = {"id": "g", "agents": ["beck", "rams"]}


def _event(turn: str, kind: str, /, **data: Any) -> dict[str, Any]:
    return {"type": kind, "turn": turn, "agent": turn, "data": data}


DONE: dict[str, Any] = {"status": "done", "content": "ok"}
HANDED = _event("beck", "handed_on", to="rams", turn="rams")


@dataclass
class _Gateway:
    """Events of one turn of beck; `breaks` where the connection breaks after so many of them."""

    events: list[dict[str, Any]]
    breaks: list[int] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        self.calls.append(path.rpartition("/")[2])
        return {"after": 0, "turns": {"beck": "beck"}}

    def stream_events(self, path: str, query: Any) -> Iterator[tuple[str, Any]]:
        end = self.breaks.pop(0) if self.breaks else len(self.events)
        for place in range(query["after"], end):
            yield str(place + 1), self.events[place]
        if end < len(self.events):
            raise Unavailable("the gateway", "the stream broke off")
        raise AssertionError("it waits for a turn that is over")


def _say(gateway: Any, as_json: bool) -> bool:
    return chat.Conversation(gateway, dict(GROUP), as_json).post_message("Hello.")


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    "events",
    [
        # Another worker's turn may be over before anybody is told of it.
        [_event("rams", "result", **DONE), HANDED, _event("beck", "result", **DONE)],
        # A worker that goes on for a dead one tells again of the turn that it handed on.
        [HANDED, _event("rams", "result", **DONE), HANDED, _event("beck", "result", **DONE)],
    ],
)
def test_a_turn_that_is_over_is_not_waited_for(events: list[dict[str, Any]], as_json: bool) -> None:
    assert _say(_Gateway(events), as_json)


def test_a_broken_stream_is_watched_on_where_it_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "RECONNECT_SECONDS", 0.0)
    events = [HANDED, _event("beck", "result", **DONE), _event("rams", "result", **DONE)]
    assert _say(_Gateway(events, [1, 1, 2, 2]), as_json=True)


def test_an_interrupted_question_stops_the_turn_and_not_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: Any, **__: Any) -> bool:
        raise click.Abort

    monkeypatch.setattr(chat, "confirm", interrupt)
    asked = _event("beck", "approval", call="c", tool="write_file", arguments="{}")
    gateway = _Gateway([asked, _event("beck", "result", status="stopped", content="")])
    assert not _say(gateway, as_json=False)
    assert gateway.calls == ["messages", "stop"]
