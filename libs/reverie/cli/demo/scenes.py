"""Plays the sample day: its scenes in order. Each shows one feature and raises if it fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

from pydantic import ValidationError
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from reverie.cli.app.output import one_line
from reverie.cli.demo.playthrough import (
    Playthrough,
    create_grid,
    find_answer,
    find_sure_answer,
    print_answer,
    require,
    wait_until,
)
from reverie.cli.demo.span_tree import TraceSpan, build_trace_tree, read_spans, service_names
from reverie.cli.demo.story import (
    ExpectedStale,
    SampleConversation,
    SampleNote,
    SampleQuestion,
    SampleStory,
    read_story,
    rebase_change,
    shift_conversations,
)
from reverie.client import AsyncReverie
from reverie.contracts.dreams import DreamPage, DreamRun, UndigestedPage
from reverie.contracts.memories.git import GitChangeResponse, StaleMemoryBody, StalePage
from reverie.contracts.memories.memories import (
    MemoryBody,
    MemoryDetail,
    MemoryPage,
    RememberResponse,
)
from reverie.contracts.sessions import (
    AppendTurnsRequest,
    AppendTurnsResponse,
    EndSessionRequest,
    EndSessionResponse,
    StartSessionRequest,
    StartSessionResponse,
    TurnPage,
)
from reverie.domain.core.errors import ReverieError

DREAM_TIMEOUT = 60.0
ENRICH_TIMEOUT = 60.0
STALE_TIMEOUT = 30.0
TRACE_TIMEOUT = 20.0
CONTEXT_LINES = 16


async def play_sample_day(
    gateway_url: str, api_key: str, spans_folder: Path | None, console: Console, ca: Path | None
) -> bool:
    """Plays the day through the gateway alone; returns True if every step had the expected result.

    Each playthrough removes the one before. Without a folder of spans, the last step prints that
    there is no trace.
    """
    start = time.perf_counter()
    async with AsyncReverie(gateway_url, api_key, agent="reverie-demo", ca=ca) as client:
        try:
            day = await open_project(client, read_story(), console)
            await ask_empty_project(day)
            await remember_notes(day)
            await recall_notes(day)
            await digest_conversations(day)
            await recall_digested(day)
            await amend_decision(day)
            await announce_commits(day)
            await show_trace(day, spans_folder)
        except (ReverieError, ValidationError) as error:
            console.print()
            console.print("[bold red]The sample day stopped here.[/] ", end="")
            console.print(str(error), markup=False, highlight=False)
            return False
    console.print()
    seconds = time.perf_counter() - start
    console.print(f"[bold green]The sample day is complete[/], in {seconds:.1f} s.")
    return True


async def open_project(client: AsyncReverie, story: SampleStory, console: Console) -> Playthrough:
    """Removes what an earlier playthrough left in the project of the story, which is the demo's."""
    day = Playthrough(client, console, story, story.project)
    console.print()
    day.print_block(Text(story.about, style="italic"))
    removed = await client.delete_project(day.project)
    before = "What was played before is removed. " if any(removed.rows.values()) else ""
    while not removed.done:
        removed = await client.delete_project(day.project, cursor=removed.next)
    day.print_text(f"{before}Its project is [bold]{day.project}[/].")
    return day


async def ask_empty_project(day: Playthrough) -> None:
    day.print_heading("The project has no memories yet")
    for question in day.story.questions:
        response = await day.recall(question.ask)
        require(not response.memories, f"{question.ask!r} found something in a new project")
        day.print_text(f"[cyan]?[/] {question.ask}  [dim]nothing, {day.elapsed_ms:.0f} ms[/]")


async def remember_notes(day: Playthrough) -> None:
    day.print_heading("The agent stores what it is told")
    await _start_session(day, day.story.conversations[0])
    table = create_grid(0, 1, 0)
    for note in day.story.remember:
        response = await _send_note(day, note)
        day.notes[note.name] = response.id
        status, duration = response.status, f"[dim]{day.elapsed_ms:.0f} ms[/]"
        require(status == "created", f"the note {note.name!r} was {status}, not created")
        memory = await day.get(f"/v1/memories/{response.id}", MemoryDetail)
        if note.secret:
            require(response.redactions > 0, "the access key was not recognized as a secret")
            is_stored = note.secret_text() in memory.model_dump_json()
            require(not is_stored, "the access key was stored as it is")
        table.add_row(f"[green]{status}[/]", Text(one_line(memory.content, 110)), duration)
    day.print_block(table)
    day.print_text("[dim]The access key in the second was redacted before it was stored.[/]")
    first = day.story.remember[0]
    again = await _send_note(day, first)
    is_duplicate = again.status == "duplicate" and again.id == day.notes[first.name]
    require(is_duplicate, f"the same note again was {again.status}, not a duplicate")
    day.print_text(f"[dim]The first, sent again: [/][green]{again.status}[/]")


