"""Sources and precedence of settings, and the messages for wrong ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from pydantic import SecretStr

from reverie.cli.app.options import resolve_settings
from reverie.domain.core.errors import Misconfigured
from reverie.embedded.reporting import ALL
from reverie.embedded.supervision.service_layout import (
    WITHHELD_SETTINGS,
    ServerUrls,
    build_environment,
)
from reverie.runtime.settings.loading import (
    describe_settings,
    find_unknown_variables,
    load_settings,
)
from reverie.runtime.settings.memory_settings import EmbeddingProfile
from reverie.runtime.settings.settings import INTERNAL_VARIABLES, Settings, base_url, has_type


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder, an empty home, and no REVERIE_* variable from outside."""
    for name in [name for name in os.environ if name.startswith("REVERIE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write_user(project: Path, text: str) -> Path:
    path = project.parent / "home" / "config.toml"
    path.write_text(text, "utf-8")
    return path


def test_without_any_source_the_defaults_apply(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(project_dir=project)
    assert (settings.host, settings.recall_port) == ("127.0.0.1", 3456)
    assert settings.database_url is None
    monkeypatch.delenv("REVERIE_HOME")
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.setenv("REVERIE_DATABASE_URL", "")
    settings = load_settings(project_dir=project)
    assert (settings.home, settings.database_url) == (project / ".reverie", None)


def test_flag_beats_environment_beats_project_file_beats_user_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_user(project, "project = 'user'\nrecall_port = 1\ningest_port = 1\nnats_port = 1")
    assert load_settings(project_dir=project).project == "user"
    (project / "reverie.toml").write_text("project = 'file'")
    assert load_settings(project_dir=project).project == "file"
    monkeypatch.setenv("REVERIE_PROJECT", "environment")
    monkeypatch.setenv("REVERIE_RECALL_PORT", "3")
    monkeypatch.setenv("REVERIE_INGEST_PORT", "3")
    assert load_settings(project_dir=project).project == "environment"
    settings = load_settings({"recall_port": 4, "project": "flag", "nats_port": None}, project)
    ports = [settings.recall_port, settings.ingest_port, settings.nats_port]
    assert (settings.project, ports) == ("flag", [4, 3, 1])


def test_the_home_flag_selects_the_user_file(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    (other / "config.toml").write_text("recall_port = 7")
    settings = load_settings({"home": other}, project)
    assert (settings.home, settings.recall_port) == (other, 7)


def test_a_relative_path_in_a_file_is_relative_to_that_file(project: Path) -> None:
    path = write_user(project, 'embedding_model_dir = "models"\nspans_file = "../spans.jsonl"')
    settings = load_settings(project_dir=project)
    assert settings.embedding_model_dir == path.parent / "models"
    assert settings.spans_file == path.parent / "../spans.jsonl"


def test_an_unknown_key_names_the_file_and_suggests_the_nearest(project: Path) -> None:
    path = write_user(project, "recal_port = 1")
    with pytest.raises(Misconfigured) as caught:
        load_settings(project_dir=project)
    assert str(caught.value) == (
        f"recal_port: is no setting (in {path}); did you mean recall_port?"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("zzzzqqqq = 1", r"docs/reference/settings\.md lists them"),
        ("[dream]\nafter_chars = 1", "settings have no tables"),
        ('home = "/elsewhere"', "home: cannot be set in"),
    ],
)
def test_a_line_that_a_user_file_cannot_have_is_refused(
    project: Path, text: str, reason: str
) -> None:
    write_user(project, text)
    with pytest.raises(Misconfigured, match=reason):
        load_settings(project_dir=project)


@pytest.mark.parametrize(
    ("line", "key", "allowed"),
    [
        ("recall_port = 70000", "recall_port", "less than or equal to 65535"),
        ('recall_port = "many"', "recall_port", "valid integer"),
        ('log_format = "xml"', "log_format", "'console' or 'json'"),
        ('log_level = "loud"', "log_level", "'debug', 'info', 'warning' or 'error'"),
        ('database_url = "mysql://h/d"', "database_url", "postgres:// or postgresql://"),
        ('nats_url = "http://h"', "nats_url", "nats:// or tls://"),
        ('ingest_url = "h:1"', "ingest_url", "http:// or https://"),
        ("body_limit = 0", "body_limit", "greater than or equal to 1"),
        ("shutdown_timeout = 0", "shutdown_timeout", "greater than 0"),
        ('host = " "', "host", "must not be empty"),
        ('api_key = "two words"', "api_key", "printable ASCII"),
    ],
)
def test_an_invalid_value_names_the_key_and_what_is_allowed(
    project: Path, line: str, key: str, allowed: str
) -> None:
    path = write_user(project, line)
    with pytest.raises(Misconfigured, match=allowed) as caught:
        load_settings(project_dir=project)
    assert caught.value.setting == key
    assert f"(in {path})" in str(caught.value)


def test_an_invalid_variable_is_named_as_the_variable(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_RECALL_PORT", "x")
    with pytest.raises(Misconfigured, match="REVERIE_RECALL_PORT in the environment"):
        load_settings(project_dir=project)


def test_an_unknown_flag_is_refused(project: Path) -> None:
    with pytest.raises(Misconfigured, match="prot: is no setting"):
        load_settings({"prot": 1}, project)


def test_a_file_that_is_not_toml_is_named_with_the_line(project: Path) -> None:
    path = write_user(project, "recall_port = \n")
    with pytest.raises(Misconfigured, match=r"is not TOML: .*line") as caught:
        load_settings(project_dir=project)
    assert caught.value.setting == str(path)
    path.write_bytes(b"host = '\xff'")
    with pytest.raises(Misconfigured, match="is not TOML"):
        load_settings(project_dir=project)


def test_no_secret_is_shown_by_the_settings_or_their_errors(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_DATABASE_URL", "postgres://u:hunter2@h/d")
    settings = load_settings({"api_key": "hunter2"}, project)
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump_json()}"
    monkeypatch.setenv("REVERIE_NATS_URL", "hunter2@h")
    with pytest.raises(Misconfigured) as caught:
        load_settings(project_dir=project)
    assert "hunter2" not in f"{caught.value!r} {caught.value}"
    assert caught.value.__suppress_context__


def test_settings_built_in_code_read_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_RECALL_PORT", "1")
    assert Settings().recall_port == 3456


def test_urls_of_services_follow_host_and_port_unless_set() -> None:
    settings = Settings(host="0.0.0.0", ingest_port=9, dream_url="https://dream.example/")
    assert settings.url_of("ingest") == "http://127.0.0.1:9"
    assert settings.url_of("dream") == "https://dream.example"
    assert settings.url_of("recall") == "http://127.0.0.1:3456"
    assert base_url("::1", 5) == "http://[::1]:5"


def test_every_setting_is_documented() -> None:
    docs = list(describe_settings())
    assert {doc.name for doc in docs} == set(Settings.model_fields)
    assert all(len(doc.description) > 10 for doc in docs)
    secrets = {doc.name for doc in docs if doc.secret}
    assert secrets == {
        "database_url",
        "database_replica_url",
        "database_migration_url",
        "database_readonly_url",
        "nats_url",
        "vault_key",
        "api_key",
        "embedding_key",
        "rerank_key",
        "oidc_client_secret",
        "llm_key",
        "engine_models",
        "engine_mcp_servers",
    }


def test_a_mistyped_variable_is_reported() -> None:
    environ = {"REVERIE_RECAL_PORT": "1", "REVERIE_HOST": "h", "REVERIE_LIFELINE": "1", "PATH": ""}
    assert find_unknown_variables(environ) == {"REVERIE_RECAL_PORT": "REVERIE_RECALL_PORT"}


def _sample(name: str) -> object:
    """A value of a setting that is not its default."""
    field = Settings.model_fields[name]
    given: dict[str, object] = {
        "confidence_half_life_days": {"bug": 7.5, "default": 20.0},
        "oidc_claims": {"tenant": "realm_access.tenant"},
        "host": "127.0.0.2",
        "embedding_dims": 384,
        "recall_index_mb": 3,
        "relevance_threshold": 0.3,
        "decay_floor": 0.2,
        "engine_tools": ["web_fetch"],
        "decay_boost": 0.3,
        "embedding_profiles": {"large": EmbeddingProfile(url="https://host/v1", dims=8)},
    }
    if name in given:
        return given[name]
    choices = [
        value
        for annotation in (field.annotation, *get_args(field.annotation))
        if get_origin(annotation) is Literal
        for value in get_args(annotation)
        if value != field.default
    ]
    if choices:
        return choices[0]
    if has_type(name, bool):
        return not field.default
    if has_type(name, int):
        return 3
    if has_type(name, float):
        return 3.5
    if has_type(name, Path):
        return Path("/tmp/of-the-setting")
    scheme = "nats" if name == "nats_url" else "postgresql"
    if has_type(name, SecretStr):
        return SecretStr(f"{scheme}://u:p@host/x")
    return "https://host.example/v1"


def _written(value: object) -> str:
    """The value as text, for a flag or a variable."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict | list):
        return json.dumps(value, default=lambda model: model.model_dump(exclude_none=True))
    return str(value)


def _as_toml(value: object) -> str:
    if isinstance(value, EmbeddingProfile):
        return _as_toml(value.model_dump(exclude_none=True))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, bool | int | float | list):
        return json.dumps(value)
    return json.dumps(_written(value))


def test_every_setting_can_be_set_by_flag_variable_and_file_and_reaches_services(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {name: _sample(name) for name in sorted(set(Settings.model_fields) - {"home"})}

    def check(loaded: Settings, names: Iterable[str] = given) -> None:
        assert {name: getattr(loaded, name) for name in names} == {
            name: given[name] for name in names
        }

    flags = [f"{name}={_written(value)}" for name, value in given.items()]
    check(resolve_settings(project.parent / "home", flags))
    write_user(project, "".join(f"{name} = {_as_toml(value)}\n" for name, value in given.items()))
    check(load_settings(project_dir=project))
    write_user(project, "")
    for name, value in given.items():
        monkeypatch.setenv(f"REVERIE_{name.upper()}", _written(value))
    by_variable = load_settings(project_dir=project)
    check(by_variable)
    environment = build_environment(ALL, by_variable, {}, ServerUrls("postgresql://x", None, None))
    for variable in [key for key in os.environ if key.startswith("REVERIE_")]:
        monkeypatch.delenv(variable)
    for variable, text in environment.items():
        if variable.startswith("REVERIE_") and variable not in INTERNAL_VARIABLES:
            monkeypatch.setenv(variable, text)
    passed_on = given.keys() - {*WITHHELD_SETTINGS, "shutdown_timeout"}
    check(load_settings(project_dir=project), passed_on)


def test_a_map_that_is_not_json_is_refused_with_its_name(project: Path) -> None:
    with pytest.raises(Misconfigured, match="confidence_half_life_days: is not a JSON object"):
        load_settings({"confidence_half_life_days": "bug=7"}, project)
