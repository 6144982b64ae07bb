"""Grouping of a conversation into exchanges: a user message and the replies to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reverie.domain.extraction.conversation.key_statements import (
    extract_informative_sentences,
    is_code_line,
)
from reverie.domain.extraction.conversation.topic_segmentation import (
    COMMAND_MESSAGE,
    NOISE_MESSAGE,
    TopicSegment,
    is_request,
)
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.text.index_terms import content_words
from reverie.domain.text.markdown import parse_blocks, shorten, split_sentences, to_plain_text
from reverie.domain.text.turns import TurnText

MAX_REQUEST = 800
MAX_STATEMENT = 240
MAX_STATEMENTS = 30

_COMMAND_NAME = re.compile(r"<command-name>\s*(/?[\w:-]+)")
_COMMAND_ARGUMENTS = re.compile(r"<command-args>([^<]*+)</command-args>")
_TITLE = re.compile(r"\btitle:\s*(.+)")
_TITLE_NUMBER = re.compile(r"^number:\s*(\d+)", re.M)
_PASTE = re.compile(
    r"diff --git|<persisted-output>|^@@ |^[+-]{3} [ab]/|^#+ (?:Context|Your task)\b|^Traceback \("
    r"|^[^\S\n]*+at [^\s(]++\(.*:\d++\)|^\[\d\d/\d\d/\d\d |^Run \S+@|^\$ ",
    re.M,
)
# From there on, what was pasted is changed code.
_DIFF = re.compile(r"\bdiff --git a/|^[ \t]*+(?:@@ -\d|[+-]{3} [ab]/)", re.M)
_OUTPUT_LINE = re.compile(
    r"^\s*(?:[✨📦📍✅❌👀☁️•●⚠]|\d{1,2}s$|\[\d|-{4,}|={4,}|[\w.-]+@[\w.-]+[:$#]|/\S+/\S+|at \S+\("
    r"|\S+: \S+: |[A-Z]\w+ing \S+ https?://|\w+=\S*$|[{}\[\]]|//|return\b|if \w+ ?[!=]="
    r"|If you need specific details from before exiting plan mode"
    r"|(?:\w+ ){1,4}failed: |\w+ :?= |Run \S+[@=/]|(?:with|env|on|jobs):\s*$"
    r"|[a-z][\w-]*: ?\S*$|\S+ing \S+$"
    r"|(?:ERROR|Error|error|FAIL|WARN(?:ING)?|fatal|panic)\b:?)"
)
# An indented line that is no sentence and no item.
_BELOW_OUTPUT = re.compile(r"[ \t]+[^\W\d][^\n]*[^\s.!?:;,。：]$")
_ERROR_LINE = re.compile(r"\b(?:ERROR|[Ee]rror|FAIL(?:ED)?|fatal|panic|not found)\b")
_POLITE_OPENING = re.compile(
    r"^(?:(?:please|ok(?:ay)?|so|now|hey|hi|also|and|yup|yes|that'?s good|but|can you|could you"
    r"|let'?s (?!not)"
    r"(?:go ahead and |also )?|i(?:'d| would) like you to|i want(?: you)? to|we need(?: to)?"
    r"|(?:it'?s )?time to|go ahead and)[,!.:]?\s+)+",
    re.I,
)

# Remarks on the result of the last report, not on its subject.
REMARK = re.compile(
    r"(?:confirmed|looks? (?:good|great)|(?:that|it|this) (?:fixed|works?|worked|did)|down to"
    r"|down from|works\b|great|perfect|nice|good|thanks"
    r"|i (?:also )?(?:ran|tested|added|did|already)\b)",
    re.I,
)
_OPENINGS = re.compile(
    r"^(?:u+m+|uh|hm+|(?:also|ok(?:ay)?|so|and|but|oh|well|now|hey|hi|yes|yup|yep|yeah"
    r"|(?:no|nope|sure|great|good|perfect|nice|thanks|thank you|cool|right)"
    r"(?=\s*[,.!:;—–]|\s-)|actually|please|one (?:more )?thing"
    r"|另外|还有|好的|请)\b[\s,.!:;—–-]*)+",
    re.I,
)
_DEPENDENT_START = re.compile(
    r"^(?:it|this|that|these|those|they|he|she|its|their|just the|just \w+\.$|only|which|because"
    r"|since"
    r"|otherwise|if (?:so|not|we'?re)|not|same|both|but|so that|e\.g|i\.e|for example|on success"
    r"|no (?:need|more)|keep that)\b|^[A-Z][\w.]*(?: (?:[A-Z][\w.]* ?)?)?\.$"
    r"|^(?:它|这|那|因为|否则|只)",
    re.I,
)


# A sentence that begins with a small letter, as in a quick message; code is skipped.
_INFORMAL_START = re.compile(
    r"`[^`]*`|(?<=[a-z)\d'\"`][.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)(?<!\bcf\.)"
    r"\s+[a-z](?=[a-z']*(?:[\s,;:]|$))"
)


def extract_request(content: str) -> str:
    """Extracts the request of a message: at most `MAX_REQUEST` characters, one line; "" if none.

    A slash command gives its name and arguments. Of a pasted context only the title is kept.
    """
    if NOISE_MESSAGE.match(content):
        return ""
    if COMMAND_MESSAGE.match(content):
        name, arguments = _COMMAND_NAME.search(content), _COMMAND_ARGUMENTS.search(content)
        if not name:
            return to_plain_text(content.strip().partition("\n")[0])[:MAX_REQUEST]
        command = f"{name[1]} {arguments[1].strip()}" if arguments else name[1]
        return to_plain_text(command)[:MAX_REQUEST]
    if _PASTE.search(content[:300]):
        return _extract_title(content) or shorten(" ".join(_split_message(content)), MAX_REQUEST)
    text = re.sub(
        r"^(?:yup|yes|yep|ok(?:ay)?)[,!.]?\s+(?=\S+\s)",
        "",
        " ".join(_split_message(content)),
        flags=re.I,
    )
    return shorten(text, MAX_REQUEST)


def extract_statements(content: str) -> list[str]:
    """Extracts the statements of a user's message; dependent sentences stay together."""
    if (
        NOISE_MESSAGE.match(content)
        or COMMAND_MESSAGE.match(content)
        or _PASTE.search(content[:300])
    ):
        return []
    message_sentences = [
        _strip_opening(sentence) if not _DEPENDENT_START.match(sentence) else sentence
        for sentence in _split_message(content)
    ]
    groups: list[str] = []
    for sentence in (text for text in message_sentences if len(text) > 3):
        leans = groups and _DEPENDENT_START.match(sentence)
        if leans and len(groups[-1]) + len(sentence) < MAX_STATEMENT:
            groups[-1] = f"{groups[-1]} {sentence}"
        else:
            groups.append(sentence)
    return groups[:MAX_STATEMENTS]


