"""Many memories at once: `reverie remember --lines`."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from reverie.cli.asking import Desk
from reverie.cli.common import FAILED
from reverie.cli.shown import short, tell, warn
from reverie.domain.errors import Invalid

AT_ONCE = 500
"""As many as one call takes."""
_PLACE = re.compile(r"^items\.\d+\.")
"""Where in the call a field was: a person has the line."""


def remember_lines(at: Desk, shared: Mapping[str, Any], json: bool) -> None:
    """Stores each line of the content, with what was said of all of them.

    Ends with `FAILED` where one was refused. Raises `Invalid` naming a line that is no object.
    """
    items = dict(_items(str(shared["content"]), {**shared, "content": None}))
    sent, done = list(items.values()), list[dict[str, Any]]()
    for first in range(0, len(sent), AT_ONCE):
        body = {"items": sent[first : first + AT_ONCE]}
        done += at.ask("POST", "/v1/remember/batch", body=body)["items"]
    refused = [(no, one) for no, one in zip(items, done, strict=True) if "code" in one]
    if not json:
        warn([f"{no}: {one['code']}: {_PLACE.sub('', one['detail'])}" for no, one in refused])
    told = [f"{one['status']} {short(one['id'])}" for one in done if "code" not in one]
    tell(done, json, *told)
    if refused:
        raise typer.Exit(FAILED)


def _items(text: str, shared: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """What each line holds, by the number of the line."""
    given = {name: value for name, value in shared.items() if value is not None}
    for no, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield no, {**given, "content": line.strip()}
            continue
        try:
            yield no, {**given, **jsonlib.loads(line)}
        except jsonlib.JSONDecodeError as error:
            reason = f"is no JSON: {error.msg} (column {error.colno})"
            raise Invalid(f"line {no}", reason) from None
