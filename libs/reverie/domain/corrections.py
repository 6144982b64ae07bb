"""Corrections of what stands: "no longer X, use Y", in English and Chinese. Pure.

Read of what users say, sentence by sentence. A question, a condition and code correct nothing, and
what reads like a task ("replace X with Y here") only where it is meant to last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_TEXT = 20_000
MAX_SENTENCE = 400
MAX_FOUND = 5
MAX_REWRITTEN = 300

_TERM = r"[`\"'“]?[\w@][\w@./+#*-]*(?: [\w@./+#*-]+){0,3}?[`\"'”]?"
_OLD, _NEW = rf"(?P<old>{_TERM})", rf"(?P<new>{_TERM})"
_VERB = r"(?:us(?:e|ing)|run(?:ning)?|writ(?:e|ing)|tak(?:e|ing)|go(?:ing)? with|prefer)"
_TAKE = (
    rf"(?:please |just |always |instead |we |i |let'?s |now |but |and )*(?:{_VERB}|switch to|it'?s)"
)
_END = (
    r"(?=\s*(?:$|[.,;:!()]|(?:instead|from now|now|please|for|in|when|because|since|as|everywhere"
    r"|again|any ?more|and|but)\b))"
)
_ZH = r"[`\"'“]?[^\s，,。；;！!？?、的了吧]{1,24}?[`\"'”]?"
_ZH_OLD, _ZH_NEW = rf"\s*(?P<old>{_ZH})\s*", rf"\s*(?P<new>{_ZH})\s*"
_ZH_END = r"(?=\s*(?:$|[，,。；;！!、了吧]|来|做|就))"
_ZH_USE = r"(?:使用|采用|用)"
_ZH_NOT = r"(?:不要|别|不用|不再|请勿|停止|不能)再?"
_PATTERNS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\bno longer (?:{_VERB} )?{_OLD}\s*[,;:.–—-]+\s*{_TAKE} {_NEW}{_END}",
        rf"\b(?:do(?:n'?t| not)|stop|never|quit) {_VERB} {_OLD}(?: any ?more)?\s*[,;:.–—-]+\s*"
        rf"{_TAKE} {_NEW}{_END}",
        rf"\b(?:{_VERB}|switch to) {_NEW},? (?:instead of|rather than|in place of|over|not"
        rf"|and not) (?:{_VERB} )?{_OLD}{_END}",
        rf"\b(?:instead of|rather than) (?:{_VERB} )?{_OLD},? {_TAKE} {_NEW}{_END}",
        rf"\b(?:switch(?:ed)?|moved?|migrated?|changed?) from {_OLD} to {_NEW}{_END}",
        rf"\breplaced? {_OLD} (?:with|by) {_NEW}{_END}",
        rf"{_ZH_NOT}{_ZH_USE}?{_ZH_OLD}了?[，,；;。\s]+(?:请|而是|以后|都|统一)*"
        rf"(?:改用|换成|改成|{_ZH_USE}){_ZH_NEW}{_ZH_END}",
        rf"(?:改用|{_ZH_USE}){_ZH_NEW}[，,]?(?:来)?(?:代替|替代|取代|而不是|{_ZH_NOT}{_ZH_USE})"
        rf"{_ZH_OLD}{_ZH_END}",
        rf"[把将]{_ZH_OLD}(?:都|全部)?(?:换成|改成|替换成|替换为|改为){_ZH_NEW}{_ZH_END}",
        rf"[从由]{_ZH_OLD}(?:换成|换到|切换到|改成|改用|迁移到){_ZH_NEW}{_ZH_END}",
    )
)
_TASKS = frozenset({4, 5, 8, 9})
"""Places of the patterns that may as well be a task."""

_LASTING = re.compile(
    r"\b(?:no longer|any ?more|from now on|going forward|always|never|i prefer|we prefer"
    r"|we(?:'ve| have)? (?:\w+ )?(?:switched|moved|migrated|changed|replaced)|in (?:the )?future"
    r"|every ?where|as a rule|by default)\b|以后|从现在|从今|今后|不再|统一|总是|一律"
    r"|我们(?:已经)?(?:从|把|将)",
    re.I,
)
_OPEN = re.compile(
    r"[?？]\s*$|^\W*(?:should|could|can|would|what|why|how|when|if|unless|whether|maybe|perhaps"
    r"|is|are|does|did|suppose)\b|^(?:如果|假如|要不要|是否|能不能|为什么|可不可以)|吗\s*$",
    re.I,
)
_CODE = re.compile(r"```.*?(?:```|\Z)|^\s*>.*$", re.S | re.M)
_BREAK = re.compile(r"(?<=[!?。！？])\s*|(?<=\.)\s+(?=[A-Z])|\n+")
_DENIED = re.compile(
    r"(?:\b(?:never|not|don'?t|no longer|avoid|instead of|rather than|without|over|no)\b"
    r"|不要|不再|不用|别用|禁止|避免|而不是|代替)[^.,;。，；]{0,24}$",
    re.I,
)
_EITHER = re.compile(r"\s+(?:or|and|nor)\s+|[或和]")
_HANZI = re.compile(r"[\u4e00-\u9fff]")
_DULL = re.compile(r"it|th(?:is|at|em|ese|ose|e|ere)|ones?|all|any|an?|here|它|这|那", re.I)


_HINT = re.compile(
    r"\b(?:no longer|any ?more|instead|rather|not what|from now on|actually|prefer|stop|don'?t"
    r"|do not|never|wrong|changed? (?:my|our)|switch|forget (?:about|what))\b"
    r"|不要|不再|别|改用|换成|改成|以后|不对|其实|而不是|代替",
    re.I,
)


@dataclass(frozen=True)
class Correction:
    """What is out, what takes its place, the sentence that says so; whether it is meant to last."""

    old: str
    new: str
    said: str
    lasting: bool


def corrections(text: str) -> list[Correction]:
    """The corrections in what a user said, in order; at most `MAX_FOUND`. Two things that are out
    together ("not npm or yarn") are two corrections."""
    found: dict[tuple[str, str], Correction] = {}
    for sentence in _BREAK.split(_CODE.sub("\n", text[:MAX_TEXT])):
        for one in _corrections(" ".join(sentence.split())):
            found.setdefault((one.old, one.new), one)
    return list(found.values())[:MAX_FOUND]


def may_correct(text: str) -> bool:
    """Whether a user's words may correct something that rules do not read: worth a closer look."""
    return _HINT.search(text[:MAX_TEXT]) is not None


