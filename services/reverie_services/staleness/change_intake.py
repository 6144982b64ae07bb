"""Checks, redacts and stores a git change once, whichever way it came."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reverie.contracts.events import OutgoingEvent
from reverie.contracts.git import GitChange
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import InvalidInput, NotFound
from reverie.domain.redaction.redactor import Redactor
from reverie.runtime.http.validation import parse_value
from reverie.runtime.observability.tracing import inject_headers
from reverie_services.staleness.dependencies import StalenessDependencies


@dataclass(eq=False)
class UnknownProject(NotFound):
    """no project {id} that this key may read: it is known once it holds a memory or a session, or a
    key or a webhook is made for it"""


async def store_change(
    deps: StalenessDependencies, principal: Principal, change: GitChange
) -> tuple[UUID, bool, list[OutgoingEvent]]:
    """Stores a change once. Answers its id, whether it was known, and the events to publish.

    Raises `Forbidden`, `NotFound` for a project that nobody knows, `InvalidInput` naming the field.
    """
    project = slugify(change.project)
    principal.check_git(f"project/{project}")
    _check_consistency(change)
    if not await deps.webhooks.is_project_known(principal.tenant, project):
        raise UnknownProject("project", project)
    redactor = await deps.load_redactor(principal.tenant)
    redacted = await asyncio.to_thread(_redact_change, change, redactor)
    stored, is_duplicate, event = await deps.changes.add(principal, redacted, inject_headers())
    return stored, is_duplicate, [] if is_duplicate else [event]


def _check_consistency(change: GitChange) -> None:
    """Raises `InvalidInput` if the parts of a change are inconsistent."""
    if change.deleted != (change.after is None):
        raise InvalidInput("after", "is missing (or zeros) where, and only where, deleted is true")
    if change.files and change.deleted:
        raise InvalidInput("files", "a branch that was deleted changes none")
    if change.files and not change.commits:
        raise InvalidInput("commits", "name those that changed the files")
    for index, file in enumerate(change.files):
        if file.status in {"renamed", "copied"} and not file.old_path:
            raise InvalidInput(
                f"files.{index}.old_path", f"is required where a file was {file.status}"
            )


def _redact_change(change: GitChange, redactor: Redactor) -> GitChange:
    """Removes secrets from every text of the change; repeated texts are examined once."""
    redacted_by_text: dict[str, str] = {}

    def cleaned(value: Any) -> Any:
        if isinstance(value, str):
            if value not in redacted_by_text:
                redacted_by_text[value] = redactor.redact(value).text
            return redacted_by_text[value]
        if isinstance(value, dict):
            return {name: cleaned(inner) for name, inner in value.items()}
        return [cleaned(item) for item in value] if isinstance(value, list) else value

    redacted = cleaned(change.model_dump(mode="json", exclude_defaults=True))
    if all(text == redacted_text for text, redacted_text in redacted_by_text.items()):
        return change
    return parse_value(GitChange, redacted)
