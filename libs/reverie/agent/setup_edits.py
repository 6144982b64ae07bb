"""How each format of configuration takes what Reverie adds, and keeps what was there."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from reverie.agent import setup_jsonc as jsonc
from reverie.domain.errors import Malformed

Edit: TypeAlias = Callable[[str], str]
"""The new text of a file; an empty text stands for a file that is not there."""

BEGIN: Final = "<!-- reverie:setup -->"
END: Final = "<!-- /reverie:setup -->"
_BLOCK: Final = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.S)


def json_value(path: Sequence[str], value: Any) -> Edit:
    """Sets one value of a JSON file, comments allowed."""
    return lambda text: jsonc.put(text, path, value)


def json_hooks(groups: Mapping[str, Mapping[str, Any]]) -> Edit:
    """Adds hooks in Claude Code's shape, a group for each event; one of ours is replaced."""

    def edit(text: str) -> str:
        for event, group in groups.items():
            text = _with_hook(text, event, group)
        return text

    return edit


def _with_hook(text: str, event: str, group: Mapping[str, Any]) -> str:
    there = jsonc.value_at(text, ["hooks", event])
    if not isinstance(there, list) or not any(map(_ours, there)):
        return jsonc.append(text, ["hooks", event], dict(group))
    kept = [dict(group) if _ours(one) else one for one in there]
    return jsonc.put(text, ["hooks", event], kept)


def _ours(group: Any) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    commands = [one.get("command") for one in hooks or () if isinstance(one, dict)]
    return len(commands) == 1 and bool(re.search(r"\breverie'? hook ", str(commands[0])))


def toml_table(path: Sequence[str], values: Mapping[str, Any]) -> Edit:
    """Sets the values of one table of a TOML file."""

    def edit(text: str) -> str:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        try:
            document: Any = tomlkit.parse(text)
        except TOMLKitError as error:
            raise Malformed(f"is no TOML: {error}") from None
        at = document
        for depth, name in enumerate(path):
            if name not in at:
                at[name] = tomlkit.table(is_super_table=depth < len(path) - 1)
            at = at[name]
        for name, value in values.items():
            if at.get(name) != value:
                at[name] = value
        return str(tomlkit.dumps(document))

    return edit


def yaml_value(path: Sequence[str], value: Any) -> Edit:
    """Sets one value of a YAML file."""
    return lambda text: _in_yaml(text, lambda document: _set(document, path, value))


def yaml_item(name: str, value: str) -> Edit:
    """Adds an item to a list of a YAML file, which may be written as a single value."""

    def change(document: Any) -> bool:
        there = document.get(name)
        items = there if isinstance(there, list) else [] if there is None else [there]
        if value in items:
            return False
        document[name] = [*items, value]
        return True

    return lambda text: _in_yaml(text, change)


def _set(document: Any, path: Sequence[str], value: Any) -> bool:
    for name in path[:-1]:
        if document.get(name) is None:
            document[name] = {}
        document = document[name]
    if document.get(path[-1]) == value:
        return False
    document[path[-1]] = value
    return True


def _in_yaml(text: str, change: Callable[[Any], bool]) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 4096
    try:
        document: Any = yaml.load(text) if text.strip() else None
        if document is not None:
            _, mapping, sequence = load_yaml_guess_indent(text)
            offset = sequence or 0
            yaml.indent(mapping=mapping or 2, sequence=offset + 2, offset=offset)
    except YAMLError as error:
        raise Malformed(f"is no YAML: {str(error).splitlines()[0]}") from None
    document = {} if document is None else document
    if not hasattr(document, "get"):
        raise Malformed("is no YAML of names and values")
    if not change(document):
        return text
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def block(words: str) -> Edit:
    """Puts instructions between two marks, at the end of the file the first time."""

    def edit(text: str) -> str:
        line = "\r\n" if "\r\n" in text else "\n"
        new = f"{BEGIN}\n{words.strip()}\n{END}".replace("\n", line)
        if _BLOCK.search(text):
            return _BLOCK.sub(lambda _: new, text, count=1)
        gap = "" if not text else line if text.endswith("\n") else line * 2
        return f"{text}{gap}{new}{line}"

    return edit


def without_block(text: str) -> str:
    """The text without the instructions that `block` puts into it."""
    return _BLOCK.sub("", text)


def whole(words: str) -> Edit:
    """A file that is Reverie's own."""
    return lambda _: f"{words.strip()}\n"
