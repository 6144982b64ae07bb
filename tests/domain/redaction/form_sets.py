"""Forms in which credentials stand in texts, in halves and in a set of their own.

`forms/credentials.txt` has a form a line (`⏎` for a line break), with `«shape:length»` for each
credential and `~shape:length` for what only looks like one. The lines of `forms/harmless.txt` hold
no credential. Lines with an even number are half A, which rules may be written for; the others
are half B, which only judges them. Sets C to K have other forms. Each was written, and measured
once, before rules were written for what it missed. Set L holds what was missed, cut short or taken
for a credential since.

Recall: the share of credentials of which no part longer than 4 characters is left. Precision: the
share of replaced spans that hold a credential or a part of one.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from reverie.domain.redaction.redactor import redact
from reverie.domain.text.characters import word_set

FORMS = Path(__file__).parent / "forms"
FORM_SETS = tuple("abcdefghijkl")
VARIANTS = 3
"""Texts that are made of each form, with other values."""
DIGITS, UPPER, HEX = string.digits, string.ascii_uppercase, "0123456789abcdef"
ALNUM = string.ascii_letters + DIGITS
ALPHABETS = {
    "digits": DIGITS,
    "hex": HEX,
    "upperhex": HEX.upper(),
    "alnum": ALNUM,
    "alpha": string.ascii_letters,
    "upper": UPPER + DIGITS,
    "upper32": UPPER + "234567",
    "lower": string.ascii_lowercase + DIGITS,
    "url": ALNUM + "-_",
    "b64nopad": ALNUM + "+/",
    "django": string.ascii_lowercase + DIGITS + "!@#%^&*-_=+",
}
WORDS = sorted(
    word_set(
        "sunshine dragon summer winter orange flower coffee shadow silver tiger garden falcon "
        "bridge cookie hockey planet window yellow copper marble velvet lantern"
    )
)
LEET = str.maketrans("aeios", "4310$")
DASHES = "-" * 5
_FIELD = re.compile(
    r"«(?P<secret>\w+):?(?P<argument>[^»]*)»|~(?P<other>[a-z]\w*)(?::(?P<size>\d+))?"
)
_PLACEHOLDER = re.compile(r"\[REDACTED_[A-Z_]+\]")


@dataclass(frozen=True)
class FormText:
    """A text made of a form; `kept` is the form with a blank for each of its `secrets`."""

    form: str
    text: str
    secrets: tuple[str, ...] = ()
    kept: str = ""

    def remains(self, redacted: str) -> list[str]:
        """The secrets of which more than 4 characters in a row are left."""
        return [
            secret for secret in self.secrets if any(p in redacted for p in self._parts(secret))
        ]

    def _parts(self, secret: str) -> Iterable[str]:
        lines = secret.replace("\\n", "\n").split("\n")
        bodies = [line.strip() for line in lines if not line.lstrip().startswith(DASHES)]
        for body in bodies:
            windows = (body[at : at + 5] for at in range(max(1, len(body) - 4)))
            yield from (part for part in windows if part not in self.kept)


@dataclass
class Score:
    """Counts of credentials and of replaced spans, and the forms of every mistake."""

    secrets: int = 0
    spans: int = 0
    missed: list[FormText] = field(default_factory=list)
    wrong: list[tuple[FormText, str]] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share of credentials that are found whole."""
        return 1 - len(self.missed) / self.secrets

    @property
    def precision(self) -> float:
        """The share of spans that hold a credential."""
        return 1 - len(self.wrong) / self.spans


def score(texts: Iterable[FormText]) -> Score:
    """Redacts every text, and compares with the labels."""
    result = Score()
    for text in texts:
        redacted = redact(text.text).text
        result.secrets += len(text.secrets)
        result.missed += [text] * len(text.remains(redacted))
        for start, end in replaced_spans(text.text, redacted):
            result.spans += 1
            if not any(_overlaps(text, secret, start, end) for secret in text.secrets):
                result.wrong.append((text, text.text[start:end]))
    return result


def score_forms(name: str) -> Score:
    """The score of half A, of half B or of another set."""
    half = FORM_SETS.index(name) if name in {"a", "b"} else None
    suffix = f"_{name}" if half is None else ""
    return score(
        [*form_texts(f"credentials{suffix}", half), *form_texts(f"harmless{suffix}", half)]
    )


def _overlaps(text: FormText, secret: str, start: int, end: int) -> bool:
    begin = text.text.find(secret)
    while begin >= 0:
        if begin < end and start < begin + len(secret):
            return True
        begin = text.text.find(secret, begin + 1)
    return False


