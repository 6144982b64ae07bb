"""`Reverie`, the synchronous client, and `Session`, a session as a context manager.

Each call is the asynchronous one, run to its end on an event loop in a thread of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from reverie.client.async_client import AsyncReverie, AsyncSession
from reverie.client.portal import BlockingPortal

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from reverie.contracts.context import PreflowResponse
    from reverie.contracts.sessions import EndSessionResponse

P = ParamSpec("P")
T = TypeVar("T")
Self = TypeVar("Self", bound="_BlockingClient")


class _BlockingClient:
    """An asynchronous object, and the portal that runs its calls."""

    def __init__(self, inner: Any, portal: BlockingPortal) -> None:
        self._inner = inner
        self._portal = portal

    def __enter__(self: Self) -> Self:
        self._portal.run(self._inner.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._portal.run(self._inner.__aexit__(*error))


@overload
def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_BlockingClient, P], T]: ...
@overload
def blocking(
    method: Callable[Concatenate[Any, P], AsyncIterator[T]],
) -> Callable[Concatenate[_BlockingClient, P], Iterator[T]]: ...
def blocking(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method for synchronous code: same parameters, same result, same docstring."""

    @wraps(method)
    def call(client: _BlockingClient, *args: Any, **kwargs: Any) -> Any:
        result = method(client._inner, *args, **kwargs)
        if isinstance(result, AsyncIterator):
            return client._portal.iterate(result)
        return client._portal.run(result)

    return call


class Session(_BlockingClient):
    """A session; `Reverie.session` makes it. As `AsyncSession`, without `await`."""

    _inner: AsyncSession

    append_turn = blocking(AsyncSession.append_turn)

    def preflow(self, query: str, **fields: Any) -> PreflowResponse:
        """Returns the memories for the next turn, without those given before."""
        return self._portal.run(self._inner.preflow(query, **fields))

    @property
    def id(self) -> UUID:
        """The session's id."""
        return self._inner.id

    @property
    def scope(self) -> str:
        """The scope of its memories."""
        return self._inner.scope

    @property
    def context(self) -> str:
        """Returns the context for a start, as fenced Markdown."""
        return self._inner.context

    @property
    def end_result(self) -> EndSessionResponse | None:
        """The gateway's answer to the end of the session."""
        return self._inner.end_result

    @property
    def summary(self) -> str | None:
        """The summary that is stored when the session ends."""
        return self._inner.summary

    @summary.setter
    def summary(self, text: str | None) -> None:
        self._inner.summary = text


