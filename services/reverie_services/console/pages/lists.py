"""Pages that are lists: each is a REST list, its filters and its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from reverie_services.console.page_request import PageRequest, PageValues
from reverie_services.console.pages.registry import PAGES

PAGE_SIZE = 50
WORK, ADMIN = "Work", "Administration"


@dataclass(frozen=True)
class Column:
    """A column: a field of each item, and how it is shown.

    `kind`: text, time, number, list, pairs, sentences or flag. `link`: the page that the
    field leads to, with the fields of the item in braces.
    """

    label: str
    field: str
    kind: str = "text"
    link: str = ""


@dataclass(frozen=True)
class FilterField:
    """A filter of a list: a field of its query. `choices`: the values that it takes."""

    name: str
    label: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowAction:
    """An action on an item. `id`: the item's id, with its fields in braces."""

    name: str
    id: str = "{id}"


@dataclass(frozen=True)
class ListPage:
    """A list: its path here, its path in REST, its columns, filters and actions.

    `creates`: the action that makes another item; `for_all`: one that all items may be given to.
    """

    path: str
    title: str
    group: str
    rest: str
    about: str
    columns: tuple[Column, ...]
    filters: tuple[FilterField, ...] = ()
    actions: tuple[RowAction, ...] = ()
    items: str = "items"
    creates: str = ""
    for_all: RowAction | None = None


async def load_list(spec: ListPage, request: PageRequest) -> PageValues:
    """The items of one page."""
    filters = {each.name: request.ask(each.name) for each in spec.filters}
    paging = {} if spec.items != "items" else {"limit": PAGE_SIZE, "cursor": request.ask("cursor")}
    page = await request.get(spec.rest, **paging, **filters)
    return {
        "spec": spec,
        "items": page[spec.items],
        "next_cursor": page.get("next"),
        "filters": filters,
    }


_SCOPE = Column("Scope", "scope", link="memories?scope={scope}")
_UPDATED = Column("Changed", "updated_at", "time")
_CREATED = Column("Created", "created_at", "time")
_BY_SCOPE = FilterField("scope", "Scope")
_REPLAY = RowAction("replay-letter", "{seq}")