async def recall_notes(day: Playthrough) -> None:
    day.print_heading("Recall finds it at once, by its words")
    for question in _questions_from(day, "remember"):
        print_answer(day, question, await find_answer(day, question), "remembered")


async def digest_conversations(day: Playthrough) -> None:
    day.print_heading("Two conversations end, and a dream digests them")
    for conversation in _conversations_of_today(day)[:-1]:
        if conversation.id not in day.sessions:
            await _start_session(day, conversation)
        await _send_conversation(day, conversation)
    runs = await _wait_for_digest(day)
    for run in reversed(runs):
        _print_run(day, run)
    await _label_turns(day, day.story.conversations)
    page = await day.get("/v1/memories", MemoryPage, scope=day.scope, limit="50")
    memories = [memory for memory in page.items if memory.provenance.turns]
    require(bool(memories), "the dream created no memory that names its turns")
    table = create_grid(0, 1)
    for memory in memories:
        if "record" in memory.metadata or memory.kind == "session":
            continue
        table.add_row(f"[magenta]{memory.kind}[/]", Text(one_line(memory.content, 130)))
    for memory in await _find_records(day):
        table.add_row(f"[magenta]{memory.kind}[/]", Text(memory.content))
    day.print_block(table)
    await _print_session_context(day)


async def recall_digested(day: Playthrough) -> None:
    day.print_heading("The same questions have answers now")
    for question in day.story.questions:
        if question.told_in not in {talk.id for talk in day.story.conversations}:
            continue
        hit = await find_answer(day, question)
        labels = [day.turn_labels[turn] for turn in hit.provenance.turns if turn in day.turn_labels]
        require(bool(labels), f"the answer to {question.ask!r} does not name its turns")
        print_answer(day, question, hit, "from " + ", ".join(labels))
    response = await day.recall(day.story.unanswered)
    require(not response.answered, f"{day.story.unanswered!r} was taken for answered")
    day.print_text(Text.assemble(("? ", "cyan"), (day.story.unanswered, "bold")))
    best = f"best relevance {response.relevance or 0.0:.2f}"
    day.print_block(f"No memory answers this [dim]({best}): an agent gets nothing[/]", indent=5)


async def amend_decision(day: Playthrough) -> None:
    day.print_heading("A decision is amended, and the new one takes its place")
    amendment = _conversations_of_today(day)[-1]
    await _start_session(day, amendment)
    await _send_conversation(day, amendment)
    for run in (await _wait_for_digest(day))[:1]:
        _print_run(day, run)
    await _label_turns(day, [amendment])
    superseded = await _find_records(day, "superseded")
    require(len(superseded) == 1, f"the amendment superseded {len(superseded)} decisions, not one")
    own = day.sessions[amendment.id]
    current = [item for item in await _find_records(day) if item.provenance.session == own]
    require(len(current) == 1, f"the amendment made {len(current)} records, not one")
    table = create_grid(0, 1)
    short = Text(one_line(superseded[0].content, 160), style="dim")
    table.add_row("[dim]superseded[/]", short)
    table.add_row("[green]active[/]", Text(current[0].content))
    day.print_block(table)
    for question in _questions_from(day, amendment.id):
        hit = await find_answer(day, question)
        require(hit.id == current[0].id, "the amended decision is recalled instead of the new one")
        print_answer(day, question, hit, "the amendment")


