"""The scenes of the sample day, in order. Each shows one thing and raises if it is not so."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from reverie.cli.sample_day.door import Door, Unshown, new_trace, require, until
from reverie.cli.sample_day.pictures import Span, read_spans, services, trace_tree
from reverie.cli.sample_day.stage import Day, answer_to, ask, one_line, page, rows, show_answer
from reverie.cli.sample_day.story import (
    Conversation,
    Doubt,
    Note,
    Question,
    Story,
    committed,
    retold,
)
from reverie.contracts.dreams import DreamPage, DreamRun
from reverie.contracts.git import GitAccepted, StaleItem, StalePage
from reverie.contracts.memories import MemoryBody, MemoryDetail, MemoryPage, Remembered
from reverie.contracts.recall import Recall, RecallAnswer
from reverie.contracts.sessions import (
    AppendedTurns,
    AppendTurns,
    EndedSession,
    EndSession,
    StartedSession,
    StartSession,
    TurnPage,
)

PLAYINGS = 99
DREAM_SECONDS = 60.0
ENRICH_SECONDS = 60.0
STALE_SECONDS = 30.0
TRACE_SECONDS = 20.0


async def opening(door: Door, story: Story, console: Console) -> Day:
    """Finds a project name that no earlier playing has used."""
    names = [story.project, *(f"{story.project}-{n}" for n in range(2, PLAYINGS + 1))]
    for name in names:
        body = Recall(query=story.questions[0].ask, scopes=[f"project/{name}"], include=["turns"])
        if not (await door.post("/v1/recall", body, RecallAnswer)).memories:
            break
    else:
        raise Unshown(f"the day was played {PLAYINGS} times here; start a new home to play again")
    day = Day(door, console, story, name)
    console.print()
    day.show(Text(story.about, style="italic"))
    again = f"It was played here before, so this time its project is [bold]{name}[/]."
    day.say(again if name != story.project else f"Its project is [bold]{name}[/].")
    return day


async def before_anything(day: Day) -> None:
    day.heading("In the morning nobody remembers anything")
    for question in day.story.questions:
        found = await ask(day, question.ask)
        require(not found.memories, f"{question.ask!r} found something in a project just begun")
        day.say(f"[cyan]?[/] {question.ask}  [dim]nothing, {day.door.took_ms:.0f} ms[/]")


async def remembering(day: Day) -> None:
    day.heading("The agent remembers what it is told")
    await _begin(day, day.story.conversations[0])
    table = rows(0, 1, 0)
    for note in day.story.remember:
        done = await _remember(day, note)
        took = f"{day.door.took_ms:.0f} ms"
        day.notes[note.name] = done.id
        require(done.status == "created", f"the note {note.name!r} was {done.status}, not created")
        kept = await _kept(day, note, done)
        table.add_row(f"[green]{done.status}[/]", Text(one_line(kept, 110)), f"[dim]{took}[/]")
    day.show(table)
    day.say("[dim]The access key in the second was replaced before it was stored.[/]")
    await _same_again(day, day.story.remember[0])


async def found_at_once(day: Day) -> None:
    day.heading("And finds it in the next breath, by its words")
    for question in _told_in(day, "remember"):
        show_answer(day, question, await answer_to(day, question), "remembered")


async def conversations_and_dream(day: Day) -> None:
    day.heading("Two conversations end, and Reverie dreams")
    for talk in retold(day.story.conversations, datetime.now(UTC)):
        if talk.id not in day.sessions:
            await _begin(day, talk)
        await _hand_over(day, talk)
    runs = await until(partial(_dreamt, day), DREAM_SECONDS, "the conversations were not digested")
    _show_runs(day, runs)
    await _know_the_turns(day)
    await _show_memories(day)
    await _show_summary(day)


async def after_the_dream(day: Day) -> None:
    day.heading("In the afternoon the same questions have answers")
    for question in day.story.questions:
        if question.told_in == "remember":
            continue
        hit = await answer_to(day, question)
        told = [day.told_by[turn] for turn in hit.provenance.turns if turn in day.told_by]
        require(bool(told), f"the answer to {question.ask!r} does not say which turns it is from")
        show_answer(day, question, hit, "from " + ", ".join(told))


async def commits_arrive(day: Day) -> None:
    day.heading("Commits arrive, and some memories are no longer sure")
    for doubt in day.story.stale:
        await until(partial(_anchored, day, doubt), ENRICH_SECONDS, _unanchored(doubt))
    for change in day.story.changes:
        body = committed(change, day.project, datetime.now(UTC))
        done = await day.door.post("/v1/git/changes", body, GitAccepted)
        require(not done.duplicate, f"the change {change.told_as[:9]} was taken for a known one")
        for commit in change.commits:
            day.say(f"[yellow]{commit.sha[:9]}[/] {commit.subject}")
    items = await until(partial(_doubted, day), STALE_SECONDS, _undoubted(day.story.stale))
    _show_stale(day, items)
    await _still_found(day)


async def the_trace(day: Day, folder: Path | None) -> None:
    day.heading("One request, followed across the services")
    if folder is None:
        day.say("[dim]No folder of spans was named, so there is no trace to show.[/]")
        return
    missing = f"no trace in {folder} crosses two services"
    title, spans = await until(partial(_richest, day, folder), TRACE_SECONDS, missing)
    day.show(trace_tree(spans, title))
    day.say(f"[dim]{len(spans)} spans in {', '.join(services(spans))}[/]")


async def _begin(day: Day, talk: Conversation) -> None:
    story = day.story
    body = StartSession(
        agent=story.agent,
        project=day.project,
        user=story.developer,
        branch=story.branch,
        external_id=f"{day.project}-{talk.id}",
    )
    started = await day.door.post("/v1/sessions/start", body, StartedSession)
    require(started.scope == day.scope, f"the session went to {started.scope}, not {day.scope}")
    day.sessions[talk.id] = started.session


async def _remember(day: Day, note: Note) -> Remembered:
    session = day.sessions[day.story.conversations[0].id]
    body = note.spoken().model_copy(update={"scope": day.scope, "session": session})
    trace = _followed(day, "POST /v1/remember")
    return await day.door.post("/v1/remember", body, Remembered, trace)


def _followed(day: Day, request: str) -> str | None:
    """A trace id for the first request of its sort; the later ones are not followed."""
    if request in day.traces:
        return None
    return day.traces.setdefault(request, new_trace())


async def _kept(day: Day, note: Note, done: Remembered) -> str:
    """What was stored; the secret, if there was one, must not be in it."""
    kept = await day.door.get(f"/v1/memories/{done.id}", MemoryDetail)
    if note.secret:
        require(done.redactions > 0, "the access key was not recognised as a secret")
        require(note.key() not in kept.model_dump_json(), "the access key was stored as it is")
    return kept.content


async def _same_again(day: Day, note: Note) -> None:
    again = await _remember(day, note)
    same = again.status == "duplicate" and again.id == day.notes[note.name]
    require(same, f"the same note again was {again.status}, not a duplicate")
    day.say(f"[dim]Told the first once more: [/][green]{again.status}[/][dim], nothing doubled.[/]")


def _told_in(day: Day, where: str) -> list[Question]:
    return [question for question in day.story.questions if question.told_in == where]


async def _hand_over(day: Day, talk: Conversation) -> None:
    """Sends a conversation twice, as a restarted hook would; the second time adds nothing."""
    session = day.sessions[talk.id]
    body = AppendTurns(session=session, turns=talk.turns)
    first = await day.door.post("/v1/turns", body, AppendedTurns)
    took = day.door.took_ms
    again = await day.door.post("/v1/turns", body, AppendedTurns)
    count = len(talk.turns)
    require(first.accepted == count, f"{first.accepted} of {count} turns were accepted")
    require(again.accepted == 0, f"{again.accepted} turns sent twice were stored twice")
    trace = _followed(day, "POST /v1/sessions/{id}/end")
    ended = await day.door.post(f"/v1/sessions/{session}/end", EndSession(), EndedSession, trace)
    require(ended.dream is not None, f"no dream was asked for at the end of {talk.title!r}")
    day.say(f"{talk.title}: {count} turns [dim]in {took:.0f} ms; sent again, none doubled[/]")


async def _dreamt(day: Day) -> list[DreamRun] | None:
    """The runs that digested this day's sessions, once they all are; raises on a failed one."""
    page = await day.door.get("/v1/dreams", DreamPage, limit="20")
    runs = [run for run in page.items if run.scope == day.scope]
    for run in runs:
        require(run.error is None, f"a dream failed: {run.error}")
    done = [run for run in runs if run.status == "done" and run.turns]
    digested = {session for run in done for session in run.sessions}
    return done if digested >= set(day.sessions.values()) else None


