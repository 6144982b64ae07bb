"""A change comes in: checked, cleaned of secrets, stored once; whichever door it came by."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reverie.contracts.events import Outgoing
from reverie.contracts.git import GitChange
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, NotFound
from reverie.domain.known_secrets import knowing
from reverie.domain.redaction import redact
from reverie.domain.scopes import slug
from reverie.runtime.body import parse_value
from reverie.runtime.telemetry import inject_headers
from reverie.staleness.parts import Parts


@dataclass(eq=False)
class UnknownProject(NotFound):
    """no project {id} that this key may read: it is known once it holds a memory or a session, or a
    key or a webhook is made for it"""


async def take(
    parts: Parts, who: Principal, change: GitChange
) -> tuple[UUID, bool, list[Outgoing]]:
    """Stores a change once. Answers its id, whether it was known, and the events to publish.

    Raises `Forbidden`, `NotFound` for a project that nobody knows, `Invalid` naming the field.
    """
    project = slug(change.project)
    who.check_git(f"project/{project}")
    _check(change)
    if not await parts.hooks.knows(who.tenant, project):
        raise UnknownProject("project", project)
    with knowing(await parts.known_of(who.tenant), lambda _: False):
        clean = await asyncio.to_thread(_clean, change)
    stored, known, event = await parts.changes.add(who, clean, inject_headers())
    return stored, known, [] if known else [event]


def _check(change: GitChange) -> None:
    """Raises `Invalid` where the parts of a change do not fit together."""
    if change.deleted != (change.after is None):
        raise Invalid("after", "is missing (or zeros) where, and only where, deleted is true")
    if change.files and change.deleted:
        raise Invalid("files", "a branch that was deleted changes none")
    if change.files and not change.commits:
        raise Invalid("commits", "name those that changed the files")
    for place, file in enumerate(change.files):
        if file.status in {"renamed", "copied"} and not file.old_path:
            raise Invalid(f"files.{place}.old_path", f"is required where a file was {file.status}")


def _clean(change: GitChange) -> GitChange:
    """The change with no secret in any text. Its texts repeat a lot, so each is looked at once."""
    seen: dict[str, str] = {}

    def cleaned(value: Any) -> Any:
        if isinstance(value, str):
            if value not in seen:
                seen[value] = redact(value).text
            return seen[value]
        if isinstance(value, dict):
            return {name: cleaned(inner) for name, inner in value.items()}
        return [cleaned(one) for one in value] if isinstance(value, list) else value

    clean = cleaned(change.model_dump(mode="json", exclude_defaults=True))
    if all(text == told for text, told in seen.items()):
        return change
    return parse_value(GitChange, clean)
