"""The scenes of the sample day in order. Each shows one feature and raises if it fails."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from reverie.cli.demo.gateway import (
    SampleDayError,
    SampleDayGateway,
    new_trace,
    require,
    wait_until,
)
from reverie.cli.demo.playthrough import (
    Playthrough,
    create_grid,
    excerpt,
    find_answer,
    one_line,
    print_answer,
    recall_question,
)
from reverie.cli.demo.span_tree import TraceSpan, build_trace_tree, read_spans, service_names
from reverie.cli.demo.story import (
    ExpectedStale,
    SampleConversation,
    SampleNote,
    SampleQuestion,
    SampleStory,
    rebase_change,
    shift_conversations,
)
from reverie.contracts.dreams import DreamPage, DreamRun
from reverie.contracts.git import GitChangeResponse, StaleMemoryBody, StalePage
from reverie.contracts.memories import MemoryBody, MemoryDetail, MemoryPage, RememberResponse
from reverie.contracts.recall import RecallRequest, RecallResponse
from reverie.contracts.sessions import (
    AppendTurnsRequest,
    AppendTurnsResponse,
    EndSessionRequest,
    EndSessionResponse,
    StartSessionRequest,
    StartSessionResponse,
    TurnPage,
)

MAX_PLAYS = 99
DREAM_TIMEOUT = 60.0
ENRICH_TIMEOUT = 60.0
STALE_TIMEOUT = 30.0
TRACE_TIMEOUT = 20.0


async def choose_project(
    gateway: SampleDayGateway, story: SampleStory, console: Console
) -> Playthrough:
    """Finds a project name that no earlier playing has used."""
    names = [story.project, *(f"{story.project}-{n}" for n in range(2, MAX_PLAYS + 1))]
    for name in names:
        body = RecallRequest(
            query=story.questions[0].ask, scopes=[f"project/{name}"], include=["turns"]
        )
        if not (await gateway.post("/v1/recall", body, RecallResponse)).memories:
            break
    else:
        raise SampleDayError(
            f"the day was played {MAX_PLAYS} times here; start a new home to play again"
        )
    day = Playthrough(gateway, console, story, name)
    console.print()
    day.print_block(Text(story.about, style="italic"))
    replay_note = f"It was played here before, so this time its project is [bold]{name}[/]."
    day.print_text(replay_note if name != story.project else f"Its project is [bold]{name}[/].")
    return day


async def ask_empty_project(day: Playthrough) -> None:
    day.print_heading("In the morning nobody remembers anything")
    for question in day.story.questions:
        response = await recall_question(day, question.ask)
        require(not response.memories, f"{question.ask!r} found something in a project just begun")
        day.print_text(
            f"[cyan]?[/] {question.ask}  [dim]nothing, {day.gateway.elapsed_ms:.0f} ms[/]"
        )


async def remember_notes(day: Playthrough) -> None:
    day.print_heading("The agent remembers what it is told")
    await _start_session(day, day.story.conversations[0])
    table = create_grid(0, 1, 0)
    for note in day.story.remember:
        response = await _send_note(day, note)
        duration = f"{day.gateway.elapsed_ms:.0f} ms"
        day.notes[note.name] = response.id
        require(
            response.status == "created",
            f"the note {note.name!r} was {response.status}, not created",
        )
        content = await _stored_content(day, note, response)
        table.add_row(
            f"[green]{response.status}[/]", Text(one_line(content, 110)), f"[dim]{duration}[/]"
        )
    day.print_block(table)
    day.print_text("[dim]The access key in the second was replaced before it was stored.[/]")
    await _resend_note(day, day.story.remember[0])


async def recall_notes(day: Playthrough) -> None:
    day.print_heading("And finds it in the next breath, by its words")
    for question in _questions_from(day, "remember"):
        print_answer(day, question, await find_answer(day, question), "remembered")


async def digest_conversations(day: Playthrough) -> None:
    day.print_heading("Two conversations end, and Reverie dreams")
    for conversation in shift_conversations(day.story.conversations, datetime.now(UTC)):
        if conversation.id not in day.sessions:
            await _start_session(day, conversation)
        await _send_conversation(day, conversation)
    runs = await wait_until(
        partial(_finished_runs, day), DREAM_TIMEOUT, "the conversations were not digested"
    )
    _print_runs(day, runs)
    await _label_turns(day)
    await _print_memories(day)
    await _print_session_context(day)


async def recall_digested(day: Playthrough) -> None:
    day.print_heading("In the afternoon the same questions have answers")
    for question in day.story.questions:
        if question.told_in == "remember":
            continue
        hit = await find_answer(day, question)
        labels = [day.turn_labels[turn] for turn in hit.provenance.turns if turn in day.turn_labels]
        require(bool(labels), f"the answer to {question.ask!r} does not say which turns it is from")
        print_answer(day, question, hit, "from " + ", ".join(labels))


async def announce_commits(day: Playthrough) -> None:
    day.print_heading("Commits arrive, and some memories are no longer sure")
    for expected in day.story.stale:
        await wait_until(
            partial(_find_anchored, day, expected), ENRICH_TIMEOUT, _unanchored_message(expected)
        )
    for change in day.story.changes:
        body = rebase_change(change, day.project, datetime.now(UTC))
        response = await day.gateway.post("/v1/git/changes", body, GitChangeResponse)
        require(
            not response.duplicate,
            f"the change {change.deduplication_key[:9]} was taken for a known one",
        )
        for commit in change.commits:
            day.print_text(f"[yellow]{commit.sha[:9]}[/] {commit.subject}")
    items = await wait_until(
        partial(_find_stale_items, day), STALE_TIMEOUT, _missing_stale_message(day.story.stale)
    )
    _print_stale(day, items)
    await _recall_stale(day)


async def show_trace(day: Playthrough, folder: Path | None) -> None:
    day.print_heading("One request, followed across the services")
    if folder is None:
        day.print_text("[dim]No folder of spans was named, so there is no trace to show.[/]")
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
    started = await day.gateway.post("/v1/sessions/start", body, StartSessionResponse)
    require(started.scope == day.scope, f"the session went to {started.scope}, not {day.scope}")
    day.sessions[conversation.id] = started.session


async def _send_note(day: Playthrough, note: SampleNote) -> RememberResponse:
    session = day.sessions[day.story.conversations[0].id]
    body = note.to_request().model_copy(update={"scope": day.scope, "session": session})
    trace = _new_trace_for(day, "POST /v1/remember")
    return await day.gateway.post("/v1/remember", body, RememberResponse, trace)


def _new_trace_for(day: Playthrough, request: str) -> str | None:
    """A trace id for the first request of its sort; the later ones are not followed."""
    if request in day.traces:
        return None
    return day.traces.setdefault(request, new_trace())


async def _stored_content(day: Playthrough, note: SampleNote, response: RememberResponse) -> str:
    """What was stored; the secret, if there was one, must not be in it."""
    memory = await day.gateway.get(f"/v1/memories/{response.id}", MemoryDetail)
    if note.secret:
        require(response.redactions > 0, "the access key was not recognised as a secret")
        require(
            note.secret_text() not in memory.model_dump_json(), "the access key was stored as it is"
        )
    return memory.content


async def _resend_note(day: Playthrough, note: SampleNote) -> None:
    response = await _send_note(day, note)
    is_duplicate = response.status == "duplicate" and response.id == day.notes[note.name]
    require(is_duplicate, f"the same note again was {response.status}, not a duplicate")
    day.print_text(
        f"[dim]Told the first once more: [/][green]{response.status}[/][dim], nothing doubled.[/]"
    )


def _questions_from(day: Playthrough, source: str) -> list[SampleQuestion]:
    return [question for question in day.story.questions if question.told_in == source]


async def _send_conversation(day: Playthrough, conversation: SampleConversation) -> None:
    """Sends a conversation twice, as a restarted hook would; the second time adds nothing."""
    session = day.sessions[conversation.id]
    body = AppendTurnsRequest(session=session, turns=conversation.turns)
    first = await day.gateway.post("/v1/turns", body, AppendTurnsResponse)
    elapsed_ms = day.gateway.elapsed_ms
    second = await day.gateway.post("/v1/turns", body, AppendTurnsResponse)
    count = len(conversation.turns)
    require(first.accepted == count, f"{first.accepted} of {count} turns were accepted")
    require(second.accepted == 0, f"{second.accepted} turns sent twice were stored twice")
    trace = _new_trace_for(day, "POST /v1/sessions/{id}/end")
    ended = await day.gateway.post(
        f"/v1/sessions/{session}/end", EndSessionRequest(), EndSessionResponse, trace
    )
    require(ended.dream is not None, f"no dream was asked for at the end of {conversation.title!r}")
    day.print_text(
        f"{conversation.title}: {count} turns [dim]in {elapsed_ms:.0f} ms; sent again, "
        f"none doubled[/]"
    )


async def _finished_runs(day: Playthrough) -> list[DreamRun] | None:
    """The runs that digested this day's sessions, once they all are; raises on a failed one."""
    page = await day.gateway.get("/v1/dreams", DreamPage, limit="20")
    runs = [run for run in page.items if run.scope == day.scope]
    for run in runs:
        require(run.error is None, f"a dream failed: {run.error}")
    finished = [run for run in runs if run.status == "done" and run.turns]
    digested = {session for run in finished for session in run.sessions}
    return finished if digested >= set(day.sessions.values()) else None


