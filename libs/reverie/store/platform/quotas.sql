-- name: quota_add
-- Counts what was used of a limit of a day.
insert into quota_usage as m (tenant, holder, name, used, at) values ($1, $2, $3, $4, now())
on conflict (tenant, holder, name) do update set at = now(), used = excluded.used
  + case when (m.at at time zone 'utc')::date = (now() at time zone 'utc')::date
    then m.used else 0 end;

-- name: quota_usage
-- The usage of each limit, by the holder or by the tenant.
select holder, name, used, at from quota_usage where tenant = $1 and holder = any($2::uuid[])
order by holder, name;

-- name: tenant_limits
-- The limits that operators set for a tenant, and its own.
select t.limits, (select s.value from project_setting s
                  where s.tenant = $1 and s.project = '*' and s.name = 'limits') as own
from tenant t where t.id = $1;

-- name: active_memories
-- The number of a tenant's active memories, without files and entities.
select count(*)::int from memory
where tenant = $1 and status = 'active' and kind not in ('file', 'entity');

-- name: llm_usage_take
-- Counts one call of today if fewer than $2 calls and $3 tokens were spent, or than the tenant's own lower
-- limits; else no row.
with held as (
  select least($2::int, (s.value ->> 'calls_per_day')::int) as calls,
         least($3::bigint, (s.value ->> 'tokens_per_day')::bigint) as tokens
  from (values (1)) one left join project_setting s
    on s.tenant = $1 and s.project = '*' and s.name = 'llm'
)
insert into llm_usage_daily as d (tenant, day, calls)
select $1, (now() at time zone 'utc')::date, 1 from held where calls > 0 and tokens > 0
on conflict (tenant, day) do update set calls = d.calls + 1
where d.calls < (select calls from held) and d.input_tokens + d.output_tokens < (select tokens from held)
returning calls;

-- name: llm_usage_add
-- Adds further calls, failures and tokens to today.
insert into llm_usage_daily as d (tenant, day, calls, failed, input_tokens, output_tokens)
values ($1, (now() at time zone 'utc')::date, $2, $3, $4, $5)
on conflict (tenant, day) do update
set calls = d.calls + excluded.calls, failed = d.failed + excluded.failed,
    input_tokens = d.input_tokens + excluded.input_tokens, output_tokens = d.output_tokens + excluded.output_tokens;

-- name: llm_usage_today
-- The usage of today.
select calls, failed, input_tokens, output_tokens from llm_usage_daily
where tenant = $1 and day = (now() at time zone 'utc')::date;
