-- name: settings_lock
-- Lets one at a time read what a tenant and its projects have set, and set some of it anew.
select pg_advisory_xact_lock(hashtextextended('settings', $1::int));

-- name: setting_get
-- What project $2, or with * the tenant, has set under the name $3.
select value from project_setting where tenant = $1 and project = $2 and name = $3;

-- name: setting_put
-- Sets it anew.
insert into project_setting (tenant, project, name, value) values ($1, $2, $3, $4)
on conflict (tenant, project, name) do update set value = excluded.value, updated = now();

-- name: setting_reset
-- Takes it away.
delete from project_setting where tenant = $1 and project = $2 and name = $3;

-- name: tenant_name
-- The name of a tenant.
select name from tenant where id = $1;

-- name: schema_exists
-- Does Postgres answer, and has it been migrated?
select to_regclass('memory') is not null;

-- name: log_position
-- Where the log of the primary ends now: every write that was committed before lies below.
select pg_current_wal_insert_lsn()::text;
