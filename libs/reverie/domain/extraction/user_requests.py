"""Extraction of the request and the statements of a user message, without pasted output."""

from __future__ import annotations

import re

from reverie.domain.extraction import sentence_patterns
from reverie.domain.extraction.key_statements import (
    extract_informative_sentences,
    group_dependent_sentences,
)
from reverie.domain.extraction.topic_segmentation import COMMAND_MESSAGE, NOISE_MESSAGE
from reverie.domain.text.markdown import parse_blocks, shorten, split_sentences, to_plain_text

MAX_REQUEST = 500
MAX_STATEMENT = 240
MAX_STATEMENTS = 30

_COMMAND_NAME = re.compile(r"<command-name>\s*(/?[\w:-]+)")
_COMMAND_ARGUMENTS = re.compile(r"<command-args>\s*([^<]*?)\s*</command-args>", re.S)
_TITLE = re.compile(r"\btitle:\s*(.+)")
_TITLE_NUMBER = re.compile(r"^number:\s*(\d+)", re.M)
_PASTE = re.compile(
    r"diff --git|<persisted-output>|^@@ |^[+-]{3} [ab]/|^#+ (?:Context|Your task)\b|^Traceback \("
    r"|^\s*at \S+\(.*:\d+\)|^\[\d\d/\d\d/\d\d |^Run \S+@|^\$ ",
    re.M,
)
_OUTPUT_LINE = re.compile(
    r"^\s*(?:[✨📦📍✅❌👀☁️•●⚠]|\d{1,2}s$|\[\d|-{4,}|={4,}|[\w.-]+@[\w.-]+[:$#]|/\S+/\S+|at \S+\("
    r"|\S+: \S+: |[A-Z]\w+ing \S+ https?://|\w+=\S*$|[{}\[\]]|//|return\b|if \w+ ?[!=]="
    r"|If you need specific details from before exiting plan mode"
    r"|\w+ :?= |Run \S+[@=/]|(?:with|env|on|jobs):\s*$|[a-z][\w-]*: ?\S*$|\S+ing \S+$"
    r"|(?:ERROR|Error|error|FAIL|WARN(?:ING)?|fatal|panic)\b:?)"
)
_ERROR_LINE = re.compile(r"\b(?:ERROR|[Ee]rror|FAIL(?:ED)?|fatal|panic|not found)\b")
_POLITE_OPENING = re.compile(
    r"^(?:(?:please|ok(?:ay)?|so|now|hey|hi|also|and|yup|yes|that'?s good|but|can you|could you"
    r"|let'?s (?!not)"
    r"(?:go ahead and |also )?|i(?:'d| would) like you to|i want(?: you)? to|we need(?: to)?"
    r"|(?:it'?s )?time to|go ahead and)[,!.:]?\s+)+",
    re.I,
)

# Says of what was just reported how it went, and not what it is about.
_REMARK = re.compile(
    r"(?:confirmed|looks? (?:good|great)|(?:that|it|this) (?:fixed|works?|worked|did)|down to"
    r"|down from|works\b|great|perfect|nice|good|thanks|i (?:ran|tested|added|did|already)\b)",
    re.I,
)
_OPENINGS = re.compile(
    r"^(?:u+m+|uh|hm+|(?:also|ok(?:ay)?|so|and|but|oh|well|now|hey|hi|yes|yup|yep|yeah|no|nope|sure"
    r"|great|good"
    r"|perfect|nice|thanks|thank you|cool|actually|right|please|one (?:more )?thing|btw|by the way"
    r"|另外|还有|好的|请)\b[\s,.!:;—–-]*)+",
    re.I,
)
_DEPENDENT_START = re.compile(
    r"^(?:it|this|that|these|those|they|he|she|its|their|just the|just \w+\.$|only|which|because"
    r"|since"
    r"|otherwise|if (?:so|not|we'?re)|not|same|both|but|so that|e\.g|i\.e|for example|on success"
    r"|no (?:need|more)|keep that)\b|^(?:[A-Z][\w.]* ?){1,2}\.$|^(?:它|这|那|因为|否则|只)",
    re.I,
)


