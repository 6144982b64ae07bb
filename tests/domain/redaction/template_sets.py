"""Three labelled sets of texts, with credentials and without.

One was made together with the rules. The others were each written before the rules that they
measure.

Two files hold a text a line (`⏎` for a line break). In the file of texts with a credential
`«shape»` stands where it is; in the other `~shape` stands for what only looks like one. Values
are made when the module loads: no file of the project holds a credential.

The third set follows the manner of public repositories: sources of many languages, settings, logs
and documents, with ordinary weak passwords as people write them, and with what stands beside
credentials there: placeholders, names, checksums, ids. Words that promise nothing (`changeme`,
`password`, `your-password`, `dummy`, `test-token`) are placeholders and are to stay; a word with a
number (`sunshine12`) is a password. A hash of a password is to go: it can be tried out elsewhere.
What is encrypted for one reader stays.
"""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reverie.domain.redaction.redactor import redact
from reverie.domain.text.characters import word_set

LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER, DIGITS, HEX = LOWER.upper(), "0123456789", "0123456789abcdef"
ALNUM = LOWER + UPPER + DIGITS
DASHES = "-" * 5
FOLDER = Path(__file__).parent
WORDS = sorted(
    word_set(
        "sunshine dragon monkey summer winter orange flower coffee shadow master silver tiger "
        "rabbit garden market window yellow planet bridge cookie pepper hockey jordan falcon"
    )
)
LEET = str.maketrans("aeiost", "4310$7")

_dice = random.Random(1_871)


def run(chars: str, length: int) -> str:
    """A run of characters, begun and ended by a letter or digit."""
    edge = [c for c in chars if c.isalnum()]
    inner = "".join(_dice.choice(chars) for _ in range(length - 2))
    return _dice.choice(edge) + inner + _dice.choice(edge)


def _b64(length: str) -> str:
    size = int(length or 44)
    return base64.b64encode(_dice.randbytes(size))[: size - 1].decode() + "="


def _spoken(syllables: int) -> str:
    return "".join(
        _dice.choice("bdfgklmnprstvz") + _dice.choice("aeiou") for _ in range(syllables)
    ) + _dice.choice("kmnrst")


def _marked() -> str:
    return run(ALNUM, 5) + _dice.choice("!#%*") + run(ALNUM, 3) + _dice.choice("!?*")


def _uuid(_: str = "") -> str:
    return "-".join(run(HEX, n) for n in (8, 4, 4, 4, 12))


def _jwt(_: str) -> str:
    parts = (b'{"alg":"RS256","kid":"a1"}', b'{"iss":"https://h","sub":"ann","exp":1916239022}')
    texts = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
    return ".".join([*texts, run(ALNUM + "-_", 86)])


def _pem(kind: str, sep: str = "\n") -> str:
    body = sep.join(run(ALNUM + "+/", 64) for _ in range(5))
    return f"{DASHES}BEGIN {kind}{DASHES}{sep}{body}{sep}{DASHES}END {kind}{DASHES}"


def _putty(_: str) -> str:
    lines = "\n".join(run(ALNUM + "+/", 64) for _ in range(3))
    mac = run(HEX, 64)
    return (
        "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: me\n"
        f"Private-Lines: 3\n{lines}\nPrivate-MAC: {mac}"
    )


SHAPES: dict[str, Callable[[str], str]] = {
    "pw": lambda _: run(ALNUM, 8) + _dice.choice(DIGITS) + _dice.choice(UPPER),
    "pwl": lambda _: _spoken(4),
    "pwd": lambda _: _spoken(3) + str(_dice.randrange(1950, 2030)),
    "pws": lambda _: _marked(),
    "pws2": lambda _: run(ALNUM, 6) + "%21" + _dice.choice(DIGITS),
    "hex": lambda n: run(HEX, int(n)),
    "upperhex": lambda n: run(HEX.upper(), int(n)),
    "upper16hex": lambda _: run(HEX.upper(), 16),
    "alnum": lambda n: run(ALNUM, int(n)),
    "alpha": lambda n: run(LOWER + UPPER, int(n)),
    "upper": lambda n: run(UPPER + DIGITS, int(n)),
    "digits": lambda n: run(DIGITS, int(n)),
    "url": lambda n: run(ALNUM + "-_", int(n)),
    "b64": _b64,
    "b64nopad": lambda n: run(ALNUM + "+/", int(n)),
    "b64pct": lambda _: run(ALNUM, 43) + "%3D",
    "b64of": lambda _: base64.b64encode(_marked().encode()).decode(),
    "basic": lambda _: base64.b64encode(f"svc:{_marked()}".encode()).decode(),
    "aws": lambda _: run(ALNUM + "+/", 39) + _dice.choice(DIGITS),
    "azure": lambda _: run(ALNUM, 3) + "8Q~" + run(ALNUM + "_-", 34),
    "uuid": _uuid,
    "jwt": _jwt,
    "django": lambda _: run(LOWER + DIGITS + "!@#%^&*-_=+", 50),
    "discord": lambda _: f"M{run(ALNUM, 23)}.{run(ALNUM, 6)}.{run(ALNUM + '-_', 38)}",
    "md5colon": lambda _: ":".join(run(HEX, 2) for _ in range(16)),
    "pem": _pem,
    "pemesc": lambda kind: _pem(kind, "\\n"),
    "pemindent": lambda kind: _pem(kind, "\n  "),
    "putty": _putty,
}
_FOUND = re.compile(r"«(\w+):?([^»]*)»")
_KEPT = re.compile(r"~(\w+)(?::(\d+))?")


