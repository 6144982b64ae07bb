"""Records of commits: what the message of a commit decides or explains, as one memory.

A message is kept if one of its statements says more than what was done: a reason, a rule, a
behaviour, a consequence. Work logs, links, thanks and remarks are left out of it. The messages of
merged requests are read in the same way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.wording import discourse_markers, sentence_patterns
from reverie.domain.staleness.file_changes import parse_reverted_commit
from reverie.domain.text.markdown import shorten
from reverie.domain.text.memory_fence import strip_fenced

MAX_COMMIT_CHARS = 1_600
MAX_EXAMINED_CHARS = 4_000
"""What stands further below in a message is not read."""
MIN_STATEMENT_WORDS = 6

_CONVENTIONAL_TYPE = r"(?:\w+(?:\([^)]*\))?!?: *)?"
_TRIVIAL_SUBJECT = re.compile(
    rf"^{_CONVENTIONAL_TYPE}(?:bump|release|version|update (?:dependenc|lock|changelog)"
    r"|typos?\b|fix(?:es|ed)? (?:a |the |some |minor )?(?:typos?|lint|format|whitespace|indent"
    r"|docstring)"
    r"|minor (?:rephras|reword|tweak|cleanup)"
    r"|lint|format(?:ting)?\b|prettier|wip\b|whitespace|v?\d+\.\d+)",
    re.I,
)
_ROUTINE_TYPE = re.compile(r"^(?:docs?|tests?|style|chore|ci|build|release)(?:\([^)]*\))?!?:", re.I)
_MERGE_SUBJECT = re.compile(r"^Merge (?:pull request|branch|remote|merge request|tag)\b")
_TRAILER = re.compile(
    r"^(?:[A-Z][\w-]+-(?:by|on|to|id|Id): |(?:Closes|Fixes|Refs?|See|Change-Id|Cc):? \S+$"
    r"|\(cherry picked from|git-svn-id:|[-*] \[[ xX]\] |[-=_*]{3,}$)",
    re.I,
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_HEADING = re.compile(r"^#{1,6} +\S")
_BULLET = re.compile(r"^\s*[-*•+] +")
_LINK = re.compile(r"https?://\S+|\bwww\.\S+|(?:(?<![\w.-])[\w.-]++/[\w.-]++)?#\d+\b")
_WORK_LOG = re.compile(
    r"^(?:(?:wip|first|initial|quick|another|more|also|some|extra|out with|here we go|let'?s|try"
    r"|merge|thanks?|cheers|kudos|(?:had|have) to|missed in|see)\b|h/?t\b"
    r"|(?:(?:add|adds|added|adding|fix|fixes|fixed|fixing|updat\w*|mov\w*|improv\w*|remov\w*|clean"
    r"\w*|correct\w*|tweak\w*|make|writ\w*|run|skip|drop|chang\w*|includ\w*|clarif\w*|rewrit\w*"
    r"|expand\w*|refresh\w*) (?:[^\s.;]+ ){0,4})?"
    r"(?:(?:unit)?tests?|testcases?|doctests?|docs?|documentation|docstrings?|readme|changelog"
    r"|comments?|badges?|examples?|lint\w*|ci|travis|coverage|typos?|whitespace|copypasta"
    r"|imports?)\b)",
    re.I,
)
_REMARK = re.compile(
    r"\b(?:guess|hopefully|probably|maybe|perhaps|oops|whoops|lol|haha|yay|sigh|wild|crazy|hell"
    r"|seriously|stolen|donated|hereby|credits?|courtesy|inspired by|in progress|going to"
    r"|todos?|in case this wasn'?t|still needs?|(?:ended|wound) up|need to add)\b|\?$"
    r"|:[a-z0-9]+(?:_[a-z0-9]+)+:",
    re.I,
)
_FIRST_PERSON = re.compile(r"\b(?:I|me|my)\b")
_TESTS_OR_DOCS = re.compile(
    r"\b(?:tests?|testing|doctests?|docs?|documentation|docstrings?|typos?|travis|ci|todos?)\b",
    re.I,
)
_CODE_NAME = re.compile(r"`[^`]+`|\w_\w|\w\.[a-z]\w+|\w\(\)|\b[A-Z][a-z]+[A-Z]\w*|--\w+|__\w+")
_REASON = re.compile(
    r"\b(?:because|since|due to|caus(?:es?|ed|ing)|so (?:that|as|it|we|there)|, so\b"
    r"|therefore|otherwise|as (?:it|they|this|that|the \w+ (?:is|was|are|were))\b|in order to"
    r"|to (?:avoid|prevent|accommodate|preserve|ensure|guarantee|improve|reduce)"
    r"|for .{3,40}compatib\w+|had a bug|problem|turns? out"
    r"|which (?:is|was|means|caus|broke|break|made|led)\w*)",
    re.I,
)
_CONTRAST = re.compile(
    r"\b(?:instead of|rather than|in favou?r of|no longer|any ?more|previously"
    r"|only (?:if|when|for|on|the)|by default|defaults? to|from now on|must(?:n'?t| not)?|never"
    r"|always|(?:do|does|did|is|are|was|were|wo|would|could|should)(?:n'?t| not)\b|cannot|can'?t"
    r"|can now|now (?:returns?|raises?|is|are|uses?|requires?)|even (?:if|though|when)"
    r"|unless|whenever|revert)\b",
    re.I,
)
_BEHAVIOUR = re.compile(
    r"\b(?:is|are|was|were|has|had|have|would|could|can|will|should|returns?|returned|raises?"
    r"|raised|fails?|failed|breaks?|broke|expects?|requires?|required|supports?|accepts?|throws?"
    r"|needs?|uses?|used|means?|allows?|prevents?|reduces?|avoids?|gives?|tolerates?|becomes?"
    r"|applies|keeps?|produces?|converts?|treats?|ignores?|now|when|if|while)\b",
    re.I,
)
_REPLACEMENT = re.compile(
    r"\b(?:replac(?:e[sd]?|ing)|renam(?:e[sd]?|ing)|switch(?:e[sd]|ing)?|chang(?:e[sd]?|ing)"
    r"|mov(?:e[sd]?|ing))\b.{2,80}\b(?:with|by|to|from|using)\b|\bbecomes\b"
    r"|\bswitch(?:ed)? to\b",
    re.I,
)
_CJK = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class CommitRecord:
    """The memory of a commit: its text and kind."""

    content: str
    kind: Kind


def extract_commit_record(subject: str, body: str) -> CommitRecord | None:
    """Extracts the record of a commit message or merged request; None if it is trivial.

    Recalled memory that was pasted into it is left out.
    """
    subject, _, body = strip_fenced(f"{subject}\n{body}").partition("\n")
    subject, text = subject.strip(), _clean_body(body)[:MAX_EXAMINED_CHARS]
    if _MERGE_SUBJECT.match(subject):
        # A forge puts the title of the request first.
        title, _, text = text.partition("\n")
        subject, text = title.strip(), text.strip()
    paragraphs = _drop_work_log(subject, text)
    if not subject or not (
        parse_reverted_commit(body)
        or any(_explains_change(statement) for statement in _iter_statements(paragraphs))
        or _subject_explains(subject)
    ):
        return None
    message = f"{subject}\n{paragraphs}".strip()
    return CommitRecord(shorten(message, MAX_COMMIT_CHARS), _classify(subject, message))


def _clean_body(body: str) -> str:
    """The body without trailers, comments, checklists, and headings of empty sections."""
    lines = (line.rstrip() for line in _COMMENT.sub("", body).strip().splitlines())
    kept: list[str] = []
    for line in lines:
        if _TRAILER.match(line.strip()):
            continue
        if _HEADING.match(line):
            _drop_empty_section(kept)
        kept.append(line)
    _drop_empty_section(kept)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _drop_empty_section(lines: list[str]) -> None:
    """Removes a last heading under which nothing stands."""
    while lines and not lines[-1].strip():
        lines.pop()
    if lines and _HEADING.match(lines[-1]):
        lines.pop()


def _drop_work_log(subject: str, text: str) -> str:
    """The body without paragraphs and list items that report work, link, or repeat the subject."""
    kept: list[str] = []
    for block in re.split(r"\n(?=[ \t]*[-*•+] |[ \t]*\n)", text):
        statement = _BULLET.sub("", " ".join(block.split()))
        is_item = bool(_BULLET.match(block.lstrip("\n")))
        bare = _LINK.sub("", statement).strip(" .,:()[]")
        is_repeated = bare and bare.lower() in subject.lower()
        is_log = (_WORK_LOG.match(bare) and not _CONTRAST.search(bare)) or (
            is_item and _TESTS_OR_DOCS.search(bare)
        )
        if statement and (
            not bare
            or is_repeated
            or (is_log and not _REASON.search(bare) and (is_item or len(bare) < 80))
        ):
            continue
        kept.append(block)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _iter_statements(text: str) -> list[str]:
    """The sentences of a text, and its list items."""
    blocks = re.split(r"\n(?=[ \t]*[-*•+] |[ \t]*\n)", text)
    plain = (_BULLET.sub("", " ".join(block.split())) for block in blocks)
    return [part for block in plain for part in re.split(r"(?<=[.!?;。])\s+", block) if part]


def _explains_change(statement: str) -> bool:
    """Returns whether a sentence of a body states a reason, rule, behaviour or consequence."""
    bare = _LINK.sub("", statement).strip()
    if _CJK.search(bare):
        return len(bare) >= 2 * MIN_STATEMENT_WORDS
    if _is_remark(bare):
        return False
    if _REASON.search(bare) or _CONTRAST.search(bare) or sentence_patterns.RULE.search(bare):
        return True
    return bool(_BEHAVIOUR.search(bare)) and not _WORK_LOG.match(bare)


def _subject_explains(subject: str) -> bool:
    """Returns whether a sentence of a subject stands by itself.

    It needs more than one of a body: a subject says what was done.
    """
    bare = _LINK.sub("", subject).strip()
    if _CJK.search(bare):
        return bool(discourse_markers.CAUSE.search(bare) or discourse_markers.DECISION.search(bare))
    if _TRIVIAL_SUBJECT.match(bare) or (
        _ROUTINE_TYPE.match(bare) and not discourse_markers.CAUSE.search(bare)
    ):
        return False
    return any(_stands_alone(sentence) for sentence in re.split(r"(?<=[.!?;])\s+", bare))


def _stands_alone(sentence: str) -> bool:
    if _is_remark(sentence):
        return False
    if discourse_markers.CAUSE.search(sentence):
        return True
    clauses = re.split(r"(?<=,) | (?=\()|(?<=\)) ", sentence)
    rest = " ".join(clause for clause in clauses if not _TESTS_OR_DOCS.search(clause))
    if len(rest.split()) < MIN_STATEMENT_WORDS:
        return False
    explains = (_REASON, _CONTRAST, sentence_patterns.RULE)
    return any(pattern.search(rest) for pattern in explains) or bool(
        _CODE_NAME.search(rest) and _REPLACEMENT.search(rest)
    )


def _is_remark(sentence: str) -> bool:
    """Returns whether a sentence is a short note, a doubt, a question, or about its author."""
    return (
        len(sentence.split()) < MIN_STATEMENT_WORDS
        or bool(_REMARK.search(sentence))
        or bool(_FIRST_PERSON.search(sentence) and not _CODE_NAME.search(sentence))
    )


def _classify(subject: str, message: str) -> Kind:
    if re.match(r"(?:fix|bug|hotfix)\b", subject, re.I):
        return Kind.BUG
    is_decision = discourse_markers.DECISION.search(message)
    return Kind.DECISION if is_decision or sentence_patterns.RULE.search(message) else Kind.CONTEXT
