"""What a user's message asks, without pastes, wrappers and quoted output."""

from __future__ import annotations

import re

from reverie.domain import signs
from reverie.domain.points import grouped, said_plainly
from reverie.domain.prose import blocks, plain, sentences, shorten
from reverie.domain.slices import COMMAND, NOISE

MAX_REQUEST = 500
MAX_STATEMENT = 240
MAX_STATEMENTS = 30

_NAME = re.compile(r"<command-name>\s*(/?[\w:-]+)")
_ARGUMENTS = re.compile(r"<command-args>\s*([^<]*?)\s*</command-args>", re.S)
_TITLE = re.compile(r"\btitle:\s*(.+)")
_NUMBER = re.compile(r"^number:\s*(\d+)", re.M)
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
_POLITE = re.compile(
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
_LEANS = re.compile(
    r"^(?:it|this|that|these|those|they|he|she|its|their|just the|just \w+\.$|only|which|because"
    r"|since"
    r"|otherwise|if (?:so|not|we'?re)|not|same|both|but|so that|e\.g|i\.e|for example|on success"
    r"|no (?:need|more)|keep that)\b|^(?:[A-Z][\w.]* ?){1,2}\.$|^(?:它|这|那|因为|否则|只)",
    re.I,
)


def asked(content: str) -> str:
    """The request in a message: at most `MAX_REQUEST` characters, one line; "" where none is.

    A slash command is its name and arguments; of a pasted context only its title is kept.
    """
    if NOISE.match(content):
        return ""
    if COMMAND.match(content):
        return _command(content)
    if _PASTE.search(content[:300]):
        return _titled(content) or shorten(" ".join(_said(content)), MAX_REQUEST)
    said = re.sub(
        r"^(?:yup|yes|yep|ok(?:ay)?)[,!.]?\s+(?=\S+\s)", "", " ".join(_said(content)), flags=re.I
    )
    return shorten(said, MAX_REQUEST)


def statements(content: str) -> list[str]:
    """What a user's message states, thing by thing: what leans on a sentence stays with it."""
    if NOISE.match(content) or COMMAND.match(content) or _PASTE.search(content[:300]):
        return []
    said = [
        _opened(sentence) if not _LEANS.match(sentence) else sentence for sentence in _said(content)
    ]
    told = grouped((one for one in said if len(one) > 3), _LEANS, MAX_STATEMENT)
    return told[:MAX_STATEMENTS]


def trouble_of(content: str) -> str:
    """The failure that a message tells of, in the user's words; "" where it tells of none."""
    failed = (one for one in statements(content) if signs.PLIGHT.search(one))
    return next((one for one in failed if not one.endswith(("?", "？"))), "")


def _opened(sentence: str) -> str:
    """Without "also", "ok so" and "please" at its beginning."""
    rest = _OPENINGS.sub("", sentence).lstrip(" ,;:—–-")
    return rest[:1].upper() + rest[1:] if rest else ""


def is_command(request: str) -> bool:
    """Whether a request, as `asked` gives it, is a slash command."""
    return request.startswith("/")


def subject_of(content: str, request: str) -> str:
    """A few words for what a request is about, or "" where it says too little."""
    first = next(iter(sentences(request)), "")
    subject = _POLITE.sub("", first).strip(" .:;,")
    tells = len(subject) >= 16 and not _REMARK.match(subject)
    return shorten(subject, 110) if tells else ""


def _command(content: str) -> str:
    name, arguments = _NAME.search(content), _ARGUMENTS.search(content)
    if not name:
        return plain(content.strip().partition("\n")[0])[:MAX_REQUEST]
    words = (name[1], arguments[1] if arguments else "")
    return plain(" ".join(filter(None, words)))[:MAX_REQUEST]


def _titled(content: str) -> str:
    title, number = _TITLE.search(content), _NUMBER.search(content)
    if not title:
        return ""
    return plain(f"#{number[1]} {title[1]}" if number else title[1])[:MAX_REQUEST]


def _own(content: str) -> str:
    """A message without the output that was pasted into it, as far as its lines give that away."""
    lines = content.splitlines()
    said = [line for line in lines if line.strip() and not line.startswith((" ", "\t", "|", ">"))]
    loose = [line for line in said if line.rstrip()[-1] not in ".?!:,;。？！：，…)\"'`"]
    if len(said) < 5 or len(loose) * 2 < len(said):
        return content
    return "\n".join(line for line in lines if line not in loose or len(line.split()) > 25)


def _said(content: str) -> list[str]:
    """The user's own sentences, then the error that a pasted output ends in."""
    lines = _own(content).splitlines()
    pasted = [line for line in content.splitlines() if _OUTPUT_LINE.match(line)]
    prose = "\n".join("" if _OUTPUT_LINE.match(line) else line for line in lines)
    said: list[str] = []
    for block in blocks(prose):
        if block.sort == "text" or (block.sort in {"item", "heading"} and len(said) < 6):
            said += said_plainly_by_the_user(block.text)
    error = next((plain(line) for line in pasted if _ERROR_LINE.search(line)), "")
    once = dict.fromkeys([*said, shorten(error, 200)])
    return [_stopped(sentence) for sentence in once if sentence]


def _stopped(sentence: str) -> str:
    return sentence if sentence[-1] in ".!?:;,…。！？：，；" else f"{sentence}."


def said_plainly_by_the_user(text: str) -> list[str]:
    """A user's sentences: "I want" and questions count, unlike an agent's."""
    whole = [sentence for sentence in sentences(plain(text)) if len(sentence) > 3]
    return whole if len(whole) < 8 else said_plainly(text)[:8]
