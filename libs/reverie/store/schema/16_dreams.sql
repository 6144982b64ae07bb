-- The queue of dreams: one job per scope, under a lease whose epoch every write of the dream checks;
-- and the summaries of scopes, with the memories that each version rests on.

create sequence dream_epoch;
grant usage on sequence dream_epoch to reverie_system;

-- A scope that is to dream. A request during a dream sets `again`. Sessions that are silent since
-- `settled_before` have no open topic. A job that failed too often is parked until it is requested
-- again.
create table dream_job (
  tenant int not null,
  scope text not null,
  reason text not null,
  requested timestamptz not null default now(),
  settled_before timestamptz,
  due timestamptz not null default now(),
  again boolean not null default false,
  lease_until timestamptz,
  epoch bigint not null default 0,
  worker text,
  attempts int not null default 0,
  parked text,
  parked_at timestamptz,
  primary key (tenant, scope)
);
create index dream_job_due on dream_job (due) where parked is null;
create index dream_job_next on dream_job (tenant, due, scope) where parked is null;
call protect_tenant_table('dream_job');
call open_to_system('dream_job', 'select, update, delete');

-- What a dream or a maintenance run did, and what it cost.
create table dream_run (
  tenant int not null,
  id uuid not null,
  scope text not null,
  epoch bigint not null,
  worker text not null,
  status text not null default 'running' check (status in ('running', 'done', 'failed', 'lost')),
  reason text,
  attempt int not null default 1,
  started timestamptz not null default now(),
  ended timestamptz,
  turns int not null default 0,
  waiting int not null default 0,
  created int not null default 0,
  reinforced int not null default 0,
  superseded int not null default 0,
  sessions uuid[] not null default '{}',
  llm_calls int not null default 0,
  llm_tokens bigint not null default 0,
  kinds jsonb not null default '{}',
  outcomes jsonb not null default '{}',
  seconds jsonb not null default '{}',
  prompts text[] not null default '{}',
  degraded text[] not null default '{}',
  error text,
  primary key (tenant, id)
);
create index dream_run_scope on dream_run (tenant, scope, id desc);
call protect_tenant_table('dream_run');
call open_to_system('dream_run', 'select');

-- Why a run wrote, changed or left each thing that it came upon.
create table dream_decision (
  tenant int not null,
  run uuid not null,
  no int not null,
  scope text not null,
  outcome text not null,
  kind text,
  memory uuid,
  session uuid,
  turns uuid[] not null default '{}',
  reason text not null default '',
  created timestamptz not null default now(),
  primary key (tenant, run, no)
) partition by hash (tenant);
create index dream_decision_created on dream_decision (created);
call partition_by_tenant('dream_decision');
call protect_tenant_table('dream_decision');
call open_to_system('dream_decision', 'select, delete');

-- When a scope dreams: the defaults of the process, overridden by the tenant's and the project's
-- settings.
create function dream_limits(p_tenant int, p_scope text, p_limits jsonb) returns jsonb
language sql stable
return p_limits
  || coalesce((select s.value from project_setting s
               where s.tenant = p_tenant and s.project = '*' and s.name = 'dream'), '{}')
  || coalesce((select s.value from project_setting s
               where s.tenant = p_tenant and s.name = 'dream' and p_scope like 'project/%'
                 and s.project = split_part(p_scope, '/', 2)), '{}');

-- Why a scope should dream, by what came since a worker last looked; null: not yet.
create function dream_threshold(p_tenant int, p_scope text, p_limits jsonb) returns text
language sql stable
begin atomic
  select case when n.segments >= (l.of ->> 'segments')::int then 'segments'
              when n.chars >= (l.of ->> 'chars')::bigint then 'characters'
              when n.turns >= (l.of ->> 'turns')::int then 'turns' end
  from (select sum(s.new_turns) as turns, sum(s.new_segments) as segments,
               sum(s.new_chars) as chars
        from session s
        where s.tenant = p_tenant and s.scope = p_scope and s.pending > 0) n,
       (select dream_limits(p_tenant, p_scope, p_limits) as of) l;
end;

