"""The subtopics of a topic: what its exchanges state, where a subtopic ends, and its problem."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reverie.domain.extraction.conversation.exchanges import (
    REMARK,
    Exchange,
    is_slash_command,
    split_exchanges,
)
from reverie.domain.extraction.conversation.key_statements import is_generic_heading
from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment
from reverie.domain.extraction.conversation.work_log import select_write_turns
from reverie.domain.extraction.records.agent_statements import iter_agent_statements
from reverie.domain.extraction.records.record_statements import (
    ANAPHOR,
    MIN_STATEMENT_BYTES,
    RecordStatement,
    strip_line_places,
    strip_opening,
)
from reverie.domain.extraction.records.user_statements import (
    iter_user_answers,
    iter_user_statements,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.extraction.wording.proofreading import drop_frame, is_caption
from reverie.domain.extraction.wording.salience import extract_exact_terms, is_question
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import shorten, split_sentences

MIN_OUTCOME_SCORE, OUTCOME_SCORE = -4.0, 2.5
"""The best point in the report on a request that was worked on weighs the latter at least, unless
it is below the former: then it points to a place, and says nothing."""
MIN_SUBTOPIC_CHARS = 2_500
"""Characters of talk after which another request of the same topic begins its own record."""


_POINT_NUMBER = re.compile(r":\s+\d{1,2}[.)]\s+(?=\S)")
_NUMBERING = re.compile(r"^(?:[-*•#⨯✗✘×]+\s+|\d{1,2}[.)]\s+)+")
_QUOTING_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|so|now|and|then|next|also)[,.]? )*"
    r"(?:(?:let'?s |please |can you |could you )*"
    r"(?:address|look at|fix|do|handle|take|tell me about)"
    r"(?: (?:(?:this|these|that|the)(?: \w+){0,2}(?: \d+)?)?\s*(?:[:：]|-\s)\s*|\s*[:：]\s*"
    r"| (?=\d+[.)] ))"
    r"|(?:a|another|one more|next) (?:review )?comment\s*[:：]\s*"
    r"|got this comment\b[^.:：?!]{0,60}[.:：?!]\s*"
    r"|implement (?:the following|this) plan\s*[:：.]\s*)"
    r"(?:#*\s*plan\s*[:：]\s*)?|^(?:minor|nit|issue)\s*(?:[:：]|-\s)\s*",
    re.I,
)
"""What comes before a pasted comment or plan."""
_EMPTY_REQUEST = re.compile(
    r"^(?:(?:yes|ok(?:ay)?|please|now|then|go ahead and|let'?s)[,.]? )*"
    r"(?:implement|do|fix|apply|commit|push|merge|try|run|continue|proceed|go)(?: \w+){0,3}[.!]*$"
    r"|^(?:this|that|it) (?:isn'?t|is not|is|looks?) \w+[.!]*$"
    r"|^(?:changes (?:not staged|to be committed)|untracked files|modified:|no changes added)\b"
    r"|^this is the output\b|^(?:ah+|oh|hm+|wow|whoops)\b[^?]*!$|^on branch \S+\.?$|^\[request",
    re.I,
)

_NAME_ALONE = re.compile(r"[A-Za-z]{2,} \d[\d.]*\W?$")
"""A short sentence that names a version, such as "Python 3.12."."""
_FINE = re.compile(
    r"[^.!?]{0,40}\b(?:is|are|looks?|sounds?) (?:fine|good|great|ok(?:ay)?|perfect)\W*", re.I
)
# "Let's include those in the tests": what was named before is asked for.
_NAMELESS = re.compile(
    r"^[^`\d]{0,60}\b(?:those|these)\b"
    r"(?=\s*(?:[.,;?!]|$|(?:in|to|on|into|from|with|for|as|at|and|or|too|also|now|up|out)\b))",
    re.I,
)
_WISH = re.compile(r"\b(?:should|could|make sure|let'?s)\b|应该|希望", re.I)
_BARE_ORDER = re.compile(
    r"(?:(?:please|can you|could you|let'?s|go ahead and|so|and|also|just|you can)[, ]{1,4}){0,4}"
    r"(?:take a look|look|dig in|investigate|check|find|fix|show|tell|explain|ask|see|read|review"
    r"|draft|summari[sz]e|propose|address|do|go|get|start|set|build|help"
    r"|figure)\b|what do you (?:think|say)",
    re.I,
)
# "Find out why that fails": of what was named before.
_POINTING_BACK = re.compile(r"\b(?:why|how|when|where|whether|if) (?:that|this|it)\b", re.I)


@dataclass(frozen=True)
class AnnotatedExchange:
    """An exchange with the statements that it makes."""

    exchange: Exchange
    statements: tuple[RecordStatement, ...]


def annotate_exchanges(segment: TopicSegment) -> list[AnnotatedExchange]:
    """Reads the statements of each exchange of a topic."""
    is_work = any(turn.role == "tool" for turn in segment.turns)
    return [_read_exchange(exchange, is_work) for exchange in split_exchanges(segment)]


def _read_exchange(exchange: Exchange, is_work: bool) -> AnnotatedExchange:
    """Reads an exchange; the best point of the report on a request worked on has weight."""
    statements = list(_iter_statements(exchange, is_work))
    outcome = [n for n, s in enumerate(statements) if s.turn is exchange.last_reply]
    is_worked_on = any(turn.role == "tool" for turn in exchange.replies)
    if exchange.request and is_worked_on and outcome:
        best = max(outcome, key=lambda n: statements[n].score)
        if MIN_OUTCOME_SCORE <= statements[best].score < OUTCOME_SCORE:
            statements[best] = replace(statements[best], score=OUTCOME_SCORE)
    return AnnotatedExchange(exchange, tuple(statements))


def _iter_statements(exchange: Exchange, is_work: bool) -> Iterator[RecordStatement]:
    if exchange.opening and not is_slash_command(exchange.request):
        yield from iter_user_statements(exchange)
    for turn in exchange.replies:
        if turn.role == "assistant":
            yield from iter_agent_statements(turn, exchange, is_work)
        elif turn.role == "tool":
            yield from iter_user_answers(turn)


def _drop_reviews(stated: Iterable[AnnotatedExchange]) -> Iterator[AnnotatedExchange]:
    """Leaves out the reviews of changes, and the context that a command for one brings."""
    is_review = is_context = False
    for item in stated:
        # A command is a message without a reply, and its context is the next one.
        is_review = item.exchange.is_review or (is_review and is_context)
        is_context = not item.exchange.replies
        if not is_review:
            yield item


def split_subtopics(stated: Iterable[AnnotatedExchange]) -> Iterator[list[AnnotatedExchange]]:
    """Splits a topic into subtopics, without the reviews of somebody's changes."""
    subtopic: list[AnnotatedExchange] = []
    size = 0
    for item in _drop_reviews(stated):
        if (
            subtopic
            and _is_new_request(item.exchange)
            and _is_closed(subtopic, size, item.exchange)
        ):
            yield subtopic
            subtopic, size = [], 0
        subtopic.append(item)
        size += sum(len(t.content) for t in item.exchange.replies if t.role == "assistant")
    if subtopic:
        yield subtopic