class Reverie(_BlockingClient):
    """The client for synchronous code; the parameters and errors are those of `AsyncReverie`.

    with Reverie("http://127.0.0.1:3456", key) as reverie:
        reverie.remember("Deploys go through staging first.", kind="convention")
        prompt = reverie.recall_as_text("how do we deploy?")
    """

    _inner: AsyncReverie

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        max_attempts: int = 4,
        agent: str = "reverie-client",
        user: str = "",
        ca: Path | str | None = None,
    ) -> None:
        inner = AsyncReverie(
            url,
            key,
            timeout=timeout,
            max_attempts=max_attempts,
            agent=agent,
            user=user,
            ca=ca,
        )
        super().__init__(inner, BlockingPortal())

    @property
    def asynchronous(self) -> AsyncReverie:
        """The client behind this one; what it does runs in `portal`."""
        return self._inner

    @property
    def portal(self) -> BlockingPortal:
        """Runs coroutines over `asynchronous`."""
        return self._portal

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and ends the thread; a second time does nothing."""
        if not self._portal.is_closed:
            self._portal.run(self._inner.close())
            self._portal.close()

    def session(
        self,
        agent: str,
        *,
        project: str | None = None,
        user: str | None = None,
        branch: str | None = None,
        group: str | None = None,
        external_id: str | None = None,
    ) -> Session:
        """Opens a session for the block and ends it afterwards, even if the block fails."""
        session = self._inner.session(
            agent,
            project=project,
            user=user,
            branch=branch,
            group=group,
            external_id=external_id,
        )
        return Session(session, self._portal)

    call = blocking(AsyncReverie.call)

    remember = blocking(AsyncReverie.remember)
    remember_batch = blocking(AsyncReverie.remember_batch)
    recall = blocking(AsyncReverie.recall)
    recall_as_text = blocking(AsyncReverie.recall_as_text)
    preflow = blocking(AsyncReverie.preflow)
    predict = blocking(AsyncReverie.predict)
    get_context = blocking(AsyncReverie.get_context)
    get_memory = blocking(AsyncReverie.get_memory)
    list_memories = blocking(AsyncReverie.list_memories)
    edit_memory = blocking(AsyncReverie.edit_memory)
    archive = blocking(AsyncReverie.archive)
    forget = blocking(AsyncReverie.forget)
    forget_batch = blocking(AsyncReverie.forget_batch)
    erase = blocking(AsyncReverie.erase)
    rollback = blocking(AsyncReverie.rollback)
    feedback = blocking(AsyncReverie.feedback)
    confirm = blocking(AsyncReverie.confirm)
    restore = blocking(AsyncReverie.restore)
    pin = blocking(AsyncReverie.pin)
    unpin = blocking(AsyncReverie.unpin)
    list_versions = blocking(AsyncReverie.list_versions)
    get_provenance = blocking(AsyncReverie.get_provenance)
    list_skills = blocking(AsyncReverie.list_skills)
    replay_skill = blocking(AsyncReverie.replay_skill)

    link = blocking(AsyncReverie.link)
    unlink = blocking(AsyncReverie.unlink)
    get_subgraph = blocking(AsyncReverie.get_subgraph)
    list_impact = blocking(AsyncReverie.list_impact)
    get_graph_stats = blocking(AsyncReverie.get_graph_stats)

    start_session = blocking(AsyncReverie.start_session)
    end_session = blocking(AsyncReverie.end_session)
    list_sessions = blocking(AsyncReverie.list_sessions)
    append_turns = blocking(AsyncReverie.append_turns)
    list_turns = blocking(AsyncReverie.list_turns)
    replay_session = blocking(AsyncReverie.replay_session)
    correct_memories = blocking(AsyncReverie.correct_memories)
    list_tasks = blocking(AsyncReverie.list_tasks)
    update_task = blocking(AsyncReverie.update_task)
    claim_task = blocking(AsyncReverie.claim_task)
    release_task = blocking(AsyncReverie.release_task)
    add_fact = blocking(AsyncReverie.add_fact)
    list_facts = blocking(AsyncReverie.list_facts)
    start_dream = blocking(AsyncReverie.start_dream)
    list_undigested = blocking(AsyncReverie.list_undigested)
    list_dreams = blocking(AsyncReverie.list_dreams)
    get_dream = blocking(AsyncReverie.get_dream)
    list_summaries = blocking(AsyncReverie.list_summaries)
    list_summary_versions = blocking(AsyncReverie.list_summary_versions)
    run_maintenance = blocking(AsyncReverie.run_maintenance)
    announce_git_change = blocking(AsyncReverie.announce_git_change)
    list_stale = blocking(AsyncReverie.list_stale)
    list_reviews = blocking(AsyncReverie.list_reviews)
    accept_review = blocking(AsyncReverie.accept_review)
    reject_review = blocking(AsyncReverie.reject_review)
    list_unanchored = blocking(AsyncReverie.list_unanchored)
    set_anchors = blocking(AsyncReverie.set_anchors)
    list_traces = blocking(AsyncReverie.list_traces)
    get_trace = blocking(AsyncReverie.get_trace)
    confirm_delivery = blocking(AsyncReverie.confirm_delivery)

    get_readiness = blocking(AsyncReverie.get_readiness)
    list_keys = blocking(AsyncReverie.list_keys)
    list_audit_entries = blocking(AsyncReverie.list_audit_entries)
    list_dead_letters = blocking(AsyncReverie.list_dead_letters)
    get_dead_letter = blocking(AsyncReverie.get_dead_letter)
    replay_dead_letter = blocking(AsyncReverie.replay_dead_letter)
    create_key = blocking(AsyncReverie.create_key)
    get_key = blocking(AsyncReverie.get_key)
    update_key = blocking(AsyncReverie.update_key)
    rotate_key = blocking(AsyncReverie.rotate_key)
    revoke_key = blocking(AsyncReverie.revoke_key)
    list_projects = blocking(AsyncReverie.list_projects)
    delete_project = blocking(AsyncReverie.delete_project)
    list_scopes = blocking(AsyncReverie.list_scopes)
    delete_scope = blocking(AsyncReverie.delete_scope)
    delete_tenant = blocking(AsyncReverie.delete_tenant)
    get_tenant_settings = blocking(AsyncReverie.get_tenant_settings)
    update_tenant_settings = blocking(AsyncReverie.update_tenant_settings)
    get_project_settings = blocking(AsyncReverie.get_project_settings)
    update_project_settings = blocking(AsyncReverie.update_project_settings)
    recall_projects = blocking(AsyncReverie.recall_projects)
    list_project_links = blocking(AsyncReverie.list_project_links)
    link_projects = blocking(AsyncReverie.link_projects)
    unlink_projects = blocking(AsyncReverie.unlink_projects)
    attach_picture = blocking(AsyncReverie.attach_picture)
    list_pictures = blocking(AsyncReverie.list_pictures)
    get_picture = blocking(AsyncReverie.get_picture)
    remove_picture = blocking(AsyncReverie.remove_picture)
    list_models = blocking(AsyncReverie.list_models)
    put_documents = blocking(AsyncReverie.put_documents)
    list_documents = blocking(AsyncReverie.list_documents)
    list_collections = blocking(AsyncReverie.list_collections)
    delete_documents = blocking(AsyncReverie.delete_documents)
    list_vault = blocking(AsyncReverie.list_vault)
    vault_get = blocking(AsyncReverie.vault_get)
    vault_put = blocking(AsyncReverie.vault_put)
    vault_delete = blocking(AsyncReverie.vault_delete)
    list_vault_suggestions = blocking(AsyncReverie.list_vault_suggestions)
    get_redaction_status = blocking(AsyncReverie.get_redaction_status)
    list_webhooks = blocking(AsyncReverie.list_webhooks)
    set_webhook = blocking(AsyncReverie.set_webhook)
    delete_webhook = blocking(AsyncReverie.delete_webhook)

    stream_events = blocking(AsyncReverie.stream_events)
    export_memories = blocking(AsyncReverie.export_memories)
    import_memories = blocking(AsyncReverie.import_memories)
    list_agents = blocking(AsyncReverie.list_agents)
    put_agent = blocking(AsyncReverie.put_agent)
    delete_agent = blocking(AsyncReverie.delete_agent)
    get_agent_spend = blocking(AsyncReverie.get_agent_spend)
    list_groups = blocking(AsyncReverie.list_groups)
    create_group = blocking(AsyncReverie.create_group)
    post_message = blocking(AsyncReverie.post_message)
    load_conversation = blocking(AsyncReverie.load_conversation)
    watch_group = blocking(AsyncReverie.watch_group)
    get_image = blocking(AsyncReverie.get_image)
    approve_call = blocking(AsyncReverie.approve_call)
    stop_turns = blocking(AsyncReverie.stop_turns)