def extract_request(content: str) -> str:
    """The request in a message: at most `MAX_REQUEST` characters, one line; "" where none is.

    A slash command is its name and arguments; of a pasted context only its title is kept.
    """
    if NOISE_MESSAGE.match(content):
        return ""
    if COMMAND_MESSAGE.match(content):
        return _format_command(content)
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
    """What a user's message states, thing by thing: what leans on a sentence stays with it."""
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
    groups = group_dependent_sentences(
        (text for text in message_sentences if len(text) > 3), _DEPENDENT_START, MAX_STATEMENT
    )
    return groups[:MAX_STATEMENTS]


def find_failure(content: str) -> str:
    """The failure that a message tells of, in the user's words; "" where it tells of none."""
    failures = (
        statement
        for statement in extract_statements(content)
        if sentence_patterns.USER_PROBLEM.search(statement)
    )
    return next((statement for statement in failures if not statement.endswith(("?", "？"))), "")


def _strip_opening(sentence: str) -> str:
    """Without "also", "ok so" and "please" at its beginning."""
    rest = _OPENINGS.sub("", sentence).lstrip(" ,;:—–-")
    return rest[:1].upper() + rest[1:] if rest else ""


def is_slash_command(request: str) -> bool:
    """Whether a request, as `extract_request` gives it, is a slash command."""
    return request.startswith("/")


def extract_subject(content: str, request: str) -> str:
    """A few words for what a request is about, or "" where it says too little."""
    first = next(iter(split_sentences(request)), "")
    subject = _POLITE_OPENING.sub("", first).strip(" .:;,")
    is_informative = len(subject) >= 16 and not _REMARK.match(subject)
    return shorten(subject, 110) if is_informative else ""


def _format_command(content: str) -> str:
    name, arguments = _COMMAND_NAME.search(content), _COMMAND_ARGUMENTS.search(content)
    if not name:
        return to_plain_text(content.strip().partition("\n")[0])[:MAX_REQUEST]
    words = (name[1], arguments[1] if arguments else "")
    return to_plain_text(" ".join(filter(None, words)))[:MAX_REQUEST]


def _extract_title(content: str) -> str:
    title, number = _TITLE.search(content), _TITLE_NUMBER.search(content)
    if not title:
        return ""
    return to_plain_text(f"#{number[1]} {title[1]}" if number else title[1])[:MAX_REQUEST]


def _drop_pasted_output(content: str) -> str:
    """A message without the output that was pasted into it, as far as its lines give that away."""
    lines = content.splitlines()
    text_lines = [
        line for line in lines if line.strip() and not line.startswith((" ", "\t", "|", ">"))
    ]
    unpunctuated = [
        line for line in text_lines if line.rstrip()[-1] not in ".?!:,;。？！：，…)\"'`"
    ]
    if len(text_lines) < 5 or len(unpunctuated) * 2 < len(text_lines):
        return content
    return "\n".join(line for line in lines if line not in unpunctuated or len(line.split()) > 25)


def _split_message(content: str) -> list[str]:
    """The user's own sentences, then the error that a pasted output ends in."""
    lines = _drop_pasted_output(content).splitlines()
    output_lines = [line for line in content.splitlines() if _OUTPUT_LINE.match(line)]
    prose = "\n".join("" if _OUTPUT_LINE.match(line) else line for line in lines)
    message_sentences: list[str] = []
    for block in parse_blocks(prose):
        if block.type == "text" or (
            block.type in {"item", "heading"} and len(message_sentences) < 6
        ):
            message_sentences += extract_user_sentences(block.text)
    error = next((to_plain_text(line) for line in output_lines if _ERROR_LINE.search(line)), "")
    unique = dict.fromkeys([*message_sentences, shorten(error, 200)])
    return [_end_with_period(sentence) for sentence in unique if sentence]


def _end_with_period(sentence: str) -> str:
    return sentence if sentence[-1] in ".!?:;,…。！？：，；" else f"{sentence}."


def extract_user_sentences(text: str) -> list[str]:
    """A user's sentences: "I want" and questions count, unlike an agent's."""
    all_sentences = [
        sentence for sentence in split_sentences(to_plain_text(text)) if len(sentence) > 3
    ]
    return all_sentences if len(all_sentences) < 8 else extract_informative_sentences(text)[:8]