def is_general_question(exchange: Exchange) -> bool:
    """Whether the agent answered a question without a look at the project."""
    return is_question(exchange.request) and all(t.role == "assistant" for t in exchange.replies)


def _is_new_request(exchange: Exchange) -> bool:
    opening = exchange.opening.content if exchange.opening else ""
    return (
        len(exchange.request.split()) >= 6
        and not discourse_markers.REFUSAL.search(opening[:200])
        and bool(list_informative_sentences(exchange.request))
    )


def _is_closed(subtopic: Sequence[AnnotatedExchange], size: int, following: Exchange) -> bool:
    """Whether a subtopic of `size` characters of messages is over before another request.

    Talk is over once it is long; work, once its report does not wait for an answer.
    """
    if subtopic[-1].exchange.last_reply is None:
        # What was interrupted is said again, unless something else is asked for.
        broken_off = subtopic[-1].exchange.request
        is_named = broken_off and not is_slash_command(broken_off)
        words = content_words(broken_off)
        return (
            len(subtopic) == 1 and bool(is_named) and not words & content_words(following.request)
        )
    replies = [turn for item in subtopic for turn in item.exchange.replies]
    is_work = any(turn.role == "tool" for turn in replies)
    if is_work and is_general_question(following) and following.assent:
        # A question beside the work: the next message goes on with the work.
        return False
    has_written = bool(select_write_turns(replies))
    agrees = following.opening and discourse_markers.CONFIRMATION.match(following.opening.content)
    if agrees and not has_written:
        return False
    return size >= MIN_SUBTOPIC_CHARS or (is_work and (has_written or not following.is_reply))