LISTS = (
    ListPage(
        "tasks",
        "Tasks",
        WORK,
        "/v1/tasks",
        "What is to be done, by whom it is claimed, and what it waits for.",
        (
            Column("Task", "content", link="memories/{id}"),
            Column("State", "task.state"),
            Column("Claimed by", "task.claimed_by"),
            Column("Until", "task.claimed_until", "time"),
            _SCOPE,
            _UPDATED,
        ),
        (_BY_SCOPE, FilterField("state", "State", ("todo", "doing", "blocked", "done"))),
        (RowAction("move-task"),),
    ),
    ListPage(
        "skills",
        "Skills",
        WORK,
        "/v1/skills",
        "Procedures that agents can follow step by step.",
        (
            Column("Skill", "title", link="memories/{id}"),
            Column("Steps", "steps", "number"),
            Column("Placeholders", "placeholders", "list"),
            Column("Version", "version", "number"),
            _SCOPE,
            _UPDATED,
        ),
        (_BY_SCOPE,),
    ),
    ListPage(
        "facts",
        "Facts",
        WORK,
        "/v1/facts",
        "Checked statements by topic, with the day on which each was verified.",
        (
            Column("Statement", "fact.statement", link="memories/{id}"),
            Column("Topic", "fact.topic"),
            Column("Confidence", "fact.confidence"),
            Column("Verified", "fact.verified"),
            Column("Said by", "fact.corroborations", "number"),
            _SCOPE,
        ),
        (_BY_SCOPE, FilterField("topic", "Topic")),
    ),
    ListPage(
        "summaries",
        "Summaries",
        WORK,
        "/v1/dream/summaries",
        "The condensed state of each scope, as a session is given it at its start.",
        (
            Column("Summary", "content", "block"),
            Column("Sentences of a language model", "overview", "sentences"),
            Column("Scope", "scope", link="summaries/history?scope={scope}"),
            Column("Version", "version", "number"),
            Column("Tokens", "tokens", "number"),
            _CREATED,
        ),
        (_BY_SCOPE,),
    ),
    ListPage(
        "summaries/history",
        "",
        WORK,
        "/v1/dream/summaries/history",
        "The versions of the summary of one scope, newest first.",
        (
            Column("Summary", "content", "block"),
            Column("Version", "version", "number"),
            Column("Tokens", "tokens", "number"),
            _CREATED,
            Column("Dream", "run", "id", link="dreams/{run}"),
        ),
        (_BY_SCOPE,),
    ),
    ListPage(
        "keys",
        "Keys",
        ADMIN,
        "/v1/admin/keys",
        "Who may call, and what each may read and write.",
        (
            Column("Label", "label"),
            Column("Role", "role"),
            Column("Reads", "reads", "list"),
            Column("Writes", "writes", "list"),
            Column("Agent", "agent"),
            Column("User", "user"),
            Column("Limits", "limits", "pairs"),
            _CREATED,
            Column("Expires", "expires_at", "time"),
            Column("Revoked", "revoked_at", "time"),
        ),
        actions=(RowAction("revoke-key"),),
        creates="create-key",
    ),
    ListPage(
        "projects",
        "Projects",
        ADMIN,
        "/v1/admin/projects",
        "Projects with what is stored for each.",
        (
            Column("Project", "project", link="memories?scope=project/{project}"),
            Column("Name", "name"),
            Column("Scopes", "scopes", "number"),
            Column("Memories", "memories", "number"),
            Column("Sessions", "sessions", "number"),
            Column("Git changes", "changes", "number"),
        ),
    ),
    ListPage(
        "scopes",
        "Scopes",
        ADMIN,
        "/v1/admin/scopes",
        "Where memories belong, with their number by kind and by status.",
        (
            _SCOPE,
            Column("Name", "name"),
            Column("Kinds", "kinds", "pairs"),
            Column("Statuses", "statuses", "pairs"),
            Column("Sessions", "sessions", "number"),
        ),
    ),
    ListPage(
        "webhooks",
        "Webhooks",
        ADMIN,
        "/v1/git/webhooks",
        "Forges that announce pushes. A secret is set by `reverie admin webhooks set`.",
        (
            Column("Project", "project"),
            Column("Forge", "kind"),
            Column("Path", "path"),
            Column("Set by", "updated_by"),
            _UPDATED,
        ),
        (FilterField("project", "Project"),),
        (RowAction("delete-webhook", "{kind}/{project}"),),
    ),
    ListPage(
        "audit",
        "Audit log",
        ADMIN,
        "/v1/admin/audit",
        "Who did what and when: ids and names, no content.",
        (
            Column("When", "at", "time"),
            Column("Who", "actor"),
            Column("Action", "action"),
            Column("Status", "status", "number"),
            Column("About", "subjects", "list"),
            Column("Client", "client"),
        ),
        (
            FilterField("actor", "Who"),
            FilterField("action", "Action"),
            FilterField("subject", "About"),
            FilterField("changes", "Only changes", ("true", "false")),
        ),
    ),
    ListPage(
        "dead-letters",
        "Dead letters",
        ADMIN,
        "/v1/admin/dead-letters",
        "Messages that no worker could handle. Mend the cause, then send them again.",
        (
            Column("Number", "seq", link="dead-letters/{seq}"),
            Column("When", "at", "time"),
            Column("Subject", "subject"),
            Column("Given up by", "consumer"),
            Column("Deliveries", "deliveries", "number"),
            Column("Reason", "reason"),
        ),
        actions=(_REPLAY,),
        for_all=_REPLAY,
    ),
    ListPage(
        "models",
        "Models",
        ADMIN,
        "/v1/models",
        "The models in use, and whether each is ready.",
        (
            Column("Role", "role"),
            Column("Name", "name"),
            Column("State", "state"),
            Column("Used for", "used_for", "list"),
            Column("Licence", "licence"),
        ),
        items="models",
    ),
)

for _spec in LISTS:
    PAGES.add(
        _spec.path,
        "list.html",
        _spec.title or None,
        _spec.group,
        of="" if _spec.title else _spec.path.partition("/")[0],
    )(partial(load_list, _spec))


@PAGES.add("dead-letters/{seq}", "dead_letter.html", of="dead-letters")
async def show_dead_letter(request: PageRequest) -> PageValues:
    """One dead letter with its body."""
    seq = quote(request.values["seq"], safe="")
    return {"letter": await request.get(f"/v1/admin/dead-letters/{seq}")}
