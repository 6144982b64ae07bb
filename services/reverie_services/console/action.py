"""The definition of an action: the text of its form, and the one REST call that it makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from reverie_services.console.page_request import PageRequest

Send = Callable[[PageRequest, str], Awaitable[Any]]
"""Makes the REST call of an action for an id."""


@dataclass(frozen=True)
class ActionField:
    """An input of an action's form. `kind`: of the element; `choices`: those of a select."""

    name: str
    label: str
    kind: str = "text"
    choices: tuple[str, ...] = ()
    required: bool = False
    value: str = ""


@dataclass(frozen=True)
class Action:
    """An action of a form. `effect` is shown before it, `done` after it.

    `subject`: whether ids are of memories, which the form then shows. `undone_by`: the action that
    takes this one back. `result_template`: a page that shows the answer once.
    """

    name: str
    title: str
    effect: str
    done: str
    send: Send
    fields: tuple[ActionField, ...] = ()
    subject: str = "memory"
    is_final: bool = False
    undone_by: str = ""
    result_template: str = ""


def form_call(method: str, path: str, *names: str) -> Send:
    """A call with the form's fields of these names; `{id}` in the path is the id."""

    async def send(request: PageRequest, item: str) -> Any:
        body = {name: value for name in names if (value := request.form.get(name, "").strip())}
        return await request.send(method, path.format(id=quote(item, safe="")), body or None)

    return send
