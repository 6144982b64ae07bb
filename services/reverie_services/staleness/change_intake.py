"""Checks, redacts and stores a git change once, whichever way it came."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from reverie.contracts.base import RequestBody
from reverie.contracts.events import OutgoingEvent
from reverie.contracts.memories.git import CommitBody, GitChange
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import InvalidInput
from reverie.domain.redaction.redactor import Redactor
from reverie.runtime.http.validation import parse_value
from reverie.runtime.observability.tracing import trace_headers
from reverie_services.staleness.commit_memories import (
    MAX_REMEMBERED_COMMITS,
    RememberedCommits,
    remember_commits,
)
from reverie_services.staleness.dependencies import StalenessDependencies

BodyT = TypeVar("BodyT", bound=RequestBody)


@dataclass(frozen=True)
class StoredChange:
    """The stored event, whether it was known, hints for the caller, and events to publish."""

    id: UUID
    is_duplicate: bool
    hints: list[str]
    events: list[OutgoingEvent]


async def store_change(
    deps: StalenessDependencies,
    principal: Principal,
    change: GitChange,
    merge_request: CommitBody | None = None,
) -> StoredChange:
    """Stores a change once. A project that is not known yet is created by its first change.

    `merge_request`: the title and text of the merged request that made the change.

    Merges and deletions of branches count only where the key may write the branch. Raises
    `Forbidden`, `InvalidInput` naming the field.
    """
    project = slugify(change.project)
    principal.check_git(f"project/{project}")
    _check_consistency(change)
    change, hints = _drop_foreign_branches(principal, project, change)
    if not await deps.webhooks.project_exists(principal.tenant, project):
        hints.append(f"the project {project} was not known before: is its name right?")
    redacted, remembered = await _redact_and_remember_commits(
        deps, principal, change, merge_request
    )
    if remembered.omitted:
        hints.append(
            f"the messages of {remembered.omitted} commits are not remembered: of one change only"
            f" the last {MAX_REMEMBERED_COMMITS} are; `reverie git backfill` sends them in parts"
        )
    stored, is_duplicate, event = await deps.changes.add(principal, redacted, trace_headers())
    events = remembered.events if is_duplicate else [*remembered.events, event]
    return StoredChange(stored, is_duplicate, hints, events)


async def remember_merge_request(
    deps: StalenessDependencies, principal: Principal, change: GitChange, merge_request: CommitBody
) -> list[OutgoingEvent]:
    """Remembers what a merged request decides; its change is not stored."""
    principal.check_git(f"project/{slugify(change.project)}")
    return (await _redact_and_remember_commits(deps, principal, change, merge_request))[1].events


async def _redact_and_remember_commits(
    deps: StalenessDependencies,
    principal: Principal,
    change: GitChange,
    merge_request: CommitBody | None,
) -> tuple[GitChange, RememberedCommits]:
    """Redacts a change and remembers its commits.

    The memories come before the change: what is announced again after a crash is remembered once.
    """
    tenant_redactor = await deps.load_redactor(principal.tenant)
    redactor = tenant_redactor.within(f"project/{slugify(change.project)}")
    redacted = await asyncio.to_thread(_redact_texts, change, redactor)
    if merge_request is not None:
        merge_request = await asyncio.to_thread(_redact_texts, merge_request, redactor)
    return redacted, await remember_commits(
        deps.memories, deps.changes, principal, redacted, merge_request
    )


def _drop_foreign_branches(
    principal: Principal, project: str, change: GitChange
) -> tuple[GitChange, list[str]]:
    """The change without merged branches whose memories the key may not write, and a hint for each.

    Raises `Forbidden` if such a branch was deleted: the change would say nothing else.
    """
    branches_scope = f"project/{project}/feature"
    if change.deleted:
        principal.check_git(f"{branches_scope}/{slugify(change.branch)}")
    own = [
        name
        for name in change.merged
        if principal.may_announce(f"{branches_scope}/{slugify(name)}")
    ]
    hints = [
        f"the memories of the branch {name} stay where they are:"
        f" this key may not write {branches_scope}/{slugify(name)}"
        for name in change.merged
        if name not in own
    ]
    return change.model_copy(update={"merged": own}), hints


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


def _redact_texts(body: BodyT, redactor: Redactor) -> BodyT:
    """Removes secrets from every text of a body; repeated texts are examined once."""
    redacted_by_text: dict[str, str] = {}

    def cleaned(value: Any) -> Any:
        if isinstance(value, str):
            if value not in redacted_by_text:
                redacted_by_text[value] = redactor.redact(value).text
            return redacted_by_text[value]
        if isinstance(value, dict):
            return {name: cleaned(inner) for name, inner in value.items()}
        return [cleaned(item) for item in value] if isinstance(value, list) else value

    redacted = cleaned(body.model_dump(mode="json", exclude_defaults=True))
    if all(text == redacted_text for text, redacted_text in redacted_by_text.items()):
        return body
    return parse_value(type(body), redacted)
