-- name: llm_usage_take
-- Counts one call of today where fewer than $2 calls and $3 tokens were spent, or than the tenant has
-- set where that is less; no row where not.
with held as (
  select least($2::int, (s.value ->> 'calls_a_day')::int) as calls,
         least($3::bigint, (s.value ->> 'tokens_a_day')::bigint) as tokens
  from (values (1)) one left join project_setting s
    on s.tenant = $1 and s.project = '*' and s.name = 'llm'
)
insert into llm_usage_daily as d (tenant, day, calls)
select $1, (now() at time zone 'utc')::date, 1 from held where calls > 0 and tokens > 0
on conflict (tenant, day) do update set calls = d.calls + 1
where d.calls < (select calls from held) and d.sent + d.received < (select tokens from held)
returning calls;

-- name: llm_limits_get
-- What the tenant has set for itself.
select s.value from project_setting s where s.tenant = $1 and s.project = '*' and s.name = 'llm';

-- name: llm_limits_put
-- Sets it anew.
insert into project_setting (tenant, project, name, value) values ($1, '*', 'llm', $2)
on conflict (tenant, project, name) do update set value = excluded.value, updated = now();

-- name: llm_limits_reset
-- Takes it away.
delete from project_setting where tenant = $1 and project = '*' and name = 'llm';

-- name: llm_usage_add
-- Adds further calls, failures and tokens to today.
insert into llm_usage_daily as d (tenant, day, calls, failed, sent, received)
values ($1, (now() at time zone 'utc')::date, $2, $3, $4, $5)
on conflict (tenant, day) do update
set calls = d.calls + excluded.calls, failed = d.failed + excluded.failed,
    sent = d.sent + excluded.sent, received = d.received + excluded.received;

-- name: llm_usage_today
-- What was spent today.
select calls, failed, sent, received from llm_usage_daily
where tenant = $1 and day = (now() at time zone 'utc')::date;
