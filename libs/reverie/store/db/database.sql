-- name: settings_lock
-- Lets one at a time read what a tenant and its projects have set, and set some of it anew.
select pg_advisory_xact_lock(hashtextextended('settings', $1::int));

-- name: tenant_name
-- The name of a tenant.
select name from tenant where id = $1;

-- name: schema_exists
-- Does Postgres answer, and has it been migrated?
select to_regclass('memory') is not null;

-- name: log_position
-- Where the log of the primary ends now: every write that was committed before lies below.
select pg_current_wal_insert_lsn()::text;
