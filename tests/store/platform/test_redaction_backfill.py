"""The redaction backfill covers every text column."""

from __future__ import annotations

from reverie.store.vault.redaction_backfill import ANSWER_TABLE, MEMORY_TABLE, TABLES
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import admin_rows

COLUMNS = """
select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'reverie'::regnamespace and c.relkind in ('r', 'p')
  and not c.relispartition and a.attnum > 0 and not a.attisdropped
  and a.atttypid::regtype::text in ('text', 'text[]', 'jsonb', 'bytea')
  and exists (select from pg_attribute t where t.attrelid = c.oid and t.attname = 'tenant')
"""
OF_MEMORIES = {"content", "summary", "key", "git", "metadata"}
SLUGS_AND_STATES = {
    *("scope", "project", "agent", "user_name", "kind", "tier", "status", "state", "role"),
    *("source", "grade", "change", "part", "table_name", "row_key", "reason", "parked", "worker"),
    *("error", "who", "route", "actor", "closed_by", "used_by", "claimed_by", "reads", "writes"),
    *("subject", "headers", "scopes", "own_scopes", "group_name"),
}
"""Columns of names that were made safe, of fixed words, and of who did something."""
HASHES = {"hash", "old_hash", "body_hash", "key_id", "short", "commit", "after", "sha"}
HOLD_NONE = {
    "anchor": {"name", "path"},
    "picture": {"media_type", "data"},
    "document": {"collection", "key", "data"},
    "file_rename": {"name", "path"},
    "stale_mark": {"via", "lines"},
    ANSWER_TABLE: {"key", "effect"},
    "git_event": {"merging"},
    "webhook": {"sealed"},
    "quota_usage": {"name"},
    "api_key": {"limits"},
    "console_session": {"encrypted_key"},
    "vault": {"key", "sealed", "value", "covers", "salt"},
    "vault_retired": {"key", "sealed", "covers", "salt"},
    "recall_trace": {"details"},
    "audit": {"key", "service", "action", "problem", "subjects", "trace_id", "client"},
    "project_setting": {"name", "value"},
    "summary_narrative": {"shown"},
    "dream_run": {"kinds", "outcomes", "seconds", "prompts", "degraded"},
    "dream_decision": {"outcome"},
    "review": {"verdict", "author"},
    "maintenance_pass": {"pass"},
    "session_correction": {"turn_hash"},
    "engine_agent": {"name", "spec"},
    "engine_group": {"agents", "answers"},
    "engine_message": {"author"},
    "engine_chain": {"sealed_key", "sealing_key_id"},
    "engine_image": {"data", "media_type"},
    "engine_effect": {"call", "tool"},
    "engine_turn": {"calls", "mode", "outcome"},
}
"""An anchor goes with its node, an answer as a whole; the vault is where state belongs; of a recall
ids and numbers are told; what a project sets and a run counts are numbers under fixed names, as are
those of passes; branches that were merged are slugs; of a turn that corrected something its hash is
kept; of a call its names, which were gone through before; an agent is described by an
administrator, the key of an author is sealed, and of the calls of a turn hashes are kept; of what
a model was shown ids are kept."""


def test_every_text_column_is_backfilled_or_declared_free_of_text(
    shared_database: DatabaseUrls,
) -> None:
    columns = {tuple(row) for row in admin_rows(shared_database.admin_url, COLUMNS)}
    searched = {
        tuple(row)
        for row in admin_rows(shared_database.admin_url, "select * from redaction_columns()")
    }
    assert {table for table, _ in searched} == set(TABLES) - {MEMORY_TABLE, ANSWER_TABLE}
    assert searched <= columns
    of_memories = {(MEMORY_TABLE, name) for name in OF_MEMORIES} | {("memory_tag", "tag")}
    silent = {(table, name) for table, names in HOLD_NONE.items() for name in names}
    left = columns - searched - of_memories - silent
    left = {place for place in left if place[1] not in SLUGS_AND_STATES | HASHES}
    assert left == {(ANSWER_TABLE, "body")}