def _filled(match: re.Match[str]) -> str:
    return SHAPES[match[1]](match[2] or "")


def _lines(path: Path) -> list[str]:
    return [line.replace("⏎", "\n") for line in path.read_text("utf-8").splitlines()]


def _with_credentials(line: str) -> tuple[str, tuple[str, ...]]:
    values: list[str] = []

    def fill(match: re.Match[str]) -> str:
        values.append(_filled(match))
        return values[-1]

    text = _FOUND.sub(fill, line)
    return text, tuple(values)


def _longest_line(value: str) -> str:
    """The part of a value that must be gone: of a key in several lines, one of its lines."""
    lines = value.replace("\\n", "\n").split("\n")
    return value if len(lines) == 1 else max(lines, key=len).strip()


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with what must not be left in each, and texts in which nothing is to be redacted."""

    found: Sequence[tuple[str, tuple[str, ...]]]
    kept: Sequence[str]

    def measure(self) -> tuple[list[str], list[str], float, float]:
        """Missed texts, disturbed texts, precision and recall."""
        missed = [t for t, values in self.found if any(v in redact(t).text for v in values)]
        wrong = [text for text in self.kept if redact(text).text != text]
        found = len(self.found) - len(missed)
        return missed, wrong, found / (found + len(wrong)), found / len(self.found)


def _read(name: str) -> LabelledTexts:
    cases = [_with_credentials(line) for line in _lines(FOLDER / f"{name}_credentials.txt")]
    return LabelledTexts(
        [(text, tuple(map(_longest_line, values))) for text, values in cases],
        [_KEPT.sub(_either, line) for line in _lines(FOLDER / f"{name}_harmless.txt")],
    )


def _either(match: re.Match[str]) -> str:
    return _filled(match) if match[1] in SHAPES else match[0]


HELD_OUT = _read("held_out")

_dice_3 = random.Random(77_013)


def _word() -> str:
    return _dice_3.choice(WORDS)


def _gibberish(length: str) -> str:
    """As typed at random: letters for the most part, some digits."""
    start = "".join(_dice_3.choice(LOWER) for _ in range(int(length) - 3))
    return start + "".join(_dice_3.choice(ALNUM) for _ in range(2)) + _dice_3.choice("23456789")


def _concatenated(kind: str) -> str:
    body = [run(ALNUM + "+/", 64) for _ in range(3)]
    lines = [f"{DASHES}BEGIN {kind}{DASHES}", *body, f"{DASHES}END {kind}{DASHES}"]
    return " +\n".join(f'    "{line}\\n"' for line in lines)


SHAPES |= {
    "weak": lambda _: _word() + str(_dice_3.randrange(10, 9999)),
    "cap": lambda _: _word().capitalize() + _dice_3.choice("@!#") + str(_dice_3.randrange(1, 2030)),
    "leet": lambda _: _word().capitalize().translate(LEET) + _word().translate(LEET)[:3] + "9",
    "gib": _gibberish,
    "wpsalt": lambda _: run(ALNUM + "!@#%^&*()-_[]{}<>~+=,.;:/?|", 64),
    "bytes": lambda n: ", ".join(f"0x{_dice_3.randrange(16, 256):02x}" for _ in range(int(n))),
    "wg": lambda _: base64.b64encode(_dice_3.randbytes(32)).decode(),
    "fernet": lambda _: base64.urlsafe_b64encode(_dice_3.randbytes(32)).decode(),
    "der": lambda _: "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + run(ALNUM + "+/", 300),
    "mnemonic": lambda _: " ".join(_word() for _ in range(12)),
    "pemconcat": _concatenated,
}
THIRD = _read("third")

SHAPES |= {
    "is": lambda text: text,
    "upper32": lambda n: run(UPPER + "234567", int(n)),
    "pemcut": lambda kind: _pem(kind).rpartition("\n")[0],
    "pemcutesc": lambda kind: _pem(kind, "\\n").rpartition("\\n")[0],
    "certificate": lambda _: _pem("CERTIFICATE"),
    "publickey": lambda _: _pem("PUBLIC KEY"),
}
MADE = _read("made")
