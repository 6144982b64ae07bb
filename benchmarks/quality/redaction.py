"""Measures redaction's precision, recall and speed.

Run from the root of the project: `python -m benchmarks.quality.redaction`. `--forms a` prints the
figures and mistakes of one set of forms alone (`a` to `l`). Last come the slowest
of some hundred texts that are mixed at random of the hostile ones, always the same; `--mixes 50
7` prints those of fifty of another seed alone.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.quality.question_sets import DATA
from benchmarks.support.common import parser
from reverie.domain.redaction.redactor import redact
from tests.domain.redaction.form_sets import FORM_SETS, FormText, score, score_forms
from tests.domain.redaction.template_sets import HELD_OUT, MADE, THIRD, LabelledTexts

MEBIBYTE = 1 << 20
HOSTILE = (
    "a",
    "sk-",
    "eyJaaaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----",
    "://a:",
    "password: ",
    "pwd=hunter ",
    'token("',
    "key=",
    "\\",
    "--a-",
    "curl -u a:",
    "pw=a1b2 ",
    "://ab:c1d2@h ",
    "mysql -pabc1 ",
    "authorization: bearer aB3dE5gH7jK9mN ",
    'login("a", "b',
    'connect("a","b7c8d9e0",',
    "connect(",
    "jwt.sign(",
    "token[{(",
    "\"'",
    "İ",
    "é",
    "密码：a1b2c3 ",
    "пароль: ",
    '{"token": "abc"},',
    "key: value\n",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n",
    "MIIEvQIBADANBgkqhkiG",
    "insert into t (a,b) values ('a','b');",
    "<key>a</key><string>bbbb</string>",
    "name: a, value: b1c2d3e4 ",
    "machine a login b password c1d2e3f4 ",
    "\n",
    "cookie: aaaaauth",
    "PuTTY-User-Key-File-3: ",
    "PuTTY-User-Key-File-3: Private-Lines: 3 ",
    "sk-sk-sk-sk-sk-sk-sk-sk-sk-connect(",
    'login("a", "b7c8"); password = "a1b2"; ://a:b@c <key>a</key> mysql -p x1y2 sk-aaaa\n',
    "PRIVATE KEY",
    "k = {0x1,0x2,0x3,0x4,0x5,0x6,0x7,0x8}\n",
)
DISTINCT = {
    "passwords": "PASSWORD={}\n",
    "keys": "key={}\n",
    "in JSON": '{{"password": "{}"}},',
    "logins": 'login("a", "{}")\n',
    "signings": 'jwt.sign(a, "{}Z")\n',
    "addresses": "://a:{}@h ",
    "keys by shape": "sk-{0}{0}{0} ",
    "commands": "curl -u a:{} ",
    "options": "--token {} ",
    "headers": "authorization: bearer {0}{0} ",
    "elements": "<password x>{}</password>",
    "rows": "insert into t (password) values ('{}');",
    "calls and passwords": ':AA:AA:AA jwt.sign(a, "{}Z")\npw={}1 ' + 'token("' * 9,
    "in a log": "INFO request {} handled by worker 3 path=/api/v1/items\n" * 5 + "token={}Zk7\n",
    "among labels": "".join(f"token_{{0}}_{n}: value {n}\n" for n in range(9)) + "pw={0}Zk7\n",
    "names of none": "token_{}x: a1b2\n",
    "queries": "pw={}&",
    "tokens in addresses": "://{}aaaaaaaaaaa@ ",
    "users in addresses": "://{0}aaaaaaaaaaa:a@ ",
    "cookies": "cookie: sid={0}{0}\n",
    "arrays": "key{}={{0x1,0x2,0x3,0x4,0x5,0x6,0x7,0x8}}\n",
    "private keys": "-----BEGIN PRIVATE KEY-----aaaaaaaaaaaaaaaaa {}",
    "elements beside": "<key>{}</key><string>ab</string>",
    "logins of both": 'login("{}", "ab{0}")\n',
    "schemes": "authorization: aaaaa{}\n",
    "said": "token is {} ",
}
"""Texts in which no value stands twice."""

BAITS = (
    "curl a: mysql openssl pass: mongo az login docker login https -a chpasswd sudo freerdp /p: "
    'net use /user: htpasswd -b "@tcp( @unix( @/ :thin: sonar.login credentials identified #define '
    "variable value env fastcgi_param -storepass authorization basic bearer cookie insert 0x MII "
    ':AA Q~ -us access- "kty </ <string> <value> -----BEGIN PRIVATE KEY-----\n'
)
"""Words that each wake an expression; what follows them is then sought for all."""
BAITED = ("a", "a:", '"', " ", "https ", "curl ", "mysql ", "aB3", ":1234:a:a:", "echo a| ")


PIECES = (
    *("x y ", "\n", " ", '"', "token_label_1_2: value 2\n", "sk-proj-aB3dE5gH7jK9mNpQ2rS4"),
    *("password=hunter2Zk7\n", "api_key: 'aB3dE5gH7jK9'", "secret_key = get(x)\n"),
    "--token abc ",
)
"""What else stands in mixed texts."""
MIXES = 100


FLOOR = re.compile("password|secret|token|key|auth")
"""The plainest pass there is: one expression of five words over the same text."""


def report_labelled() -> None:
    """Precision and recall on the three sets of labelled texts, and every mistake."""
    report_set("made with the rules", MADE)
    report_set("held out", HELD_OUT)
    report_set("third set", THIRD)


def report_forms(name: str, shows_mistakes: bool = False) -> None:
    """Recall and precision on a set of forms, and on it with real texts of developers."""
    result = score_forms(name)
    real = score([] if shows_mistakes else [FormText("", text) for text in real_texts()])
    precision = 1 - (len(result.wrong) + len(real.wrong)) / (result.spans + real.spans)
    print(
        f"forms {name.upper()}: {result.secrets} credentials, recall {result.recall:.3f}, "
        f"precision {result.precision:.3f}; with real texts {precision:.3f} "
        f"({real.spans} spans in {sum(map(len, real_texts())) / 1e6:.1f} MB)"
    )
    for text in result.missed if shows_mistakes else []:
        print(f"  missed     {text.form[:100]!r}")
    for text, span in result.wrong if shows_mistakes else []:
        print(f"  disturbed  {text.form[:60]!r}: {span[:40]!r}")


def real_texts() -> list[str]:
    """Transcripts, talks and histories in which no credential was found by reading."""
    return [
        "\n".join(_strings(path)) for path in sorted(DATA.rglob("*")) if path.suffix in _READERS
    ]


_READERS: dict[str, Callable[[str], Any]] = {
    ".md": str,
    ".json": json.loads,
    ".jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
}


def _strings(path: Path) -> Iterator[str]:
    values = [_READERS[path.suffix](path.read_text("utf-8"))]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value


def report_set(name: str, texts: LabelledTexts) -> None:
    """The figures of one set."""
    missed, wrong, precision, recall = texts.measure()
    print(f"{name}: {len(texts.found)} with a credential, {len(texts.kept)} without")
    print(f"precision {precision:.3f}  recall {recall:.3f}")
    for text in missed:
        print(f"  missed     {text[:100]!r}")
    for text in wrong:
        print(f"  disturbed  {text[:100]!r}")


def report_time() -> None:
    """Milliseconds of the processor for a mebibyte, and how many times those of a plain pass."""
    ordinary = "".join(text + "\n" for text in (*MADE.kept, *HELD_OUT.kept))
    texts = {"ordinary": ordinary, **{part: part for part in HOSTILE}, **distinct()}
    for name, text in texts.items():
        full = (text * (MEBIBYTE // len(text.encode()) + 1))[:MEBIBYTE]
        took, floor = least(redact, full), least(plain_pass, full)
        print(f"  {name[:40]!r:42} {took * 1000:5.0f} ms/MiB  {took / floor:5.1f} x a plain pass")


def report_mixes(count: int = MIXES, seed: int = 1, shown: int = 5) -> None:
    """The slowest of texts that repeat a few of the hostile pieces."""
    dice = random.Random(seed)
    took = []
    for _ in range(count):
        unit = mixed(dice)
        text = repeated(unit)
        took.append((least(redact, text, 1), unit, text))
        took = sorted(took, reverse=True)[: 2 * shown]
    slowest = sorted(((least(redact, text), unit) for _, unit, text in took), reverse=True)
    print(f"the slowest of {count} mixed texts:")
    for seconds, unit in slowest[:shown]:
        print(f"  {unit[:60]!r:62} {seconds * 1000:5.0f} ms/MiB")


def mixed(dice: random.Random) -> str:
    """Two to six pieces, some of them several times; `{}` stands for what differs each time."""
    shapes = [shape.replace("{{", "{").replace("}}", "}") for shape in DISTINCT.values()]
    pieces = (*HOSTILE, *shapes, *BAITS.split(), *PIECES)
    parts = (dice.choice(pieces) * dice.choice((1, 1, 2, 9)) for _ in range(dice.randint(2, 6)))
    return "".join(parts)


def repeated(unit: str, size: int = MEBIBYTE) -> str:
    """A text of that size, of the unit with another value each time."""
    parts = unit.replace("{0}", "{}").split("{}")
    values = (f"{place * 7919:07x}Zk" for place in range(size // max(1, len(unit.encode())) + 1))
    return "".join(value.join(parts) for value in values)[:size]


def plain_pass(text: str) -> int:
    """How many of the words there are."""
    return sum(1 for _ in FLOOR.finditer(text))


def distinct(size: int = MEBIBYTE) -> dict[str, str]:
    """Texts of at least that size of each, and of words too short to be judged by their form."""
    dice = random.Random(4)
    values = [f"{dice.randrange(16**9):09x}" for _ in range(size // 12)]
    words = "".join(f"token: {value[:6]},\n" for value in values)
    shapes = {
        f"distinct {name}": "".join(shape.replace("{}", "{0}").format(value) for value in values)
        for name, shape in DISTINCT.items()
    }
    baited = {f"baited {part!r}": BAITS + part * (size // len(part)) for part in BAITED}
    return {"distinct words": words, **shapes, **baited}


def least(run: Callable[[str], object], text: str, times: int = 3) -> float:
    """The least of the processor's seconds a run takes."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        run(text)
        seconds.append(time.process_time() - started)
    return min(seconds)


def report_files(paths: list[str]) -> None:
    """Redactions by kind in the files named."""
    if not paths:
        return
    kinds: Counter[str] = Counter()
    for path in paths:
        found = redact(Path(path).read_text("utf-8", "replace"))
        kinds.update(dict.fromkeys(found.kinds, 1) | {"all": found.count})
    print(f"{len(paths)} files: {dict(kinds)}")


if __name__ == "__main__":
    asked = parser(__doc__)
    asked.add_argument("files", nargs="*", help="redacted too: what goes, by kind")
    asked.add_argument("--forms", choices=FORM_SETS)
    asked.add_argument("--mixes", nargs=2, type=int, metavar=("COUNT", "SEED"))
    given = asked.parse_args()
    if given.mixes:
        report_mixes(*given.mixes)
    elif given.forms:
        report_forms(given.forms, shows_mistakes=True)
    else:
        report_labelled()
        for form_set in FORM_SETS:
            report_forms(form_set)
        report_time()
        report_mixes()
        report_files(given.files)
