"""Renders an OpenAPI document as one static HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

Json = dict[str, Any]

STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--get:light-dark(#1a7f4b,#56d364);
--post:light-dark(#2563c9,#79b8ff);--put:light-dark(#9a6700,#e3b341);
--patch:light-dark(#8250c8,#d2a8ff);--delete:light-dark(#c4332b,#ff7b72)}
*{box-sizing:border-box}
body{margin:0;font:15px/1.5 system-ui,sans-serif;display:grid;grid-template-columns:20rem 1fr}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem;font-size:13px;
border-right:1px solid var(--line)}
nav h2{font-size:13px;margin:1rem 0 .2rem}
nav a{display:block;color:inherit;text-decoration:none;white-space:nowrap;overflow:hidden;
text-overflow:ellipsis}
nav a:hover,nav a:focus{text-decoration:underline}
main{padding:1.5rem 2rem;max-width:62rem;min-width:0}
section{border-top:1px solid var(--line);padding:1rem 0}
h3{font:600 15px ui-monospace,monospace;margin:0 0 .3rem;overflow-wrap:anywhere}
b{font:700 12px ui-monospace,monospace;margin-right:.5em}
.get{color:var(--get)}.post{color:var(--post)}.put{color:var(--put)}.patch{color:var(--patch)}
.delete{color:var(--delete)}
table{border-collapse:collapse;width:100%;font-size:13px;margin:.4rem 0}
td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;
border-bottom:1px solid var(--soft)}
pre{background:var(--soft);padding:.7rem;border-radius:6px;overflow:auto;font-size:12.5px;
margin:.4rem 0}
summary{cursor:pointer;font-size:13px}
section:target h3{background:var(--soft)}
@media(max-width:50rem){body{display:block}main{padding:1rem}
nav{position:static;height:auto;max-height:45vh;border:0;border-bottom:1px solid var(--line)}
nav a{line-height:1.9}}
"""
_FIRST_TAGS = ("remember", "recall", "context", "preflow", "memories", "links", "graph", "impact")
_LAST_TAGS = ("admin", "service")
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def render_openapi_page(document: Json) -> str:
    """The page; its `Content-Security-Policy` is `CONTENT_SECURITY_POLICY`."""
    info = document["info"]
    title = escape(f"{info['title']} {info['version']}")
    calls = sorted(_operations(document), key=_sort_key)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}</style></head><body>{_index(calls)}<main><h1>{title}</h1>"
        f"<p>{_prose(info['description'])}</p>"
        "<p>Send <code>Authorization: Bearer &lt;key&gt;</code>. The same as a document: "
        '<a href="/openapi.json">openapi.json</a>.</p>'
        + "".join(_section(document, *item) for item in calls)
        + '<h2 id="models">Models</h2>'
        + "".join(_model(name, item) for name, item in document["components"]["schemas"].items())
        + "</main></body></html>"
    )


def _sort_key(call: tuple[str, str, Json]) -> tuple[int, str]:
    """What an agent asks first comes first; looking after the system last."""
    tag = call[2]["tags"][0]
    if tag in _FIRST_TAGS:
        return _FIRST_TAGS.index(tag), ""
    return (len(_FIRST_TAGS) + (tag in _LAST_TAGS), tag if tag not in _LAST_TAGS else "")


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _index(calls: list[tuple[str, str, Json]]) -> str:
    lines, tag = [], ""
    for method, path, operation in calls:
        if operation["tags"][0] != tag:
            tag = operation["tags"][0]
            lines.append(f"<h2>{escape(tag)}</h2>")
        lines.append(
            f'<a href="#{operation["operationId"]}"><b class="{method}">{method.upper()}</b>'
            f"{escape(path)}</a>"
        )
    return f'<nav aria-label="Calls">{"".join(lines)}<h2><a href="#models">models</a></h2></nav>'


def _section(document: Json, method: str, path: str, operation: Json) -> str:
    status = next(iter(operation["responses"]))
    body = operation.get("requestBody", {}).get("content", {})
    return (
        f'<section id="{operation["operationId"]}">'
        f'<h3><b class="{method}">{method.upper()}</b>{escape(path)}</h3>'
        f"<p>{_prose(operation['summary'])}{'' if 'security' not in operation else ' (no key)'}</p>"
        + _parameters(document, operation)
        + "".join(_content("Sends", media, content) for media, content in body.items())
        + "".join(_fields(document, content["schema"]) for content in body.values())
        + "".join(
            _content(f"Answers {status}", media, content)
            for media, content in operation["responses"][status].get("content", {}).items()
        )
        + f"<p>Refuses with {', '.join(code for code in operation['responses'] if code >= '4')}</p>"
        "</section>"
    )


def _parameters(document: Json, operation: Json) -> str:
    rows = "".join(_parameter(document, parameter) for parameter in operation["parameters"])
    return f"<table><tr><th>name<th>in<th>type<th>what</tr>{rows}</table>" if rows else ""


def _parameter(document: Json, parameter: Json) -> str:
    if "$ref" in parameter:
        parameter = document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
    needed = " *" if parameter.get("required") else ""
    examples = [f"as {json.dumps(parameter['example'])}"] if "example" in parameter else []
    description = parameter.get("description") or "; ".join(
        [*_bounds(parameter["schema"]), *examples]
    )
    cells = (
        parameter["name"] + needed,
        parameter["in"],
        _type_name(parameter["schema"]),
        description,
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}" for cell in cells) + "</tr>"


def _bounds(schema: Json) -> list[str]:
    """The least, the most and the default of a parameter, as a person says them."""
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    parts = [f"{minimum} to {maximum}"] if None not in (minimum, maximum) else []
    if schema.get("default") is not None:
        parts.append(f"{json.dumps(schema['default'])} by default")
    return parts


def _type_name(schema: Json) -> str:
    """A schema in a word or two."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(str(option) for option in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type_name(option) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type_name(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("const") or schema.get("type", "any"))


def _content(word: str, media: str, content: Json) -> str:
    model = _type_name(content["schema"])
    of_model = f' <a href="#model-{model}">{model}</a>' if "$ref" in content["schema"] else ""
    examples = "".join(
        _example(example["value"]) for example in content.get("examples", {}).values()
    )
    return (
        f"<details open><summary>{escape(word)} {escape(media)}{of_model}</summary>"
        f"{examples}</details>"
    )


def _fields(document: Json, schema: Json) -> str:
    """The fields of a body, folded away."""
    if "$ref" not in schema:
        return ""
    model = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return f"<details><summary>Fields</summary><table>{_rows(model)}</table></details>"


def _example(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return f"<pre>{escape(text)}</pre>"


def _model(name: str, schema: Json) -> str:
    return (
        f'<section id="model-{escape(name)}"><h3>{escape(name)}</h3>'
        f"<p>{_prose(schema.get('description', ''))}</p><table>{_rows(schema)}</table></section>"
    )


def _rows(schema: Json) -> str:
    return "".join(
        f"<tr><td>{escape(field)}{' *' if field in schema.get('required', ()) else ''}"
        f"<td>{escape(_type_name(field_schema))}<td>{escape('; '.join(_bounds(field_schema)))}</tr>"
        for field, field_schema in schema.get("properties", {}).items()
    )


def _prose(text: str) -> str:
    """Words with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