def _corrections(sentence: str) -> list[Correction]:
    """Those of the first pattern that fits; none where it may as well be a task."""
    if not sentence or len(sentence) > MAX_SENTENCE or _OPEN.search(sentence):
        return []
    lasting = _LASTING.search(sentence) is not None
    for place, pattern in enumerate(_PATTERNS):
        match = pattern.search(sentence)
        out = [_clean(one) for one in _EITHER.split(match["old"])] if match else []
        new = _clean(match["new"]) if match else ""
        fit = [old for old in out if _names(old) and _names(new) and old.lower() != new.lower()]
        if fit:
            kept = lasting or place not in _TASKS
            return [Correction(old, new, sentence, lasting) for old in fit] if kept else []
    return []


def _clean(term: str) -> str:
    bare = term.strip(" `\"'“”.,;:")
    return re.sub(r"^(?:the|a|an|our|any)\s+", "", bare, flags=re.I)


def _names(term: str) -> bool:
    return bool(term) and _DULL.fullmatch(term) is None and (len(term) > 1 or not term.isascii())


def concerns(correction: Correction, content: str) -> bool:
    """Whether a memory holds up what the correction says is out."""
    places = list(_word(correction.old).finditer(content))
    return bool(places) and all(_DENIED.search(content[: at.start()]) is None for at in places)


def corrected(correction: Correction, content: str) -> str:
    """What a memory says once it is corrected; of a long one, what was said takes its place."""
    if len(content) > MAX_REWRITTEN:
        return correction.said
    text = _word(correction.old).sub(lambda _: correction.new, content).rstrip()
    if _HANZI.search(text):
        return f"{text.rstrip('。')}（不再用{correction.old}）"
    return f"{text.rstrip('.')} (no longer {correction.old})"


def _word(term: str) -> re.Pattern[str]:
    edge = (r"(?<![\w-])", r"(?![\w-])") if term.isascii() else ("", "")
    return re.compile(edge[0] + re.escape(term) + edge[1], re.I)