async def announce_commits(day: Playthrough) -> None:
    day.print_heading("Commits arrive, and some memories become stale")
    for expected in day.story.stale:
        missing = f"the note {expected.memory!r} was not anchored to {expected.path}"
        await wait_until(partial(_find_anchored, day, expected), ENRICH_TIMEOUT, missing)
    for change in day.story.changes:
        body = rebase_change(change, day.project, datetime.now(UTC))
        response = await day.post("/v1/git/changes", body, GitChangeResponse)
        known = f"the change {change.deduplication_key[:9]} was taken for a duplicate"
        require(not response.duplicate, known)
        for commit in change.commits:
            day.print_text(f"[yellow]{commit.sha[:9]}[/] {commit.subject}")
    wanted = (
        f"{expected.memory} ({' or '.join(expected.grades)}, by {expected.path})"
        for expected in day.story.stale
    )
    missing = f"not all of these are stale: {', '.join(wanted)}"
    items = await wait_until(partial(_find_stale_items, day), STALE_TIMEOUT, missing)
    table = create_grid(0, 1)
    for item in items:
        evidence = item.evidence[0]
        change_text = f"{evidence.path} was {evidence.change} by {evidence.commit[:9]}"
        table.add_row(f"[red]{item.grade}[/]", Text(one_line(item.memory.content, 120)))
        table.add_row("", Text(f"{change_text}, score {item.score:.2f}", style="dim"))
    day.print_block(table)
    for question in _questions_from(day, "remember"):
        hit = await find_answer(day, question)
        require(hit.staleness > 0, "a stale memory was recalled without a warning")
        print_answer(day, question, hit, "still found, with a warning")
        reason = hit.stale_reason or f"staleness {hit.staleness:.2f}"
        day.print_block(Text(reason, style="yellow"), indent=5)
    for question in _questions_from(day, "commit"):
        hit = await find_sure_answer(day, question, ENRICH_TIMEOUT)
        sha = (hit.provenance.git or {}).get("commit", "")
        print_answer(day, question, hit, f"from the message of {sha[:9]}")


async def show_trace(day: Playthrough, folder: Path | None) -> None:
    day.print_heading("One request, traced across the services")
    if folder is None:
        day.print_text("[dim]No folder of spans was given, so there is no trace to show.[/]")
        return
    missing = f"no trace in {folder} crosses two services"
    title, spans = await wait_until(
        partial(_find_widest_trace, day, folder), TRACE_TIMEOUT, missing
    )
    day.print_block(build_trace_tree(spans, title))
    day.print_text(f"[dim]{len(spans)} spans in {', '.join(service_names(spans))}[/]")


async def _start_session(day: Playthrough, conversation: SampleConversation) -> None:
    story = day.story
    body = StartSessionRequest(
        agent=story.agent,
        project=day.project,
        user=story.developer,
        branch=story.branch,
        external_id=f"{day.project}-{conversation.id}",
    )
    started = await day.post("/v1/sessions/start", body, StartSessionResponse)
    require(started.scope == day.scope, f"the session went to {started.scope}, not {day.scope}")
    day.sessions[conversation.id] = started.session


async def _send_note(day: Playthrough, note: SampleNote) -> RememberResponse:
    session = day.sessions[day.story.conversations[0].id]
    body = note.to_request().model_copy(update={"scope": day.scope, "session": session})
    return await day.post("/v1/remember", body, RememberResponse, follow="POST /v1/remember")


def _questions_from(day: Playthrough, source: str) -> list[SampleQuestion]:
    return [question for question in day.story.questions if question.told_in == source]


async def _send_conversation(day: Playthrough, conversation: SampleConversation) -> None:
    """Sends a conversation twice, as a restarted hook would; the second time adds nothing."""
    session = day.sessions[conversation.id]
    body = AppendTurnsRequest(session=session, turns=conversation.turns)
    first = await day.post("/v1/turns", body, AppendTurnsResponse)
    elapsed_ms = day.elapsed_ms
    second = await day.post("/v1/turns", body, AppendTurnsResponse)
    count = len(conversation.turns)
    require(first.accepted == count, f"{first.accepted} of {count} turns were accepted")
    require(second.accepted == 0, f"{second.accepted} turns sent twice were stored twice")
    path, follow = f"/v1/sessions/{session}/end", "POST /v1/sessions/{id}/end"
    ended = await day.post(path, EndSessionRequest(), EndSessionResponse, follow)
    require(ended.dream is not None, f"the end of {conversation.title!r} requested no dream")
    details = f"in {elapsed_ms:.0f} ms; sent again, none was duplicated"
    day.print_text(f"{conversation.title}: {count} turns [dim]{details}[/]")


def _conversations_of_today(day: Playthrough) -> list[SampleConversation]:
    """The conversations and the amendment, which ended half an hour ago."""
    told = [*day.story.conversations, day.story.amendment]
    return shift_conversations(told, datetime.now(UTC))