def find_problem(exchanges: Sequence[Exchange], limit: int) -> str:
    """The first whole sentences of the first request that names a subtopic; "" if none does.

    Assents, remarks on a result, and states of a branch name none. A guess of the user does not
    stand where something else was told. Of a slash command its title is taken. An order to find out
    more of what was named before gives way to what it is about.
    """
    command = introduction = ""
    for exchange in exchanges:
        request = exchange.request
        if is_slash_command(request):
            arguments = request.partition(" ")[2]
            command = command or request
            request = arguments if len(arguments.split()) >= 3 else ""
        sentences = list_informative_sentences(request)
        if sentences:
            reported = [s for s in sentences if not sentence_patterns.GUESS.match(s)] or sentences
            reported = [_drop_open_advice(s) for s in reported]
            introduction = introduction or reported[0]
            reported = [s for s in reported if s[-1] not in ":：" and not _NAMELESS.search(s)]
        if sentences and reported:
            if exchange.previous_subject and _asks_on(reported[0]):
                reported[0] = f"{exchange.previous_subject}."
            return _take_sentences(reported, limit)
    if ANAPHOR.search(introduction):
        introduction = ""
    return shorten(command or introduction, limit)


def _asks_on(sentence: str) -> bool:
    """Whether a sentence has the agent find out more of what was named before it."""
    order = re.split("[,:;]", sentence, maxsplit=1)[0]
    return _is_bare_order(order) and _POINTING_BACK.search(order) is not None


def _take_sentences(sentences: Sequence[str], limit: int) -> str:
    """The first sentences that fit; bare orders to the agent are left out after the first."""
    if len(sentences[0]) > limit:
        return shorten(sentences[0], limit)
    taken = [sentences[0]]
    for sentence in sentences[1:]:
        if sum(map(len, taken)) + len(sentence) >= limit:
            break
        if not _is_bare_order(sentence):
            taken.append(sentence)
    return " ".join(taken)


def _drop_open_advice(sentence: str) -> str:
    """Without the advice that a sentence ends with, and whose code is not told."""
    told, _, advice = sentence.rstrip(":： ").rpartition(": ")
    is_open = sentence[-1] in ":：" and discourse_markers.SUGGESTION.match(advice)
    return f"{told}." if told and is_open else sentence


def list_informative_sentences(request: str) -> list[str]:
    bare = _QUOTING_OPENING.sub("", request)
    sentences = [
        drop_frame(strip_line_places(strip_opening(_NUMBERING.sub("", _POINT_NUMBER.sub(": ", s)))))
        for s in split_sentences(bare)
    ]
    informative = [
        s[:1].upper() + s[1:] if re.match(r"[a-z]+\b(?![._-]\w)", s) else s
        for s in sentences
        if (len(s) > 12 or not s.isascii() or _NAME_ALONE.match(s))
        and not discourse_markers.PLEASANTRY.match(s)
        and not discourse_markers.ASSENT.match(s)
        and not REMARK.match(s)
        and not sentence_patterns.TRANSIENT.search(s)
        and not sentence_patterns.LINE_REFERENCE.match(s)
        and not discourse_markers.SUGGESTION.match(s)
        and not discourse_markers.ASIDE_OPENING.match(s)
        and not _EMPTY_REQUEST.match(s)
        and not _FINE.fullmatch(s)
        and not is_generic_heading(s)
        and not sentence_patterns.LOCATION_POINTER.search(s)
    ]
    if len(informative) > 1 and is_caption(informative[0]):
        informative.pop(0)
    return informative


def _is_bare_order(sentence: str) -> bool:
    """Whether a sentence has the agent look or act, and names nothing."""
    return bool(_BARE_ORDER.match(sentence)) and not extract_exact_terms(sentence)


def is_order(sentence: str) -> bool:
    """Whether a sentence wants something done, or is too short to tell anything."""
    cues = (_BARE_ORDER, sentence_patterns.DIRECTIVE, sentence_patterns.ONE_OFF_ORDER)
    return (
        len(sentence.encode()) < MIN_STATEMENT_BYTES
        or bool(_WISH.search(sentence))
        or any(cue.match(sentence) for cue in cues)
    )
