"""Rendering of the context block that an agent reads at session start, within a token budget.

Each section has its own budget. Identity comes first and is never dropped; then lessons, which
nothing else displaces; pinned memories, those about the open files, stale ones, conventions,
commands, tasks and preferences; decisions and background, newest first; the previous session. The
block is fenced, and every line begins with its scope, short id and key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from reverie.domain.context.budgets import NEARLY_FULL_SHARE, BudgetSection, ContextBudgets
from reverie.domain.context.line_candidates import (
    IDENTITY_HEADING,
    SESSION_HEADING,
    ContextInput,
    LineCandidate,
    LinePlacement,
    iter_line_candidates,
)
from reverie.domain.context.text_rendering import (
    MIN_WORDS,
    CountTokens,
    pluralize,
    render_block,
    shorten_line,
)
from reverie.domain.core.memory import Memory

STALE_HEADING = "⚠ May be stale"
SECTION_HEADINGS = (
    IDENTITY_HEADING,
    "Lessons",
    "Pinned",
    "Conventions (always follow)",
    "Commands",
    "Active tasks",
    "Preferences",
    "Always at hand",
    "Much depends on these",
    "For the open files",
    STALE_HEADING,
    "Recent decisions",
    "Background",
    SESSION_HEADING,
    "Done since the last session",
)
RULES_HEADING, PREFERENCES_HEADING = "Conventions (always follow)", "Preferences"
PRECEDENCE = "_What the team's rules say goes before these. Where they disagree, say so._"


@dataclass(frozen=True)
class BlockEntry:
    """A line of the block: its memory, its heading, its budget."""

    memory: Memory
    placement: LinePlacement
    text: str
    tokens: int
    why: str | None = None


@dataclass(frozen=True)
class BlockOmission:
    """A memory that has no line, and why: `entries` were all taken, or the `budget` of its part."""

    memory: Memory
    placement: LinePlacement
    reason: str


@dataclass(frozen=True)
class BlockWarning:
    """A limit of which 80 % are taken: `what` is a part, `total` or `entries`."""

    part: str
    used: int
    limit: int
    omitted: int

    @property
    def message(self) -> str:
        """The warning in words."""
        subject = "entries" if self.part == "entries" else f"tokens of {self.part}"
        omission_note = f"; {self.omitted} memories were left out" if self.omitted else ""
        return f"{self.used} of {self.limit} {subject} are taken{omission_note}"


@dataclass(frozen=True)
class ContextBlock:
    """The rendered block with its tokens, what it shows, what fell out, what runs full."""

    markdown: str = ""
    tokens: int = 0
    entries: tuple[BlockEntry, ...] = ()
    omitted: tuple[BlockOmission, ...] = ()
    warnings: tuple[BlockWarning, ...] = ()

    @property
    def memory_ids(self) -> tuple[UUID, ...]:
        """The memories of the lines, in order."""
        return tuple(dict.fromkeys(entry.memory.id for entry in self.entries))


def render_context_block(
    context_input: ContextInput,
    budgets: ContextBudgets,
    count_tokens: CountTokens,
    lend_unused: bool = False,
) -> ContextBlock:
    """Selects lines by weight while budgets and entries last, then sorts them by section.

    Identity and the previous session are shortened rather than dropped. With `lend_unused`, the
    unused budget of a part goes to the others, the weightiest first; this is for callers who set
    only a total. The result is empty if there is nothing to show.
    """
    frame_tokens = count_tokens(render_block([]))
    builder = _BlockBuilder(budgets, budgets.scale_to(budgets.total - frame_tokens), count_tokens)
    for candidate in iter_line_candidates(context_input):
        builder.add_candidate(candidate)
    if lend_unused:
        builder.lend_unused()
    builder.trim_to_budget()
    entries = builder.ordered_entries()
    if not entries:
        return ContextBlock(omitted=tuple(builder.omitted), warnings=builder.build_warnings(0))
    markdown = _render_with_notes(
        context_input, entries, builder.omitted, lambda text: count_tokens(text) <= budgets.total
    )
    tokens = count_tokens(markdown)
    return ContextBlock(
        markdown, tokens, tuple(entries), tuple(builder.omitted), builder.build_warnings(tokens)
    )


class _BlockBuilder:
    """The lines selected so far, and the rest of each budget."""

    def __init__(
        self, budgets: ContextBudgets, available: ContextBudgets, count_tokens: CountTokens
    ) -> None:
        self._budgets = budgets
        self._remaining = {section: available.tokens_for(section) for section in BudgetSection}
        self._count_tokens = count_tokens
        self.entries: list[BlockEntry] = []
        self.omitted: list[BlockOmission] = []
        self._dropped: list[LineCandidate] = []
        self._is_lending = False

    def add_candidate(self, candidate: LineCandidate) -> None:
        """Adds a line for a candidate if there is room, else records the omission."""
        if not candidate.is_required and len(self.entries) >= self._budgets.entries:
            self.omitted.append(BlockOmission(candidate.memory, candidate.placements[0], "entries"))
            return
        for placement in candidate.placements:
            available = self._available_tokens(candidate, placement)
            for text in candidate.texts if available > MIN_WORDS else ():
                cost = self._line_cost(placement, text)
                if cost <= available - candidate.reserved:
                    self._append_entry(candidate, placement, text, cost)
                    return
        self._add_shortened(candidate)

    def _add_shortened(self, candidate: LineCandidate) -> None:
        """Adds the beginning of a line if the candidate allows it; identity always gets a line."""
        placement = candidate.placements[0]
        if candidate.can_shorten:
            room = self._available_tokens(candidate, placement) - candidate.reserved
            text = shorten_line(
                candidate.texts[-1],
                room - self._heading_cost(placement) - 1,
                self._count_tokens,
            )
            cost = self._line_cost(placement, text)
            if candidate.is_required or cost <= self._available_tokens(candidate, placement):
                self._append_entry(candidate, placement, text, cost)
                return
        self.omitted.append(BlockOmission(candidate.memory, placement, "budget"))
        self._dropped.append(candidate)

    def lend_unused(self) -> None:
        """Tries the dropped candidates again, now with the unused budget of all parts."""
        dropped, self._dropped, self._is_lending = self._dropped, [], True
        self.omitted = [omission for omission in self.omitted if omission.reason != "budget"]
        for candidate in dropped:
            self.add_candidate(candidate)

    def _paying_sections(self, placement: LinePlacement) -> Sequence[BudgetSection]:
        return (*placement.sections, *BudgetSection) if self._is_lending else placement.sections

    def _append_entry(
        self, candidate: LineCandidate, placement: LinePlacement, text: str, cost: int
    ) -> None:
        self.entries.append(BlockEntry(candidate.memory, placement, text, cost, candidate.why))
        for section in self._paying_sections(placement):
            paid = min(cost, self._remaining[section])
            self._remaining[section] -= paid
            cost -= paid

    def _available_tokens(self, candidate: LineCandidate, placement: LinePlacement) -> int:
        """Returns the tokens available to a candidate at a placement."""
        return (
            sum(self._remaining[section] for section in set(self._paying_sections(placement)))
            // candidate.share_count
        )

    def _line_cost(self, placement: LinePlacement, text: str) -> int:
        return self._count_tokens(text) + 1 + self._heading_cost(placement)

    def _heading_cost(self, placement: LinePlacement) -> int:
        """Returns the tokens of a heading that has no line yet, else 0."""
        if any(entry.placement.heading == placement.heading for entry in self.entries):
            return 0
        return self._count_tokens(f"### {placement.heading}") + 1

    def trim_to_budget(self) -> None:
        """Drops the last lines while the block as a whole is over its budget.

        A counter may find more in the whole than in its parts.
        """
        droppable = [entry for entry in self.entries if entry.placement.heading != IDENTITY_HEADING]
        while (
            droppable
            and self._count_tokens(_render_markdown(self.ordered_entries())) > self._budgets.total
        ):
            last = droppable.pop()
            self.entries.remove(last)
            self.omitted.append(BlockOmission(last.memory, last.placement, "budget"))

    def ordered_entries(self) -> list[BlockEntry]:
        """The lines by the order of headings, under each the weightiest first."""
        return sorted(
            self.entries, key=lambda entry: SECTION_HEADINGS.index(entry.placement.heading)
        )

    def build_warnings(self, tokens: int) -> tuple[BlockWarning, ...]:
        """The limits of which 80 % are taken."""
        omitted_by_reason = Counter(item.reason for item in self.omitted)
        omitted_by_section = Counter(
            item.placement.sections[0] for item in self.omitted if item.reason == "budget"
        )
        used: Counter[BudgetSection] = Counter()
        for entry in self.entries:
            used[entry.placement.sections[0]] += entry.tokens
        limits = [
            *(
                BlockWarning(
                    section.value,
                    used[section],
                    self._budgets.tokens_for(section),
                    omitted_by_section[section],
                )
                for section in BudgetSection
            ),
            BlockWarning("total", tokens, self._budgets.total, omitted_by_reason["budget"]),
            BlockWarning(
                "entries", len(self.entries), self._budgets.entries, omitted_by_reason["entries"]
            ),
        ]
        return tuple(
            item
            for item in limits
            if item.omitted > 0 or 0 < NEARLY_FULL_SHARE * item.limit <= item.used
        )


def _render_omissions(omitted: Iterable[BlockOmission]) -> str:
    """Renders the omitted memories by kind, and how to get them."""
    kinds = Counter(omission.memory.kind.value for omission in omitted)
    listing = ", ".join(
        f"{count} {kind if count == 1 else pluralize(kind)}" for kind, count in kinds.most_common()
    )
    return f"_Left out for room: {listing}. Ask recall for what you need of them._"


def _render_with_notes(
    context_input: ContextInput,
    entries: Sequence[BlockEntry],
    omitted: Sequence[BlockOmission],
    fits: Callable[[str], bool],
) -> str:
    """Renders the block with the files that made memories stale, and with omissions if there is
    room."""
    omission_note = _render_omissions(omitted) if omitted else ""
    cause_lists = [
        context_input.stale_causes[:n] for n in range(len(context_input.stale_causes), 0, -1)
    ]
    variants = [(omission_note, cause_list) for cause_list in (*cause_lists, ())] + [
        ("", cause_list) for cause_list in cause_lists
    ]
    fitting = (text for variant in variants if fits(text := _render_markdown(entries, *variant)))
    return next(fitting, _render_markdown(entries))


def _render_markdown(
    entries: Sequence[BlockEntry], omission_note: str = "", causes: Sequence[str] = ()
) -> str:
    if not entries:
        return ""
    lines: dict[str, list[str]] = {STALE_HEADING: list(causes)} if causes else {}
    shown = {entry.placement.heading for entry in entries}
    if {RULES_HEADING, PREFERENCES_HEADING} <= shown:
        lines[PREFERENCES_HEADING] = [PRECEDENCE]
    for entry in entries:
        lines.setdefault(entry.placement.heading, []).append(entry.text)
    headings = sorted(lines, key=SECTION_HEADINGS.index)
    return render_block(((f"### {heading}", lines[heading]) for heading in headings), omission_note)