def _print_runs(day: Playthrough, runs: list[DreamRun]) -> None:
    for run in reversed(runs):
        seconds = ((run.ended_at or run.started_at) - run.started_at).total_seconds()
        day.print_text(
            f"[magenta]Dream[/]: {run.turns} turns read, {run.created} memories made, "
            f"{run.reinforced} confirmed, {run.superseded} replaced [dim]in {seconds:.1f} s[/]"
        )


async def _label_turns(day: Playthrough) -> None:
    """Learns which stored turn is which message of which conversation."""
    for conversation in day.story.conversations:
        page = await day.gateway.get(
            f"/v1/sessions/{day.sessions[conversation.id]}/turns", TurnPage
        )
        require(
            all(turn.digested for turn in page.items), f"{conversation.title!r} was half digested"
        )
        for turn in page.items:
            day.turn_labels[turn.id] = turn.external_id or f"{conversation.id}-{turn.ord}"


async def _digested_memories(day: Playthrough) -> list[MemoryBody]:
    response = await day.gateway.get("/v1/memories", MemoryPage, scope=day.scope, limit="50")
    return [memory for memory in response.items if memory.provenance.turns]


async def _print_memories(day: Playthrough) -> None:
    memories = await _digested_memories(day)
    require(bool(memories), "the dream made no memory that names its turns")
    table = create_grid(0, 1)
    for memory in memories:
        table.add_row(f"[magenta]{memory.kind}[/]", Text(one_line(memory.content, 130)))
    day.print_block(table)


