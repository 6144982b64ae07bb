"""Many memories at once: `reverie remember --lines`."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from reverie.cli.asking import Desk
from reverie.cli.common import FAILED
from reverie.cli.shown import short, tell, warn
from reverie.domain.errors import Invalid

AT_ONCE = 500
"""As many as one call takes."""


def remember_lines(at: Desk, shared: Mapping[str, Any], json: bool) -> None:
    """Stores each line of the content, with what was said of all of them.

    Ends with `FAILED` where one was refused. Raises `Invalid` naming a line that is no object.
    """
    items = list(_items(str(shared["content"]), {**shared, "content": None}))
    done: list[dict[str, Any]] = []
    for first in range(0, len(items), AT_ONCE):
        body = {"items": items[first : first + AT_ONCE]}
        done += at.ask("POST", "/v1/remember/batch", body=body)["items"]
    refused = [(no, one) for no, one in enumerate(done, 1) if "code" in one]
    if not json:
        warn([f"{no}: {one['code']}: {one['detail']}" for no, one in refused])
    told = [f"{one['status']} {short(one['id'])}" for one in done if "code" not in one]
    tell(done, json, *told)
    if refused:
        raise typer.Exit(FAILED)


def _items(text: str, shared: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    given = {name: value for name, value in shared.items() if value is not None}
    for no, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield {**given, "content": line.strip()}
            continue
        try:
            yield {**given, **jsonlib.loads(line)}
        except ValueError as error:
            raise Invalid(f"line {no}", f"is no JSON: {error}") from None