async def _wait_for_digest(day: Playthrough) -> list[DreamRun]:
    missing = "the conversations were not digested"
    return await wait_until(partial(_finished_runs, day), DREAM_TIMEOUT, missing)


def _print_run(day: Playthrough, run: DreamRun) -> None:
    seconds = ((run.ended_at or run.started_at) - run.started_at).total_seconds()
    day.print_text(
        f"[magenta]Dream[/]: {run.turns} turns read, {run.created} created, "
        f"{run.reinforced} reinforced, {run.superseded} superseded [dim]in {seconds:.1f} s[/]"
    )


async def _find_records(day: Playthrough, status: str = "active") -> list[MemoryBody]:
    """The decision records of the project."""
    page = await day.get("/v1/memories", MemoryPage, scope=day.scope, status=status, limit="50")
    return [memory for memory in page.items if "record" in memory.metadata]


async def _finished_runs(day: Playthrough) -> list[DreamRun] | None:
    """The runs that digested the sessions, once every turn is digested. Raises if a run failed.

    A run that began between two conversations may have digested the second one in part.
    """
    page = await day.get("/v1/dreams", DreamPage, limit="20")
    undigested = await day.get("/v1/dream", UndigestedPage, scope=day.scope)
    runs = [run for run in page.items if run.scope == day.scope]
    for run in runs:
        require(run.error is None, f"a dream failed: {run.error}")
    finished = [run for run in runs if run.status == "done" and run.turns]
    digested = {session for run in finished for session in run.sessions}
    if digested < set(day.sessions.values()) or any(scope.turns for scope in undigested.items):
        return None
    return finished


async def _label_turns(day: Playthrough, conversations: Sequence[SampleConversation]) -> None:
    """Records which stored turn is which message of which conversation."""
    for conversation in conversations:
        page = await day.get(f"/v1/sessions/{day.sessions[conversation.id]}/turns", TurnPage)
        is_digested = all(turn.digested for turn in page.items)
        require(is_digested, f"{conversation.title!r} was digested only in part")
        for turn in page.items:
            day.turn_labels[turn.id] = turn.external_id or f"{conversation.id}-{turn.ordinal}"


async def _print_session_context(day: Playthrough) -> None:
    body = StartSessionRequest(
        agent=day.story.agent, project=day.project, user=day.story.developer, branch="main"
    )
    started = await day.post("/v1/sessions/start", body, StartSessionResponse)
    lines = started.context.strip().splitlines()
    require(bool(lines), "the context of the next session is empty")
    shown = [one_line(line, 72) for line in lines[:CONTEXT_LINES]]
    omitted = len(lines) - len(shown)
    shown += [f"… and {omitted} more lines"] if omitted else []
    day.print_text("A session that starts now gets this context:")
    day.print_block(Panel(Text("\n".join(shown)), border_style="dim"))


async def _find_anchored(day: Playthrough, expected: ExpectedStale) -> UUID | None:
    """The memory, once it is anchored to the expected file."""
    memory = day.notes[expected.memory]
    detail = await day.get(f"/v1/memories/{memory}", MemoryDetail)
    is_anchored = any(
        neighbour.kind == "file" and expected.path in neighbour.label
        for neighbour in detail.neighbours
    )
    return memory if is_anchored else None


async def _find_stale_items(day: Playthrough) -> list[StaleMemoryBody] | None:
    """All stale memories, once every expected one is among them."""
    items = (await day.get("/v1/stale", StalePage, project=day.project, scope=day.scope)).items

    def is_marked(expected: ExpectedStale) -> bool:
        return any(
            item.memory.id == day.notes[expected.memory]
            and (evidence.path, evidence.commit) == (expected.path, expected.commit)
            and evidence.grade in expected.grades
            for item in items
            for evidence in item.evidence
        )

    return items if all(map(is_marked, day.story.stale)) else None


async def _find_widest_trace(day: Playthrough, folder: Path) -> tuple[str, list[TraceSpan]] | None:
    """The followed request that crossed the most services, once it crossed at least two."""
    traces = [(title, read_spans(folder, trace)) for title, trace in day.traces.items()]
    title, spans = max(traces, key=lambda trace: (len(service_names(trace[1])), len(trace[1])))
    return (title, spans) if len(service_names(spans)) > 1 else None
