"""Text edits that add Reverie's settings to JSON, TOML, YAML and Markdown files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

from reverie.agent.setup import jsonc as jsonc
from reverie.domain.core.errors import MalformedInput

TextEdit: TypeAlias = Callable[[str], str]
"""A function from the text of a file to its new text; an empty text means a missing file."""

BEGIN_MARK: Final = "<!-- reverie:setup -->"
END_MARK: Final = "<!-- /reverie:setup -->"
_BLOCK: Final = re.compile(
    rf"{re.escape(BEGIN_MARK)}(?:(?!{re.escape(BEGIN_MARK)}).)*?{re.escape(END_MARK)}", re.S
)


def set_json_value(path: Sequence[str], value: Any) -> TextEdit:
    """Sets one value of a JSON file, comments allowed."""
    return lambda text: jsonc.set_value(text, path, value)


def add_json_hooks(groups: Mapping[str, Mapping[str, Any]]) -> TextEdit:
    """Adds a hook or a group of hooks for each event; one of ours is replaced."""

    def edit(text: str) -> str:
        for event, group in groups.items():
            text = _add_hook(text, event, group)
        return text

    return edit


def _add_hook(text: str, event: str, group: Mapping[str, Any]) -> str:
    existing = jsonc.get_value(text, ["hooks", event])
    if not isinstance(existing, list) or not any(map(_is_own_group, existing)):
        return jsonc.append_value(text, ["hooks", event], dict(group))
    updated = [dict(group) if _is_own_group(candidate) else candidate for candidate in existing]
    return jsonc.set_value(text, ["hooks", event], updated)


def _is_own_group(group: Any) -> bool:
    hooks = group.get("hooks", [group]) if isinstance(group, dict) else None
    commands = [hook.get("command") for hook in hooks or () if isinstance(hook, dict)]
    return len(commands) == 1 and bool(re.search(r"\breverie'? hook ", str(commands[0])))


def set_toml_table(path: Sequence[str], values: Mapping[str, Any]) -> TextEdit:
    """Sets one table of a TOML file; other values in it are removed.

    A clone may bring the table along, with an environment that sends the key elsewhere.
    """

    def edit(text: str) -> str:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        try:
            document: Any = tomlkit.parse(text)
        except TOMLKitError as error:
            raise MalformedInput(f"is no TOML: {error}") from None
        table = document
        for depth, name in enumerate(path):
            if name not in table:
                table[name] = tomlkit.table(is_super_table=depth < len(path) - 1)
            table = table[name]
            if not isinstance(table, MutableMapping):
                raise MalformedInput(f"has a value at {name}, not a table")
        for name in [name for name in table if name not in values]:
            del table[name]
        for name, value in values.items():
            if table.get(name) != value:
                table[name] = value
        return str(tomlkit.dumps(document))

    return edit


def set_yaml_value(path: Sequence[str], value: Any) -> TextEdit:
    """Sets one value of a YAML file."""
    return lambda text: _edit_yaml(text, lambda document: _set_yaml_path(document, path, value))


def add_yaml_item(name: str, value: str) -> TextEdit:
    """Adds an item to a list of a YAML file, which may be written as a single value."""

    def change(document: Any) -> bool:
        existing = document.get(name)
        items = existing if isinstance(existing, list) else [] if existing is None else [existing]
        if value in items:
            return False
        document[name] = [*items, value]
        return True

    return lambda text: _edit_yaml(text, change)


def _set_yaml_path(document: Any, path: Sequence[str], value: Any) -> bool:
    for name in path[:-1]:
        if document.get(name) is None:
            document[name] = {}
        document = document[name]
    if document.get(path[-1]) == value:
        return False
    document[path[-1]] = value
    return True


def _edit_yaml(text: str, change: Callable[[Any], bool]) -> str:
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
        raise MalformedInput(f"is no YAML: {str(error).splitlines()[0]}") from None
    document = {} if document is None else document
    if not hasattr(document, "get"):
        raise MalformedInput("is no YAML of names and values")
    if not change(document):
        return text
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def insert_block(instructions: str) -> TextEdit:
    """Puts instructions between two marks, at the end of the file the first time."""

    def edit(text: str) -> str:
        line_end = "\r\n" if "\r\n" in text else "\n"
        new = f"{BEGIN_MARK}\n{instructions.strip()}\n{END_MARK}".replace("\n", line_end)
        if _BLOCK.search(text):
            return _BLOCK.sub(lambda _: new, text, count=1)
        gap = "" if not text else line_end if text.endswith("\n") else line_end * 2
        return f"{text}{gap}{new}{line_end}"

    return edit


def remove_block(text: str) -> str:
    """The text without the instructions that `insert_block` puts into it."""
    return _BLOCK.sub("", text)


def set_content(content: str) -> TextEdit:
    """A file that is Reverie's own."""
    return lambda _: f"{content.strip()}\n"
