-- name: llm_take
-- Counts one call of today where fewer than $2 calls and $3 tokens were spent; no row where not.
insert into llm_day as d (tenant, day, calls)
select $1, (now() at time zone 'utc')::date, 1 where $2::int > 0 and $3::bigint > 0
on conflict (tenant, day) do update set calls = d.calls + 1
where d.calls < $2 and d.sent + d.received < $3
returning calls;

-- name: llm_book
-- Adds further calls, failures and tokens to today.
insert into llm_day as d (tenant, day, calls, failed, sent, received)
values ($1, (now() at time zone 'utc')::date, $2, $3, $4, $5)
on conflict (tenant, day) do update
set calls = d.calls + excluded.calls, failed = d.failed + excluded.failed,
    sent = d.sent + excluded.sent, received = d.received + excluded.received;

-- name: llm_today
-- What was spent today.
select calls, failed, sent, received from llm_day
where tenant = $1 and day = (now() at time zone 'utc')::date;
