-- name: quota_take
-- Takes $5 of what a limit $4 leaves, and up to $6 beyond it.
select granted, remains, wait from quota_take($1, $2, $3, $4, $5, $6);

-- name: quota_add
-- Counts what was used of a limit of a day.
insert into quota_usage as m (tenant, holder, name, used, at) values ($1, $2, $3, $4, now())
on conflict (tenant, holder, name) do update set at = now(), used = excluded.used
  + case when (m.at at time zone 'utc')::date = (now() at time zone 'utc')::date
    then m.used else 0 end;

-- name: quota_usage
-- What was used of each limit, whether by the holder or by the tenant.
select holder, name, used, at from quota_usage where tenant = $1 and holder = any($2::uuid[])
order by holder, name;

-- name: tenant_limits
-- What operators set for a tenant, and what it has set itself.
select t.limits, (select s.value from project_setting s
                  where s.tenant = $1 and s.project = '*' and s.name = 'limits') as own
from tenant t where t.id = $1;

-- name: tenant_limits_put
-- What a tenant sets for itself.
insert into project_setting (tenant, project, name, value) values ($1, '*', 'limits', $2)
on conflict (tenant, project, name) do update set value = excluded.value, updated = now();

-- name: tenant_limits_reset
-- Takes it away.
delete from project_setting where tenant = $1 and project = '*' and name = 'limits';
