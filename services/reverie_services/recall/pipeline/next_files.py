"""Predicts the files that will likely be touched next, and finds what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import build_scope, home_levels, slugify
from reverie.domain.context.next_files import PredictedFile, TouchedFiles, predict_files
from reverie.domain.context.open_files import FileRelatedMemory, normalize_paths
from reverie.domain.core.kinds import Kind
from reverie.domain.entities.file_paths import is_same_file
from reverie.store.sessions.context import ContextStore

NOT_ABOUT_FILES = frozenset({Kind.SESSION, Kind.SKILL, Kind.TASK})
"""Kinds that name a file in passing: they are no reason to warn about it."""


async def predict_next_files(
    contexts: ContextStore,
    principal: Principal,
    project: str,
    branch: str | None,
    touched: TouchedFiles,
    limit: int,
) -> list[PredictedFile]:
    """The files of a project that will likely be touched next; none if it may not be read.

    Commits of the branch count if it may be read.
    """
    if not principal.may_read(f"project/{slugify(project)}"):
        return []
    branch_scope = build_scope(home_levels(project, None, branch))
    readable_branch = branch if principal.may_read(branch_scope) else None
    commits = await contexts.load_recent_commits(principal, slugify(project), readable_branch)
    paths = TouchedFiles(
        normalize_paths(touched.edited),
        normalize_paths(touched.opened),
        normalize_paths(touched.tests),
    )
    return predict_files(commits, paths, limit)


async def find_file_memories(
    contexts: ContextStore,
    principal: Principal,
    scopes: Sequence[str],
    project: str,
    files: Sequence[PredictedFile],
) -> list[FileRelatedMemory]:
    """What is known of predicted files, in their order; `why` says which and the reason."""
    paths = [file.path for file in files]
    found = await contexts.find_file_memories(principal, scopes, slugify(project), paths)
    related: list[FileRelatedMemory] = []
    for file in files:
        related += [
            replace(item, why=f"{item.why}, which {file.reason}")
            for item in found
            if item.memory.kind not in NOT_ABOUT_FILES
            and is_same_file(item.why.removeprefix("touches "), file.path)
        ]
    return list({item.memory.id: item for item in reversed(related)}.values())[::-1]