-- Requests a dream: one job per scope, also of a worker whose lease ran out, for it may still end
-- its run. A parked job wakes. Sessions silent for p_settled have no open topic.
create function dream_request(
  p_tenant int, p_scope text, p_reason text, p_settled interval, p_event uuid, p_subject text,
  p_headers jsonb
) returns text
language plpgsql as $$
declare
  v_running boolean;
begin
  perform set_tenant(p_tenant);
  insert into dream_job as d (tenant, scope, reason, settled_before)
  values (p_tenant, p_scope, p_reason, clock_timestamp() - p_settled)
  on conflict (tenant, scope) do update
    set again = d.again or d.lease_until is not null,
        attempts = case when d.parked is null then d.attempts else 0 end,
        parked = null, parked_at = null, due = least(d.due, clock_timestamp()),
        requested = case when d.parked is null then d.requested else clock_timestamp() end,
        settled_before = greatest(d.settled_before, excluded.settled_before),
        reason = excluded.reason
  returning coalesce(lease_until >= clock_timestamp(), false) into v_running;
  perform enqueue_event(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return case when v_running then 'running' else 'queued' end;
end $$;

-- The fairest due job, under a new epoch: of the tenant that was served longest ago. Tenants are
-- looked at one by one, so that a long queue of one tenant costs the others nothing.
create function dream_claim(p_worker text, p_lease interval)
returns table (tenant int, tenant_name text, scope text, epoch bigint, attempts int)
language plpgsql volatile security definer as $$
declare
  v_now timestamptz := clock_timestamp();
  v_tenant int;
  j dream_job;
begin
  for v_tenant in
    select t.id from tenant t
    where exists (select from dream_job d where d.tenant = t.id and d.parked is null
                    and d.due <= v_now and (d.lease_until is null or d.lease_until < v_now))
    order by t.served_at, t.id
  loop
    select d.* into j from dream_job d
    where d.tenant = v_tenant and d.parked is null and d.due <= v_now
      and (d.lease_until is null or d.lease_until < v_now)
    order by d.due, d.scope
    limit 1 for update skip locked;
    exit when found;
  end loop;
  if j.tenant is null then return; end if;
  update tenant t set served_at = clock_timestamp() where t.id = j.tenant;
  return query
    update dream_job d
    set epoch = nextval('dream_epoch'), worker = p_worker, attempts = d.attempts + 1, again = false,
        lease_until = clock_timestamp() + p_lease
    where d.tenant = j.tenant and d.scope = j.scope
    returning d.tenant, (select t.name from tenant t where t.id = d.tenant),
              d.scope, d.epoch, d.attempts;
end $$;
call run_across_tenants('dream_claim(text, interval)');

-- Jobs whose message may be lost: due for a while, and without a worker.
create function dreams_overdue(p_age interval, p_limit int)
returns table (tenant int, tenant_name text, scope text)
language sql stable security definer
begin atomic
  select d.tenant, t.name, d.scope from dream_job d join tenant t on t.id = d.tenant
  where d.parked is null and d.due < clock_timestamp() - p_age
    and (d.lease_until is null or d.lease_until < clock_timestamp() - p_age)
  order by d.due limit p_limit;
end;
call run_across_tenants('dreams_overdue(interval, int)');

-- Scopes that should dream although nobody requested it: the request was lost, a session fell
-- silent, or enough time passed since the last dream. Of a parked scope only what came since then
-- counts.
create function due_dreams(p_limits jsonb, p_limit int)
returns table (tenant int, tenant_name text, scope text, reason text, silent_seconds float8)
language sql stable security definer
begin atomic
  with waiting as materialized (
    select s.tenant, s.scope, min(s.appended) as quiet, min(s.ended) as ended,
           min(s.new_since) as since, sum(s.new_turns) as turns,
           sum(s.new_segments) as segments, sum(s.new_chars) as chars
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
                  < clock_timestamp() - make_interval(secs => l.every) then 'time' end as reason
    from waiting w, lateral (
      select 60 * (x.l ->> 'idle_minutes')::float8 as idle,
             60 * (x.l ->> 'interval_minutes')::float8 as every, (x.l ->> 'segments')::int as segments,
             (x.l ->> 'chars')::bigint as chars, (x.l ->> 'turns')::int as turns
      from (select dream_limits(w.tenant, w.scope, p_limits) as l) x) l
  )
  select j.tenant, t.name, j.scope, j.reason, case j.reason when 'idle' then j.idle end
  from judged j join tenant t on t.id = j.tenant
  where j.reason is not null
  order by j.quiet limit p_limit;
end;
call run_across_tenants('due_dreams(jsonb, int)');

-- Lengths of the queue; the age is that of the oldest request without a worker.
create function dream_queue()
returns table (queued bigint, running bigint, parked bigint, oldest_seconds float8)
language sql stable security definer
begin atomic
  select count(*) filter (where parked is null and (lease_until is null or lease_until < clock_timestamp())),
         count(*) filter (where lease_until >= clock_timestamp()),
         count(*) filter (where parked is not null),
         coalesce(extract(epoch from clock_timestamp() - min(requested) filter (
           where parked is null and (lease_until is null or lease_until < clock_timestamp()))), 0)::float8
  from dream_job;
end;
call run_across_tenants('dream_queue()');

-- What waits in each scope that the grants cover, and what was requested; scopes after p_after.
create function dream_pending_scopes(
  p_tenant int, p_reads text[], p_scope text, p_after text, p_limit int
) returns table (scope text, turns bigint, segments bigint, chars bigint, sessions bigint,
               new_turns bigint, since timestamptz, state text, reason text, requested_at timestamptz,
               attempts int, error text, run uuid, digested int, waiting int)
language sql stable
begin atomic
  with places as (
    select s.scope, sum(s.pending) as turns, sum(s.pending_segments) as segments,
           sum(s.pending_chars)::bigint as chars, count(*) as sessions,
           sum(s.new_turns) as new_turns, min(s.new_since) as since
    from session s
    where s.tenant = p_tenant and s.pending > 0 and scope_matches(p_reads, s.scope)
      and (p_scope is null or s.scope = p_scope) and (p_after is null or s.scope > p_after)
    group by s.scope
  ), jobs as (
    select d.* from dream_job d
    where d.tenant = p_tenant and scope_matches(p_reads, d.scope)
      and (p_scope is null or d.scope = p_scope) and (p_after is null or d.scope > p_after)
  )
  select coalesce(p.scope, j.scope), coalesce(p.turns, 0), coalesce(p.segments, 0),
         coalesce(p.chars, 0), coalesce(p.sessions, 0), coalesce(p.new_turns, 0), p.since,
         case when j.scope is null then 'waiting' when j.parked is not null then 'parked'
              when j.lease_until >= clock_timestamp() then 'running' else 'queued' end,
         j.reason, j.requested, coalesce(j.attempts, 0), j.parked, r.id, r.turns, r.waiting
  from places p full join jobs j on j.scope = p.scope
  left join lateral (
    select x.id, x.turns, x.waiting from dream_run x
    where x.tenant = p_tenant and x.scope = j.scope and x.status = 'running'
    order by x.id desc limit 1) r on true
  order by 1 limit p_limit;
end;

-- Whether a worker still has the job, which it locks. A job that was given back has epoch 0.
create function has_dream_lease(p_tenant int, p_scope text, p_epoch bigint) returns boolean
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  perform from dream_job d
  where d.tenant = p_tenant and d.scope = p_scope and d.epoch = p_epoch for update;
  return found;
end $$;

-- Extends a lease; false where it was lost.
create function dream_renew(p_tenant int, p_scope text, p_epoch bigint, p_lease interval)
returns boolean
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  update dream_job d set lease_until = clock_timestamp() + p_lease
  where d.tenant = p_tenant and d.scope = p_scope and d.epoch = p_epoch;
  return found;
end $$;

-- The current summary of a scope.
create table summary (
  tenant int not null,
  scope text not null,
  version int not null default 1,
  content text not null,
  tokens int not null,
  updated timestamptz not null default now(),
  primary key (tenant, scope)
);
call protect_tenant_table('summary');

-- The memories that each version of a summary rests on, in the order of its lines, with their
-- versions. It has no text of its own, so nothing forgotten or redacted remains in it. `seen`:
-- changes up to then are included, null: look at everything again. `complete`: nothing was cut off.
create table summary_version (
  tenant int not null,
  scope text not null,
  version int not null,
  tokens int not null,
  created timestamptz not null default now(),
  run uuid,
  seen timestamptz,
  complete boolean not null,
  memories uuid[] not null,
  versions int[] not null,
  primary key (tenant, scope, version)
) partition by hash (tenant);
call partition_by_tenant('summary_version');
call protect_tenant_table('summary_version');

-- Puts a summary, as a new version where its text differs, with its sources ({run, seen, complete,
-- memories, versions}). The last 20 versions remain. False where the lease was lost.
create function put_summary(
  p_tenant int, p_scope text, p_epoch bigint, p_content text, p_tokens int, p_sources jsonb
) returns boolean
language plpgsql as $$
declare
  v_version int;
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return false; end if;
  insert into summary as s (tenant, scope, content, tokens)
  values (p_tenant, p_scope, p_content, p_tokens)
  on conflict (tenant, scope) do update
    set content = excluded.content, tokens = excluded.tokens, version = s.version + 1,
        updated = now()
    where s.content <> excluded.content;
  select s.version into v_version from summary s
  where s.tenant = p_tenant and s.scope = p_scope;
  insert into summary_version as v (tenant, scope, version, tokens, run, seen, complete, memories,
                                    versions)
  select p_tenant, p_scope, v_version, p_tokens, t.run, t.seen, t.complete, t.memories, t.versions
  from jsonb_to_record(p_sources) t (run uuid, seen timestamptz, complete boolean, memories uuid[],
                                  versions int[])
  on conflict (tenant, scope, version) do update
    set seen = excluded.seen, complete = excluded.complete, memories = excluded.memories,
        versions = excluded.versions;
  delete from summary_version v
  where v.tenant = p_tenant and v.scope = p_scope and v.version <= v_version - 20;
  return true;
end $$;

-- What a language model wrote of each scope: sentences ([{text, memories: {id: version}}]), what it was
-- shown since ({id: version}), and the time up to which it knows the changes, null for none yet.
create table summary_narrative (
  tenant int not null,
  scope text not null,
  content jsonb not null,
  shown jsonb not null,
  seen timestamptz,
  primary key (tenant, scope)
);
call protect_tenant_table('summary_narrative');

-- Puts the narrative of a scope; false where the lease was lost.
create function put_narrative(
  p_tenant int, p_scope text, p_epoch bigint, p_content jsonb, p_shown jsonb, p_seen timestamptz
) returns boolean
language plpgsql as $$
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return false; end if;
  insert into summary_narrative (tenant, scope, content, shown, seen)
  values (p_tenant, p_scope, p_content, p_shown, p_seen)
  on conflict (tenant, scope) do update
    set content = excluded.content, shown = excluded.shown, seen = excluded.seen;
  return true;
end $$;

-- The lines of summaries as their memories said them, of the newest or of some versions; `stands`:
-- the memory is active and still says it.
create function summary_lines(p_tenant int, p_scopes text[], p_versions int[])
returns table (scope text, version int, no bigint, memory uuid, cited_version int, kind text,
               content text, status text, is_current boolean)
language sql stable
begin atomic
  select v.scope, v.version, x.no, m.id, x.version, coalesce(b.state ->> 'kind', m.kind),
         coalesce(b.content, m.content), m.status,
         m.status = 'active' and m.scope = v.scope and (b.content is null or b.content = m.content)
  from summary s
  join summary_version v on v.tenant = p_tenant and v.scope = s.scope
    and (p_versions is null and v.version = s.version or v.version = any(p_versions))
  cross join lateral unnest(v.memories, v.versions) with ordinality x (memory, version, no)
  join memory m on m.tenant = p_tenant and m.id = x.memory
  left join memory_version b on b.tenant = p_tenant and b.memory = m.id and b.version = x.version
  where s.tenant = p_tenant and scope_matches(p_scopes, s.scope);
end;