def _strip_opening(sentence: str) -> str:
    """Without "also", "ok so" and "please" at its beginning."""
    rest = _OPENINGS.sub("", sentence).lstrip(" ,;:—–-")
    return rest[:1].upper() + rest[1:] if rest else ""


def is_slash_command(request: str) -> bool:
    """Returns whether a request, as `extract_request` gives it, is a slash command."""
    return request.startswith("/")


def extract_subject(content: str, request: str) -> str:
    """Extracts a few words for the subject of a request, or "" if it has too few."""
    first = next(iter(split_sentences(request)), "")
    subject = _POLITE_OPENING.sub("", first).strip(" .:;,")
    is_informative = len(subject) >= 16 and not REMARK.match(subject)
    return shorten(subject, 110) if is_informative else ""


def _extract_title(content: str) -> str:
    title, number = _TITLE.search(content), _TITLE_NUMBER.search(content)
    if not title:
        return ""
    return to_plain_text(f"#{number[1]} {title[1]}" if number else title[1])[:MAX_REQUEST]


def _drop_pasted_output(content: str) -> str:
    """Removes the output that was pasted into a message, if its lines can be recognised."""
    lines = content.splitlines()
    text_lines = [
        line for line in lines if line.strip() and not line.startswith((" ", "\t", "|", ">", "#"))
    ]
    unpunctuated = [
        line for line in text_lines if line.rstrip()[-1] not in ".?!:,;。？！：，…)\"'`"
    ]
    if len(text_lines) < 5 or len(unpunctuated) * 2 < len(text_lines):
        return content
    dropped = {line for line in unpunctuated if len(line.split()) <= 25}
    return "\n".join(line for line in lines if line not in dropped)


def _iter_output_lines(content: str) -> Iterator[str]:
    """The lines that a program printed: those that look so, and the indented ones below them."""
    is_output = False
    for line in content.splitlines():
        is_below = is_output and _BELOW_OUTPUT.match(line) is not None
        is_output = is_below or _OUTPUT_LINE.match(line) is not None
        if is_output:
            yield line


def _split_message(content: str) -> list[str]:
    """The user's own sentences, then the error that a pasted output ends in."""
    content = _DIFF.split(content, maxsplit=1)[0]
    lines = [
        "" if is_code_line(line) else line for line in _drop_pasted_output(content).splitlines()
    ]
    output_lines = list(_iter_output_lines(content))
    printed = frozenset(output_lines)
    prose = "\n".join("" if line in printed else line for line in lines)
    message_sentences: list[str] = []
    for block in parse_blocks(prose):
        if block.type == "text" or (
            block.type in {"item", "heading"} and len(message_sentences) < 6
        ):
            # "I want" and questions count, unlike an agent's.
            text = to_plain_text(block.text)
            # A single backtick would hide the ends of the sentences after it.
            text = text.replace("`", "") if text.count("`") % 2 else text
            formal = _INFORMAL_START.sub(lambda m: m[0] if m[0][0] == "`" else m[0].upper(), text)
            sentences = [sentence for sentence in split_sentences(formal) if len(sentence) > 3]
            if len(sentences) >= 8:
                sentences = extract_informative_sentences(block.text)[:8]
            message_sentences += sentences
    error = next((to_plain_text(line) for line in output_lines if _ERROR_LINE.search(line)), "")
    if error:
        # What announces a list there was output too.
        message_sentences[1:] = [s for s in message_sentences[1:] if s[-1] not in ":："]
        error = "" if any(map(_ERROR_LINE.search, message_sentences)) else error
    unique = dict.fromkeys([*message_sentences, shorten(error, 200)])
    return [
        sentence if sentence[-1] in ".!?:;,…。！？：，；" else f"{sentence}."
        for sentence in unique
        if sentence
    ]


