"""Detection of user corrections such as "no longer X, use Y", in English and Chinese.

Questions, conditions and code are ignored. A sentence that may be a task ("replace X with Y here")
counts only if it is meant to last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_TEXT = 20_000
MAX_SENTENCE = 400
MAX_CORRECTIONS = 5
MAX_REWRITTEN_CHARS = 300

_TERM = r"[`\"'“]?[\w@][\w@./+#*-]{0,60}(?: [\w@./+#*-]{1,60}){0,3}?[`\"'”]?"
_OLD, _NEW = rf"(?P<old>{_TERM})", rf"(?P<new>{_TERM})"
_VERB = r"(?:us(?:e|ing)|run(?:ning)?|writ(?:e|ing)|tak(?:e|ing)|go(?:ing)? with|prefer)"
_TAKE = (
    rf"(?:please |just |always |instead |we |i |let'?s |now |but |and )*(?:{_VERB}|switch to|it'?s)"
)
_END = (
    r"(?=\s*+(?:$|[.,;:!()]|(?:instead|from now|now|please|for|in|when|because|since|as|everywhere"
    r"|again|any ?more|and|but)\b))"
)
_ZH = r"[`\"'“]?[^\s，,。；;！!？?、的了吧]{1,24}?[`\"'”]?"
_ZH_OLD, _ZH_NEW = rf"\s*+(?P<old>{_ZH})\s*+", rf"\s*+(?P<new>{_ZH})\s*+"
_ZH_END = r"(?=\s*+(?:$|[，,。；;！!、了吧]|来|做|就))"
_ZH_USE = r"(?:使用|采用|用)"
_ZH_NOT = r"(?:不要|别|不用|不再|请勿|停止|不能)再?"
_PATTERNS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\bno longer (?:{_VERB} )?{_OLD}\s*+[,;:.–—-]++\s*+{_TAKE} {_NEW}{_END}",
        rf"\b(?:do(?:n'?t| not)|stop|never|quit) {_VERB} {_OLD}(?: any ?more)?\s*+[,;:.–—-]++\s*+"
        rf"{_TAKE} {_NEW}{_END}",
        rf"\b(?:{_VERB}|switch to) {_NEW},? (?:instead of|rather than|in place of|over|not"
        rf"|and not) (?:{_VERB} )?{_OLD}{_END}",
        rf"\b(?:instead of|rather than) (?:{_VERB} )?{_OLD},? {_TAKE} {_NEW}{_END}",
        rf"\b(?:switch(?:ed)?|moved?|migrated?|changed?) from {_OLD} to {_NEW}{_END}",
        rf"\breplaced? {_OLD} (?:with|by) {_NEW}{_END}",
        rf"{_ZH_NOT}{_ZH_USE}?\s*+(?P<old>{_ZH})(?:\s*+了)?[，,；;。\s]++(?:请|而是|以后|都|统一)*"
        rf"(?:改用|换成|改成|{_ZH_USE}){_ZH_NEW}{_ZH_END}",
        rf"(?:改用|{_ZH_USE}){_ZH_NEW}[，,]?(?:来)?(?:代替|替代|取代|而不是|{_ZH_NOT}{_ZH_USE})"
        rf"{_ZH_OLD}{_ZH_END}",
        rf"[把将]{_ZH_OLD}(?:都|全部)?(?:换成|改成|替换成|替换为|改为){_ZH_NEW}{_ZH_END}",
        rf"[从由]{_ZH_OLD}(?:换成|换到|切换到|改成|改用|迁移到){_ZH_NEW}{_ZH_END}",
    )
)
_TASK_LIKE_PATTERNS = frozenset({4, 5, 8, 9})
"""Places of the patterns that may as well be a task."""

_LASTING_MARKER = re.compile(
    r"\b(?:no longer|any ?more|from now on|going forward|always|never|i prefer|we prefer"
    r"|we(?:'ve| have)? (?:\w+ )?(?:switched|moved|migrated|changed|replaced)|in (?:the )?future"
    r"|every ?where|as a rule|by default)\b|以后|从现在|从今|今后|不再|统一|总是|一律"
    r"|我们(?:已经)?(?:从|把|将)",
    re.I,
)
_QUESTION_OR_CONDITION = re.compile(
    r"[?？]\s*$|^\W*(?:should|could|can|would|what|why|how|when|if|unless|whether|maybe|perhaps"
    r"|is|are|does|did|suppose)\b|^(?:如果|假如|要不要|是否|能不能|为什么|可不可以)|吗\s*$",
    re.I,
)
_CODE_OR_QUOTE = re.compile(r"```.*?(?:```|\Z)|^[^\S\n]*+>.*$", re.S | re.M)
_SENTENCE_BREAK = re.compile(r"(?<=[!?。！？])\s*|(?<=\.)\s+(?=[A-Z])|\n+")
_NEGATED_BEFORE = re.compile(
    r"(?:\b(?:never|not|don'?t|no longer|avoid|instead of|rather than|without|over|no)\b"
    r"|不要|不再|不用|别用|禁止|避免|而不是|代替)[^.,;。，；]{0,24}$",
    re.I,
)
_LIST_CONJUNCTION = re.compile(r"(?<!\s)\s++(?:or|and|nor)\s+|[或和]")
_HAN_CHAR = re.compile(r"[\u4e00-\u9fff]")
_VAGUE_TERM = re.compile(r"it|th(?:is|at|em|ese|ose|e|ere)|ones?|all|any|an?|here|它|这|那", re.I)


_CORRECTION_HINT = re.compile(
    r"\b(?:no longer|any ?more|instead|rather|not what|from now on|actually|prefer|stop|don'?t"
    r"|do not|never|wrong|changed? (?:my|our)|switch|forget (?:about|what))\b"
    r"|不要|不再|别|改用|换成|改成|以后|不对|其实|而不是|代替",
    re.I,
)


@dataclass(frozen=True)
class UserCorrection:
    """The rejected thing, its replacement, the sentence, and whether it is meant to last."""

    old: str
    new: str
    sentence: str
    is_lasting: bool


def find_corrections(text: str) -> list[UserCorrection]:
    """Finds the corrections in a user's message, in order; at most `MAX_CORRECTIONS`.

    Two things that are rejected together ("not npm or yarn") are two corrections.
    """
    by_terms: dict[tuple[str, str], UserCorrection] = {}
    for sentence in _SENTENCE_BREAK.split(_CODE_OR_QUOTE.sub("\n", text[:MAX_TEXT])):
        for correction in _find_in_sentence(" ".join(sentence.split())):
            by_terms.setdefault((correction.old, correction.new), correction)
    return list(by_terms.values())[:MAX_CORRECTIONS]


def may_contain_correction(text: str) -> bool:
    """Returns whether a message may contain a correction that the rules cannot read."""
    return _CORRECTION_HINT.search(text[:MAX_TEXT]) is not None


def _find_in_sentence(sentence: str) -> list[UserCorrection]:
    """Finds the corrections of the first matching pattern; none if it may be a task."""
    if not sentence or len(sentence) > MAX_SENTENCE or _QUESTION_OR_CONDITION.search(sentence):
        return []
    is_lasting = _LASTING_MARKER.search(sentence) is not None
    for index, pattern in enumerate(_PATTERNS):
        match = pattern.search(sentence)
        new_term = _strip_term(match["new"]) if match else ""
        if match is None or not _is_specific_term(new_term):
            continue
        old_terms = map(_strip_term, _LIST_CONJUNCTION.split(match["old"]))
        corrections = [
            UserCorrection(old, new_term, sentence, is_lasting)
            for old in old_terms
            if _is_specific_term(old) and old.lower() != new_term.lower()
        ]
        if corrections:
            return corrections if is_lasting or index not in _TASK_LIKE_PATTERNS else []
    return []


def _strip_term(term: str) -> str:
    bare = term.strip(" `\"'“”.,;:")
    return re.sub(r"^(?:the|a|an|our|any)\s+", "", bare, flags=re.I)


def _is_specific_term(term: str) -> bool:
    return (
        bool(term) and _VAGUE_TERM.fullmatch(term) is None and (len(term) > 1 or not term.isascii())
    )


def correction_applies(correction: UserCorrection, content: str) -> bool:
    """Returns whether a memory still contains what the correction rejects."""
    matches = list(_compile_term(correction.old).finditer(content))
    return bool(matches) and all(
        _NEGATED_BEFORE.search(content[: match.start()]) is None for match in matches
    )


def apply_correction(correction: UserCorrection, content: str) -> str:
    """Returns the corrected text of a memory; a long one is replaced by the user's sentence."""
    if len(content) > MAX_REWRITTEN_CHARS:
        return correction.sentence
    text = _compile_term(correction.old).sub(lambda _: correction.new, content).rstrip()
    if _HAN_CHAR.search(text):
        return f"{text.rstrip('。')}（不再用{correction.old}）"
    return f"{text.rstrip('.')} (no longer {correction.old})"


def _compile_term(term: str) -> re.Pattern[str]:
    edge = (r"(?<![\w-])", r"(?![\w-])") if term.isascii() else ("", "")
    return re.compile(edge[0] + re.escape(term) + edge[1], re.I)