async def _print_session_context(day: Playthrough) -> None:
    context = await _fetch_context(day)
    require(bool(context.strip()), "the next session starts with an empty page")
    day.print_text("A session that starts now is given this page:")
    day.print_block(Panel(excerpt(context, lines=16, limit=72), border_style="dim"))


async def _fetch_context(day: Playthrough) -> str:
    body = StartSessionRequest(
        agent=day.story.agent, project=day.project, user=day.story.developer, branch="main"
    )
    return (await day.gateway.post("/v1/sessions/start", body, StartSessionResponse)).context


async def _find_anchored(day: Playthrough, expected: ExpectedStale) -> UUID | None:
    """The memory, once it is tied to the file it speaks of."""
    memory = day.notes[expected.memory]
    detail = await day.gateway.get(f"/v1/memories/{memory}", MemoryDetail)
    is_anchored = any(
        neighbour.kind == "file" and expected.path in neighbour.label
        for neighbour in detail.neighbours
    )
    return memory if is_anchored else None


def _unanchored_message(expected: ExpectedStale) -> str:
    return f"the note {expected.memory!r} was not tied to {expected.path}"


async def _find_stale_items(day: Playthrough) -> list[StaleMemoryBody] | None:
    """All memories in doubt, once every expected one is among them."""
    query = {"project": day.project, "scope": day.scope}
    items = (await day.gateway.get("/v1/stale", StalePage, **query)).items
    return (
        items
        if all(_is_marked_stale(day, expected, items) for expected in day.story.stale)
        else None
    )


def _is_marked_stale(
    day: Playthrough, expected: ExpectedStale, items: list[StaleMemoryBody]
) -> bool:
    return any(
        item.memory.id == day.notes[expected.memory]
        and (evidence.path, evidence.commit) == (expected.path, expected.commit)
        and evidence.grade in expected.grades
        for item in items
        for evidence in item.evidence
    )


def _missing_stale_message(expected_items: list[ExpectedStale]) -> str:
    missing = ", ".join(
        f"{expected.memory} ({' or '.join(expected.grades)}, by {expected.path})"
        for expected in expected_items
    )
    return f"these should be in doubt and are not all: {missing}"


def _print_stale(day: Playthrough, items: list[StaleMemoryBody]) -> None:
    table = create_grid(0, 1)
    for item in items:
        evidence = item.evidence[0]
        table.add_row(f"[red]{item.grade}[/]", Text(one_line(item.memory.content, 120)))
        reason = (
            f"{evidence.path} was {evidence.change} by {evidence.commit[:9]}, "
            f"score {item.score:.2f}"
        )
        table.add_row("", Text(reason, style="dim"))
    day.print_block(table)


async def _recall_stale(day: Playthrough) -> None:
    for question in _questions_from(day, "remember"):
        hit = await find_answer(day, question)
        require(hit.staleness > 0, "a memory in doubt was recalled without a word about it")
        reason = hit.stale_reason or f"staleness {hit.staleness:.2f}"
        print_answer(day, question, hit, "still found, with a warning")
        day.print_block(Text(reason, style="yellow"), indent=5)


async def _find_widest_trace(day: Playthrough, folder: Path) -> tuple[str, list[TraceSpan]] | None:
    """The followed request that crossed the most services, once two took part in it."""
    traces = [(title, read_spans(folder, trace)) for title, trace in day.traces.items()]
    title, spans = max(
        traces, key=lambda candidate: (len(service_names(candidate[1])), len(candidate[1]))
    )
    return (title, spans) if len(service_names(spans)) > 1 else None