@dataclass(frozen=True)
class Exchange:
    """A user's message, and the turns until the next one.

    `previous_subject`: the subject before this one. `verdict`: the user's next message.
    `is_reply`: it answers a question or a proposal.
    `later_choices`: the words of what the user chooses in later messages ("go with the table").
    """

    opening: TurnText | None
    request: str
    subject: str
    replies: tuple[TurnText, ...]
    assent: TurnText | None = None
    previous_subject: str = ""
    verdict: TurnText | None = None
    is_reply: bool = False
    later_choices: frozenset[str] = frozenset()

    @property
    def asks(self) -> bool:
        """Whether the message asks something, wherever in it."""
        return self.opening is not None and "?" in self.opening.content

    @property
    def is_refused(self) -> bool:
        return (
            self.verdict is not None
            and discourse_markers.REFUSAL.search(self.verdict.content[:200]) is not None
        )

    @property
    def is_confirmed(self) -> bool:
        """Whether the user agrees to a proposal; who agrees and asks on only goes on talking."""
        reply, verdict = self.last_reply, self.verdict
        if reply is None or verdict is None or self.is_refused:
            return False
        is_proposal = discourse_markers.PROPOSAL.search(reply.content) is not None
        is_answer = "?" in reply.content or (is_proposal and "?" not in verdict.content)
        return is_answer and discourse_markers.CONFIRMATION.match(verdict.content) is not None

    @property
    def is_review(self) -> bool:
        """Whether the agent reviews somebody's changes: it lists advice, and decides nothing."""
        last_reply = self.last_reply
        return bool(
            (self.opening and sentence_patterns.REVIEW_REQUEST.search(self.opening.content[:400]))
            or (last_reply and sentence_patterns.REVIEW_REPORT.search(last_reply.content[:2_000]))
        )

    @property
    def last_reply(self) -> TurnText | None:
        messages = [turn for turn in self.replies if turn.role == "assistant"]
        return messages[-1] if messages else None


def split_exchanges(segment: TopicSegment) -> list[Exchange]:
    """The exchanges of a segment in order; the first may have no opening."""
    exchanges: list[Exchange] = []
    opening: TurnText | None = None
    replies: list[TurnText] = []
    for turn in segment.turns:
        if turn.role == "user" and not NOISE_MESSAGE.match(turn.content):
            exchanges.append(_build_exchange(opening, replies, exchanges))
            opening, replies = turn, []
        else:
            replies.append(turn)
    exchanges.append(_build_exchange(opening, replies, exchanges))
    judged: list[Exchange] = []
    following: Exchange | None = None
    later_choices: frozenset[str] = frozenset()
    for exchange in reversed(exchanges):
        with_verdict = _add_user_verdict(exchange, following)
        judged.append(replace(with_verdict, later_choices=later_choices))
        if exchange.opening:
            later_choices |= _find_chosen_words(exchange.opening.content)
        following = exchange
    return judged[::-1]


def _find_chosen_words(content: str) -> frozenset[str]:
    chosen = sentence_patterns.CHOSEN.findall(content[:MAX_REQUEST])
    return frozenset(
        word for words in chosen for part in words for word in content_words(part) if len(word) > 3
    )


def _build_exchange(
    opening: TurnText | None, replies: list[TurnText], previous: list[Exchange]
) -> Exchange:
    request = extract_request(opening.content) if opening and is_request(opening) else ""
    subject = extract_subject(opening.content, request) if opening else ""
    previous_subject = previous[-1].subject if previous else ""
    last_reply = previous[-1].last_reply if previous else None
    return Exchange(
        opening,
        request,
        subject or previous_subject,
        tuple(replies),
        previous_subject=previous_subject,
        is_reply=last_reply is not None
        and bool(
            discourse_markers.PROPOSAL.search(last_reply.content) or "?" in last_reply.content
        ),
    )


def _add_user_verdict(exchange: Exchange, following: Exchange | None) -> Exchange:
    """Adds the verdict of the user's next message on the report: agreement or correction."""
    opening = following.opening if following else None
    if opening is None:
        return exchange
    assents = discourse_markers.ASSENT.match(opening.content)
    return replace(exchange, assent=opening if assents else None, verdict=opening)