def replaced_spans(text: str, redacted: str) -> list[tuple[int, int]]:
    """The parts of a text that placeholders replaced, found by what stands between them."""
    spans, position = [], 0
    first, *rest = _PLACEHOLDER.split(redacted)
    position = len(first)
    for index, piece in enumerate(rest):
        is_last = index == len(rest) - 1
        end = len(text) - len(piece) if is_last else text.find(piece, position + 1)
        spans.append((position, max(end, position + 1)))
        position = end + len(piece)
    return spans


def form_texts(name: str, half: int | None = None) -> list[FormText]:
    """The texts of a file of forms; of a half, every second line."""
    lines = (FORMS / f"{name}.txt").read_text("utf-8").splitlines()
    return [
        _fill(line.replace("⏎", "\n"), random.Random(f"{name} {line} {variant}"))
        for number, line in enumerate(lines)
        if half is None or number % 2 == half
        for variant in range(VARIANTS)
    ]


def _fill(form: str, dice: random.Random) -> FormText:
    text, kept, secrets, position = "", "", list[str](), 0
    for match in _FIELD.finditer(form):
        name = match["secret"] or match["other"]
        fixed = form[position : match.start()]
        value = _make(name, match["argument"] or match["size"] or "", dice)
        text += fixed + value
        kept += fixed + ("\n" if match["secret"] else value)
        secrets += [value] if match["secret"] else []
        position = match.end()
    return FormText(form, text + form[position:], tuple(secrets), kept + form[position:])


def _make(shape: str, argument: str, dice: random.Random) -> str:
    if shape in ALPHABETS:
        return _run(ALPHABETS[shape], int(argument), dice)
    if shape in {"pem", "pemesc", "pemindent", "pemb64"}:
        separator = {"pemesc": "\\n", "pemindent": "\n    "}.get(shape, "\n")
        kind = argument or "RSA PRIVATE KEY"
        body = [_run(ALPHABETS["b64nopad"], 64, dice) for _ in range(5)]
        edges = [f"{DASHES}{edge} {kind}{DASHES}" for edge in ("BEGIN", "END")]
        pem = separator.join([edges[0], *body, edges[1]])
        return _base64(pem) if shape == "pemb64" else pem
    return {
        "is": lambda: argument,
        "any": lambda: _password(dice, (3, 3, 4, 2, 2)),
        "plain": lambda: _password(dice, (4, 0, 7, 0, 1)),
        "cap": lambda: _password(dice, (0, 1, 0, 0, 0)),
        "b64": lambda: _base64(dice.randbytes(int(argument or 32))),
        "b64pct": lambda: _run(ALNUM, 43, dice) + "%3D",
        "basic": lambda: _base64(f"svc:{_password(dice, (1, 1, 2, 1, 1))}"),
        "aws": lambda: _run(ALPHABETS["b64nopad"], 40, dice),
        "azure": lambda: f"{_run(ALNUM, 3, dice)}8Q~{_run(ALPHABETS['url'], 34, dice)}",
        "uuid": lambda: "-".join(_run(HEX, size, dice) for size in (8, 4, 4, 4, 12)),
        "jwt": lambda: _jwt(dice),
        "discord": lambda: (
            f"M{_run(ALNUM, 23, dice)}.{_run(ALNUM, 6, dice)}.{_run(ALNUM, 38, dice)}"
        ),
        "wg": lambda: _base64(dice.randbytes(32)),
        "fernet": lambda: base64.urlsafe_b64encode(dice.randbytes(32)).decode(),
        "md5colon": lambda: ":".join(_run(HEX, 2, dice) for _ in range(16)),
    }[shape]()


def _run(alphabet: str, length: int, dice: random.Random) -> str:
    """A run of characters that begins and ends with a letter or digit."""
    edge = [character for character in alphabet if character.isalnum()]
    inner = "".join(dice.choices(alphabet, k=max(0, length - 2)))
    return (dice.choice(edge) + inner + dice.choice(edge))[:length]


def _password(dice: random.Random, weights: tuple[int, ...]) -> str:
    """A password as people and generators make them: of words, of letters, with marks."""
    word, number = dice.choice(WORDS), str(dice.randrange(10, 9999))
    made = (
        word + number,
        word.capitalize() + dice.choice("@!#") + number,
        _run(ALNUM, dice.randrange(12, 24), dice),
        _run(ALNUM, 5, dice) + dice.choice("!#%*") + _run(ALNUM, 4, dice) + dice.choice("!?*"),
        word.capitalize().translate(LEET) + dice.choice(WORDS).translate(LEET)[:3] + "9",
    )
    return dice.choices(made, weights)[0]


def _base64(data: bytes | str) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def _jwt(dice: random.Random) -> str:
    parts = ('{"alg":"RS256","kid":"a1"}', '{"iss":"https://h","sub":"ann","exp":1916239022}')
    texts = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join([*texts, _run(ALPHABETS["url"], 86, dice)])
