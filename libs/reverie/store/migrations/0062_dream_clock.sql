-- What the clock of dreams reads across tenants, and what their doors show of one.

create policy across on dream_run for select to reverie_system using (true);
create policy across on project_setting for select to reverie_system using (true);
create policy across on dream_decision to reverie_system using (true);
grant select on dream_run, project_setting to reverie_system;
grant select, delete on dream_decision to reverie_system;
create index dream_decision_made on dream_decision (made);

drop function scopes_idle(interval, int);

create or replace function dream_look(p_tenant int, p_scope text, p_epoch bigint, p_sessions uuid[])
returns boolean
language plpgsql as $$
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return false; end if;
  update session s
  set fresh_turns = 0, fresh_segments = 0, fresh_chars = 0, fresh_since = null
  where s.tenant = p_tenant and s.id = any(p_sessions) and s.scope = p_scope and s.fresh_turns > 0;
  return true;
end $$;

-- Scopes that should dream and have no open request: their requests were lost, a session fell silent,
-- or time passed since the last dream. Of a parked scope only what came since then counts.
create function dreams_wanted(p_limits jsonb, p_limit int)
returns table (tenant int, tenant_name text, scope text, reason text, silent_seconds float8)
language sql stable security definer
begin atomic
  with waiting as materialized (
    select s.tenant, s.scope, min(s.appended) as quiet, min(s.ended) as ended,
           min(s.fresh_since) as since, sum(s.fresh_turns) as turns,
           sum(s.fresh_segments) as segments, sum(s.fresh_chars) as chars
    from session s left join dream_job d on d.tenant = s.tenant and d.scope = s.scope
    where s.pending > 0 and (d.tenant is null or d.parked is not null and s.appended > d.parked_at)
    group by s.tenant, s.scope
  ), judged as (
    select w.*, l.idle,
           case when w.quiet < clock_timestamp() - make_interval(secs => l.idle) then 'idle'
                when w.ended < clock_timestamp() - interval '10 s' then 'session end'
                when w.segments >= l.segments then 'segments'
                when w.chars >= l.chars then 'characters'
                when w.turns >= l.turns then 'turns'
                when w.turns > 0 and coalesce(
                  (select r.ended from dream_run r
                   where r.tenant = w.tenant and r.scope = w.scope and r.ended is not null
                   order by r.id desc limit 1), w.since)
                  < clock_timestamp() - make_interval(secs => l.every) then 'time' end as why
    from waiting w, lateral (
      select 60 * (x.l ->> 'idle_minutes')::float8 as idle,
             60 * (x.l ->> 'every_minutes')::float8 as every, (x.l ->> 'segments')::int as segments,
             (x.l ->> 'chars')::bigint as chars, (x.l ->> 'turns')::int as turns
      from (select dream_limits(w.tenant, w.scope, p_limits) as l) x) l
  )
  select j.tenant, t.name, j.scope, j.why, case j.why when 'idle' then j.idle end
  from judged j join tenant t on t.id = j.tenant
  where j.why is not null
  order by j.quiet limit p_limit;
end;

-- Lengths of the queue; the age is that of the oldest request that no worker has.
create or replace function dream_queue()
returns table (queued bigint, running bigint, parked bigint, oldest_seconds float8)
language sql stable security definer
begin atomic
  select count(*) filter (where parked is null and (lease_until is null or lease_until < clock_timestamp())),
         count(*) filter (where lease_until >= clock_timestamp()),
         count(*) filter (where parked is not null),
         coalesce(extract(epoch from clock_timestamp() - min(asked) filter (
           where parked is null and (lease_until is null or lease_until < clock_timestamp()))), 0)::float8
  from dream_job;
end;

create function dream_decisions_sweep(p_age interval) returns bigint
language plpgsql volatile security definer as $$
declare n bigint;
begin
  delete from dream_decision where made < clock_timestamp() - p_age;
  get diagnostics n = row_count;
  return n;
end $$;

-- What waits in each scope that the grants cover, and what is asked for; by scope above p_after.
create function dreams_waiting(p_tenant int, p_reads text[], p_scope text, p_after text, p_limit int)
returns table (scope text, turns bigint, segments bigint, chars bigint, sessions bigint,
               fresh_turns bigint, since timestamptz, state text, reason text, asked timestamptz,
               attempts int, error text, run uuid, done int, waiting int)
language sql stable
begin atomic
  with places as (
    select s.scope, sum(s.pending) as turns, sum(s.pending_segments) as segments,
           sum(s.pending_chars)::bigint as chars, count(*) as sessions,
           sum(s.fresh_turns) as fresh_turns, min(s.fresh_since) as since
    from session s
    where s.tenant = p_tenant and s.pending > 0 and covers(p_reads, s.scope)
      and (p_scope is null or s.scope = p_scope) and (p_after is null or s.scope > p_after)
    group by s.scope
  ), jobs as (
    select d.* from dream_job d
    where d.tenant = p_tenant and covers(p_reads, d.scope)
      and (p_scope is null or d.scope = p_scope) and (p_after is null or d.scope > p_after)
  )
  select coalesce(p.scope, j.scope), coalesce(p.turns, 0), coalesce(p.segments, 0),
         coalesce(p.chars, 0), coalesce(p.sessions, 0), coalesce(p.fresh_turns, 0), p.since,
         case when j.scope is null then 'waiting' when j.parked is not null then 'parked'
              when j.lease_until >= clock_timestamp() then 'running' else 'queued' end,
         j.reason, j.asked, coalesce(j.attempts, 0), j.parked, r.id, r.turns, r.waiting
  from places p full join jobs j on j.scope = p.scope
  left join lateral (
    select x.id, x.turns, x.waiting from dream_run x
    where x.tenant = p_tenant and x.scope = j.scope and x.status = 'running'
    order by x.id desc limit 1) r on true
  order by 1 limit p_limit;
end;

do $$
declare
  f regprocedure;
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  foreach f in array array['dreams_wanted(jsonb, int)', 'dream_queue()',
                           'dream_decisions_sweep(interval)']::regprocedure[] loop
    execute format('alter function %s set search_path = %I, public, pg_temp', f, current_schema());
    execute format('alter function %s owner to reverie_system', f);
    execute format('revoke all on function %s from public', f);
    execute format('grant execute on function %s to reverie_app', f);
  end loop;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