def _show_runs(day: Day, runs: list[DreamRun]) -> None:
    for run in reversed(runs):
        seconds = ((run.ended_at or run.started_at) - run.started_at).total_seconds()
        day.say(
            f"[magenta]Dream[/]: {run.turns} turns read, {run.created} memories made, "
            f"{run.reinforced} confirmed, {run.superseded} replaced [dim]in {seconds:.1f} s[/]"
        )


async def _know_the_turns(day: Day) -> None:
    """Learns which stored turn is which message of which conversation."""
    for talk in day.story.conversations:
        page = await day.door.get(f"/v1/sessions/{day.sessions[talk.id]}/turns", TurnPage)
        require(all(turn.digested for turn in page.items), f"{talk.title!r} was half digested")
        for turn in page.items:
            day.told_by[turn.id] = turn.external_id or f"{talk.id}-{turn.ord}"


async def _made(day: Day) -> list[MemoryBody]:
    page = await day.door.get("/v1/memories", MemoryPage, scope=day.scope, limit="50")
    return [memory for memory in page.items if memory.provenance.turns]


async def _show_memories(day: Day) -> None:
    made = await _made(day)
    require(bool(made), "the dream made no memory that names its turns")
    table = rows(0, 1)
    for memory in made:
        table.add_row(f"[magenta]{memory.kind}[/]", Text(one_line(memory.content, 130)))
    day.show(table)


