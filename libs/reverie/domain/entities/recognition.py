"""Rule-based recognition of packages, code names, services, hosts, ports and errors in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.entities.lexicon import (
    BRANDS,
    ERROR_NAMES,
    LOOPBACK_HOSTS,
    PLAIN_COMPOUND_PREFIXES,
    PROSE_WORDS,
    RUST_BUILT_IN_ROOTS,
    SERVICES,
)

MAX_ENTITIES = 64
MAX_NAME = 120
MAX_TEXT = 64 * 1024


class EntityType(StrEnum):
    """The type of an entity."""

    PACKAGE = "package"
    CODE = "code"
    SERVICE = "service"
    URL = "url"
    PORT = "port"
    ERROR = "error"


@dataclass(frozen=True)
class Entity:
    """A named thing. `name` is in lower case, without brackets; services have one name each."""

    type: EntityType
    name: str

    @property
    def label(self) -> str:
        """The displayed name; a port is not just a number."""
        return f"port {self.name}" if self.type is EntityType.PORT else self.name

    @property
    def key(self) -> str:
        """The key of the node: one per name, whatever its type."""
        return f"entity:{self.label}"


def candidate_labels(name: str) -> list[str]:
    """The labels of nodes that a name may refer to."""
    normalized = name.strip().lower()
    return sorted(
        {
            normalized,
            SERVICES.get(normalized, normalized),
            *(entity.label for entity in extract_entities(name)),
        }
    )


def extract_entities(text: str) -> list[Entity]:
    """The entities of a text, each once: of its first `MAX_TEXT` characters, `MAX_ENTITIES`.

    A name that is a package or a service is not code as well. Files are not among them: see
    `extract_paths`.
    """
    found: dict[str, Entity] = {}
    remaining = text[:MAX_TEXT]
    for rule in (
        _find_hosts,
        _find_ports,
        _find_packages,
        _find_errors,
        _find_services,
        _find_code_names,
    ):
        for entity in rule(remaining):
            if 1 < len(entity.name) <= MAX_NAME:
                found.setdefault(entity.label, entity)
        if rule is _find_ports:
            remaining = _URL.sub(" ", _PORT_MENTION.sub(" ", remaining))
        if rule is _find_packages:
            for pattern in (_RUST_LINE, _SCOPED_PACKAGE, _PINNED_PACKAGE, _MAIL):
                remaining = pattern.sub(" ", remaining)
            remaining = _FILE_LIKE.sub(_strip_path, remaining)
    return list(found.values())[:MAX_ENTITIES]


_A = re.A
_AI = re.A | re.I
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://([^\s<>()\"'`，。；、（）]+)", _AI)
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.\w{1,24}){1,4}", _A)
_HOST = re.compile(r"(?:[^@/]*@)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)", _AI)


def _find_hosts(text: str) -> Iterator[Entity]:
    for match in _URL.finditer(text):
        host = _HOST.match(match[1])
        if host and host[1].lower() not in LOOPBACK_HOSTS:
            yield Entity(EntityType.URL, host[1].lower().removeprefix("www."))


_PORT_MENTION = re.compile(
    r"(?:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\b[a-z][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,62}){1,6}"
    r"|(?<=[\s`(（])|^):(?P<host>\d{2,5})(?![\w:.-]\d|\w)"
    r"|\bports?(?: number)?(?:\s*[:=]\s*|\s+(?:is |to |at )?)(?P<word>\d{2,5})\b(?!\.\d)"
    r"|--port[ =](?P<flag>\d{2,5})\b"
    r"|端口(?:号)?(?:[是为:：改成到\s]{0,6})(?P<zh>\d{2,5})(?!\d)|(?<!\d)(?P<before>\d{2,5})\s?端口",
    _AI | re.M,
)
_PUBLISHED_PORTS = re.compile(r"(?:-p|--publish)[ =](?:[\d.]+:)?(\d{2,5}):(\d{2,5})\b", _A)
_FILE_LINE = re.compile(r"[\w/-]+\.[a-z]{1,5}:\d+", _A)
_SERVICE_PORT = re.compile(r"\b([a-z][a-z0-9]*):(\d{4,5})\b", _AI)


def _find_ports(text: str) -> Iterator[Entity]:
    numbers = [n for pair in _PUBLISHED_PORTS.findall(text) for n in pair]
    numbers += [n for name, n in _SERVICE_PORT.findall(text) if name.lower() in SERVICES]
    for match in _PORT_MENTION.finditer(text):
        if not (_FILE_LINE.fullmatch(match[0]) and extract_paths(match[0])):
            numbers.append(next(n for n in match.groups() if n))
    return (Entity(EntityType.PORT, n) for n in numbers if 20 <= int(n) <= 65535)


_SCOPED_PACKAGE = re.compile(r"(?<![\w/.])@[a-z0-9][a-z0-9-]*/[a-z0-9][\w.-]*[a-z0-9]", _A)
_GO_MODULE = re.compile(
    r"(?<![\w/.])(?:github\.com|gitlab\.com|bitbucket\.org|golang\.org|gopkg\.in|go\.uber\.org)"
    r"(?:/[\w.-]*\w){1,8}",
    _A,
)
_PINNED_PACKAGE = re.compile(
    r"(?<![\w/.@-])([a-z][\w.-]*\w)(?:\[[\w,-]+\])?(?:==|@[\^~]?)\d+\.\d", _A
)
_PY_IMPORT = re.compile(
    r"(?:^|`)[ \t>]*+import[ \t]++([a-z_][\w.]*+(?:[ \t]++as[ \t]++\w++)?"
    r"(?>(?:,[ \t]*+[a-z_][\w.]*+(?:[ \t]++as[ \t]++\w++)?)*))[ \t]*+(?:;[ \t]*+)?(?:#.*)?(?:$|`)"
    r"|\bimport[ \t]++([a-z_][\w.]*+)[ \t]++as[ \t]++\w+",
    _A | re.M,
)
_PY_FROM = re.compile(r"\bfrom[ \t]+([a-z_][\w.]*)[ \t]+import[ \t]+[\w*(]", _A)
_JS_IMPORT = re.compile(
    r"(?:\bfrom|\bimport|\brequire\(|\bimport\(|^[ \t]*+(?:[\w.]++[ \t])?)[ \t]*+(['\"])"
    r"(?P<name>@?[\w:.-]++(?>(?:/[\w.-]++)*))\1",
    _A | re.M,
)
_RUST_USE = re.compile(r"^[ \t]*(?:pub )?(?:use|extern crate)[ \t]+([a-z]\w*)(?:::|;)", _A | re.M)
_RUST_LINE = re.compile(r"^[ \t]*(?:pub )?use[ \t]+[a-z]\w*::[^;\n]*;", _A | re.M)
_INSTALL = re.compile(
    r"\b(?:(?:uv )?pip3? install|uv(?: tool)? (?:add|install)|uvx|poetry add"
    r"|pipx install|conda install"
    r"|npm (?:i|install|add)|yarn(?: global)? add|pnpm (?:add|i|install)|bun (?:add|install)|npx"
    r"|go (?:get|install)|cargo (?:add|install)|gem install|brew install|composer require"
    r"|apt(?:-get)? install|dotnet add package)[ \t]+"
    r"(?P<rest>[^\n`;&|，。；、）)]{1,300})(?P<end>`?)",
    _A,
)
_NAMED_PACKAGE = re.compile(
    r"`(@?[a-z][\w.@/-]*)` (?:package|library|crate|gem|module|dependency)\b"
    r"|(?<![\w/.@-])([a-z][\w.-]{2,})\s?(?:库|依赖包|软件包|这个包)",
    _A,
)
_OPTION_WITH_VALUE = re.compile(
    r"(?<!\S)(?:-[rcteE]|--(?:features|extra|group|target|index-url|registry|version|vers))[ =]\S+",
    _A,
)
_REQUIREMENT = re.compile(r"@?[A-Za-z][\w./-]*(?::[a-z/_]+)?")


def _find_packages(text: str) -> Iterator[Entity]:
    names = [*_SCOPED_PACKAGE.findall(text), *_GO_MODULE.findall(_URL.sub(" ", text))]
    names += _PINNED_PACKAGE.findall(text)
    names += [m[1] or m[2] for m in _NAMED_PACKAGE.finditer(text)]
    names += [*_find_imports(text), *_find_installs(text)]
    return (Entity(EntityType.PACKAGE, name) for raw in names if (name := _normalize_package(raw)))


def _find_imports(text: str) -> Iterator[str]:
    for match in _PY_IMPORT.finditer(text):
        for part in (match[1] or match[2]).split(","):
            yield part.split()[0].split(".")[0]
    for name in _PY_FROM.findall(text):
        yield name.split(".")[0]
    yield from (name for name in _RUST_USE.findall(text) if name not in RUST_BUILT_IN_ROOTS)
    has_go_imports = "import (" in text
    for match in _JS_IMPORT.finditer(text):
        has_keyword = not re.match(r"\s*['\"]", match[0])
        if has_keyword or (has_go_imports and "/" in match["name"]):
            yield match["name"]


def _find_installs(text: str) -> Iterator[str]:
    for match in _INSTALL.finditer(text):
        words = [
            w for w in _OPTION_WITH_VALUE.sub(" ", match["rest"]).split() if not w.startswith("-")
        ]
        names: list[str] = []
        for word in words:
            name = word.rstrip(".,:!?")
            if name.lower() in PROSE_WORDS or not _REQUIREMENT.match(name):
                break
            names.append(name)
            if name != word:
                break
        is_complete = bool(match["end"]) or len(names) == len(words)
        yield from names if is_complete else names[:1]


def _normalize_package(raw: str) -> str | None:
    """Returns the package of an import or a requirement; None for files and relative ones."""
    name = re.split(r"[=<>~!\[;,'\"]|(?<=.)@", raw.lower(), maxsplit=1)[0].strip("./")
    if not _REQUIREMENT.fullmatch(name) or name in PROSE_WORDS or extract_paths(name):
        return None
    parts = name.split("/")
    if "." in parts[0] and len(parts) > 1:
        return "/".join(parts[:3])
    if name.startswith("@"):
        return "/".join(parts[:2]) if len(parts) > 1 else None
    return name


_ERROR_CODE = re.compile(
    r"\b(?:CVE-\d{4}-\d{4,7}|GHSA(?:-\w{4}){3}|TS\d{4,5}|ORA-\d{5}|PGRST\d{3}|MSB\d{4}|CS\d{4}"
    r"|NU\d{4}|RUF\d{3}|PL[CEWR]\d{4}|SC\d{4}|E[0-9]\d{2,3}|F[4-9]\d{2}|AADSTS\d{4,6}|P[12]0\d{2}"
    r"|(?>(?:(?!ERR(?:OR)?_)[A-Z]++_)*)ERR(?:OR)?(?>(?:_[A-Z0-9]++)+))\b",
    _A,
)
_SQLSTATE = re.compile(r"\bSQLSTATE[ :=\[(]*(\w{5})\b", _AI)
_EXIT_STATUS = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: code| status| code of)[ :=]*(\d{1,3})\b", _AI
)
_HTTP_STATUS = re.compile(
    r"\b(?:HTTP(?:/\d(?:\.\d)?)?(?: status| error| code)*"
    r"|status(?: code)?(?: of)?|(?:returns?|returned|answers|answered|responds with|got|throws)"
    r"(?: an?| HTTP)?)[ :=]*(?P<after>[45]\d\d)\b(?!\s*(?:rows?|items?|pages?|results?|bytes|ms"
    r"|MB|times|files|lines|records|users|percent|%|\.\d|,\d))"
    r"|\b(?P<named>[45]\d\d)\b(?= (?:errors?\b|responses?\b|status\b|Too Many|Not Found|Forbidden"
    r"|Unauthorized|Bad (?:Request|Gateway)|Conflict|Internal Server|Service Unavail|Gateway Time))"
    r"|(?:返回|报|状态码|响应码|错误码)[是为了:：\s]{0,4}(?P<zh>[45]\d\d)(?!\d)"
    r"|(?<!\d)(?P<zhbefore>[45]\d\d)\s?(?:错误|状态码)",
    _AI,
)
_EXCEPTION = re.compile(r"\b(?:[A-Z]+[a-z0-9]+)+(?:Error|Exception|Warning|Fault)\b", _A)
_WORD = re.compile(r"\b[A-Za-z]\w*\b", _A)


def _find_errors(text: str) -> Iterator[Entity]:
    names = [*_ERROR_CODE.findall(text), *_EXCEPTION.findall(text)]
    names += [word for word in _WORD.findall(text) if word in ERROR_NAMES]
    names += [f"sqlstate {code}" for code in _SQLSTATE.findall(text)]
    names += [f"exit {code}" for code in _EXIT_STATUS.findall(text) if code != "0"]
    names += [f"http {next(g for g in m.groups() if g)}" for m in _HTTP_STATUS.finditer(text)]
    return (Entity(EntityType.ERROR, name.lower()) for name in names)


_SERVICE_CLASS = re.compile(r"\b((?:[A-Z][a-z0-9]+)+(?:Service|Gateway))\b", _A)
_SERVICE_NAME = re.compile(
    r"(?<![\w/@.-])((?:[a-z][a-z0-9]*-)+(?:service|svc|gateway|worker))(?![\w-])", _A
)
_SERVICE_CODE_SPAN = re.compile(
    r"`((?:[a-z][a-z0-9]*-)+(?:service|svc|gateway|worker|api|server|proxy|daemon|db))`", _A
)
_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _find_services(text: str) -> Iterator[Entity]:
    names = [SERVICES[w.lower()] for w in _WORD.findall(text) if w.lower() in SERVICES]
    names += [
        "-".join(_CAMEL_BOUNDARY.split(name)).lower() for name in _SERVICE_CLASS.findall(text)
    ]
    for name in _SERVICE_NAME.findall(text):
        if name.rpartition("-")[0] not in PLAIN_COMPOUND_PREFIXES:
            names.append(name)
    names += _SERVICE_CODE_SPAN.findall(text)
    return (Entity(EntityType.SERVICE, name) for name in names)


_NAME = r"[A-Za-z_]\w*"
_CALL = re.compile(rf"(?<![\w.:])(?<!->)({_NAME}(?:(?:\.|::|->){_NAME})*)\(\)", _A)
_DOTTED_CALL = re.compile(rf"(?<![\w.:])({_NAME}(?:(?:\.|::){_NAME})+)\(", _A)
_DEFINITION = re.compile(
    rf"\b(?:def|func|function|fn|fun|async def)[ \t]+({_NAME})[ \t]*[(<]"
    rf"|\b(?:class|struct|interface|trait|enum)[ \t]+([A-Z]\w+)[ \t]*[:({{<]"
    rf"|(?:函数|方法|类|接口)[ \t]?({_NAME})",
    _A,
)
_CODE_SPAN = re.compile(rf"`({_NAME}(?:(?:\.|::|->|#){_NAME})+)(?:\([^`]*\))?`", _A)
_DOTTED_NAME = re.compile(rf"(?<![\w.@/-]){_NAME}(?:(?:\.|::){_NAME})+(?![\w/-])", _A)
_CODE_WORD = re.compile(
    r"[a-z]{2}[a-z0-9]*+(?>(?:[A-Z][a-z0-9]*+)+)(?:_\w+)?"
    r"|(?>(?:[A-Z][a-z0-9]++){2,})[A-Z]?|[A-Z]{3,}+[a-z]{2}\w*"
    r"|(?>(?:[A-Z][a-z0-9]++)+)[A-Z]{2,}+[a-z]\w+"
    r"|_*+[a-z][a-z0-9]*+(?>(?:_++[a-z0-9]++)+)_*|__[a-z0-9]++__"
    r"|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)+"
)
"""A whole word in camel, Pascal or snake case."""


def _find_code_names(text: str) -> Iterator[Entity]:
    words = _WORD_OR_UNDERSCORE.findall(_DOTTED_NAME.sub(" ", text))
    names = chain(_find_calls(text), _find_dotted_names(text), filter(_is_code, words))
    for name in names:
        yield Entity(EntityType.CODE, name.replace("->", ".").replace("#", ".").lower())


def _find_calls(text: str) -> Iterator[str]:
    yield from (name for name in _CALL.findall(text) if len(name) > 2)
    yield from _DOTTED_CALL.findall(text)
    yield from _CODE_SPAN.findall(text)
    for match in _DEFINITION.finditer(text):
        name = next(g for g in match.groups() if g)
        if len(name) > 2:
            yield name


def _find_dotted_names(text: str) -> Iterator[str]:
    """Dotted names that are no prose: three or more parts, or a part that looks like code."""
    for name in _DOTTED_NAME.findall(text):
        parts = re.split(r"\.|::", name)
        has_code_part = any(_is_code(part) for part in parts)
        if has_code_part or "::" in name or (len(parts) > 2 and min(map(len, parts)) > 1):
            last = parts[-1]
            if not _EXCEPTION.fullmatch(last):
                yield name


_WORD_OR_UNDERSCORE = re.compile(r"(?<![\w@/-])[A-Za-z_]\w*", _A)


def _is_code(name: str) -> bool:
    """Returns whether a word has the form of a code name, and is no brand, family name or error."""
    if len(name) > MAX_NAME or name.startswith(("Mc", "Mac")):
        return False
    if name in BRANDS or name in ERROR_NAMES or name.lower() in SERVICES:
        return False
    if any(pattern.fullmatch(name) for pattern in (_EXCEPTION, _ERROR_CODE, _SERVICE_CLASS)):
        return False
    return _CODE_WORD.fullmatch(name) is not None


_FILE_LIKE = re.compile(r"[\w.@~/\\+-]{2,}", _A)


def _strip_path(match: re.Match[str]) -> str:
    """A blank for a path: its parts are no names of code."""
    token = match[0].rstrip(".")
    return " " if "/" in token.strip("/") or extract_paths(token) else match[0]
