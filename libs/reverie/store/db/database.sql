-- name: settings_lock
-- Locks the settings of a tenant and its projects against concurrent updates.
select pg_advisory_xact_lock(hashtextextended('settings', $1::int));

-- name: setting_get
-- The settings of project $2, or with * of the tenant, under the name $3.
select value from project_setting where tenant = $1 and project = $2 and name = $3;

-- name: setting_put
-- Sets new values.
insert into project_setting (tenant, project, name, value) values ($1, $2, $3, $4)
on conflict (tenant, project, name) do update set value = excluded.value, updated = now();

-- name: setting_reset
-- Deletes the settings.
delete from project_setting where tenant = $1 and project = $2 and name = $3;

-- name: tenant_name
-- The name of a tenant.
select name from tenant where id = $1;

-- name: schema_exists
-- Whether Postgres responds and the schema is migrated.
select to_regclass('memory') is not null;

-- name: log_position
-- The current end of the primary's log: every write committed before is below it.
select pg_current_wal_insert_lsn()::text;