async def _show_summary(day: Day) -> None:
    context = await _context(day)
    require(bool(context.strip()), "the next session starts with an empty page")
    day.say("A session that starts now is given this page:")
    day.show(Panel(page(context, lines=16, limit=72), border_style="dim"))


async def _context(day: Day) -> str:
    body = StartSession(
        agent=day.story.agent, project=day.project, user=day.story.developer, branch="main"
    )
    return (await day.door.post("/v1/sessions/start", body, StartedSession)).context


async def _anchored(day: Day, doubt: Doubt) -> UUID | None:
    """The memory, once it is tied to the file it speaks of."""
    memory = day.notes[doubt.memory]
    detail = await day.door.get(f"/v1/memories/{memory}", MemoryDetail)
    tied = any(near.kind == "file" and doubt.path in near.label for near in detail.neighbours)
    return memory if tied else None


def _unanchored(doubt: Doubt) -> str:
    return f"the note {doubt.memory!r} was not tied to {doubt.path}"


async def _doubted(day: Day) -> list[StaleItem] | None:
    """All memories in doubt, once every expected one is among them."""
    query = {"project": day.project, "scope": day.scope}
    items = (await day.door.get("/v1/stale", StalePage, **query)).items
    return items if all(_is_doubted(day, d, items) for d in day.story.stale) else None


def _is_doubted(day: Day, doubt: Doubt, items: list[StaleItem]) -> bool:
    return any(
        item.memory.id == day.notes[doubt.memory]
        and (why.path, why.commit) == (doubt.path, doubt.commit)
        and why.grade in doubt.grades
        for item in items
        for why in item.evidence
    )


def _undoubted(doubts: list[Doubt]) -> str:
    wanted = ", ".join(f"{d.memory} ({' or '.join(d.grades)}, by {d.path})" for d in doubts)
    return f"these should be in doubt and are not all: {wanted}"


def _show_stale(day: Day, items: list[StaleItem]) -> None:
    table = rows(0, 1)
    for item in items:
        why = item.evidence[0]
        table.add_row(f"[red]{item.grade}[/]", Text(one_line(item.memory.content, 120)))
        reason = f"{why.path} was {why.change} by {why.commit[:9]}, score {item.score:.2f}"
        table.add_row("", Text(reason, style="dim"))
    day.show(table)


async def _still_found(day: Day) -> None:
    for question in _told_in(day, "remember"):
        hit = await answer_to(day, question)
        require(hit.staleness > 0, "a memory in doubt was recalled without a word about it")
        reason = hit.stale_reason or f"staleness {hit.staleness:.2f}"
        show_answer(day, question, hit, "still found, with a warning")
        day.show(Text(reason, style="yellow"), indent=5)


async def _richest(day: Day, folder: Path) -> tuple[str, list[Span]] | None:
    """The followed request that crossed the most services, once two took part in it."""
    found = [(title, read_spans(folder, trace)) for title, trace in day.traces.items()]
    title, spans = max(found, key=lambda one: (len(services(one[1])), len(one[1])))
    return (title, spans) if len(services(spans)) > 1 else None
