"""Route that predicts which files will be touched next, and gives what is known of them."""

from __future__ import annotations

from reverie.contracts.context import (
    PredictedFileBody,
    PredictedMemory,
    PredictRequest,
    PredictResponse,
)
from reverie.domain.context.next_files import TouchedFiles
from reverie.domain.context.open_files import FileRelatedMemory
from reverie.domain.core.errors import InvalidInput
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.next_files import find_file_memories, predict_next_files
from reverie_services.recall.pipeline.visible_scopes import (
    find_session,
    or_none_if_unavailable,
    resolve_project_scopes,
    resolve_scopes,
)

routes = RouteTable[RecallDependencies]()


@routes.add("POST /v1/predict", read_only=True)
async def predict(deps: RecallDependencies, call: Call[PredictRequest, None]) -> PredictResponse:
    """Predict the files that will be touched next, and get what is known of them."""
    principal, body, timeout = call.principal, call.body, deps.pipeline.settings.arm_timeout
    if body.project is None and body.session is None:
        raise InvalidInput("project", "give a project or a session")
    if body.project is not None and body.session is not None:
        raise InvalidInput("project", "give a project or a session, not both")
    session, missing = await find_session(deps.sessions, principal, body.session, timeout)
    project = body.project or (session.project if session else None)
    if project is None:
        return PredictResponse(files=[], memories=[], degraded=missing)
    scopes = (
        resolve_scopes(principal, None, session)
        if session
        else resolve_project_scopes(principal, project)
    )
    branch = body.branch or (session.branch if session else None)
    touched = TouchedFiles(body.edited, body.files, body.tests)
    files = await or_none_if_unavailable(
        predict_next_files(deps.contexts, principal, project, branch, touched, body.limit), timeout
    )
    related = await or_none_if_unavailable(
        find_file_memories(deps.contexts, principal, scopes, project, files or ()), timeout
    )
    has_all = files is not None and related is not None
    return PredictResponse(
        files=[PredictedFileBody(**vars(file)) for file in files or ()],
        memories=[_build_memory(item) for item in related or ()],
        degraded=[] if has_all else ["store"],
    )


def _build_memory(item: FileRelatedMemory) -> PredictedMemory:
    memory = item.memory
    return PredictedMemory(
        id=memory.id,
        kind=memory.kind.value,
        scope=memory.scope,
        key=memory.key,
        content=memory.content,
        reason=item.why,
        staleness=memory.staleness,
        stale_reason=memory.stale_reason,
    )
