-- What a dream was asked for and decided, what waits in a scope, and how its jobs come to an end.

-- `fresh_*` is what came since a worker last looked at the session: an open topic that it left is not
-- counted again. A segment is begun by each message of the user.
alter table session
  add column pending_segments int not null default 0,
  add column fresh_turns int not null default 0,
  add column fresh_segments int not null default 0,
  add column fresh_chars bigint not null default 0,
  add column fresh_since timestamptz;

-- `settled_before`: sessions that were silent since then have no open topic.
alter table dream_job
  add column asked timestamptz not null default now(),
  add column settled_before timestamptz,
  add column parked_at timestamptz;

alter table dream_run
  add column reason text,
  add column attempt int not null default 1,
  add column waiting int not null default 0,
  add column llm_calls int not null default 0,
  add column llm_tokens bigint not null default 0,
  add column kinds jsonb not null default '{}',
  add column outcomes jsonb not null default '{}',
  add column seconds jsonb not null default '{}',
  add column prompts text[] not null default '{}',
  add column degraded text[] not null default '{}';
create index dream_run_scope on dream_run (tenant, scope, id desc);

-- Why each thing that a run came upon was written or left.
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
  why text not null default '',
  made timestamptz not null default now(),
  primary key (tenant, run, no)
) partition by hash (tenant);
call split_by_tenant('dream_decision');
call protect('dream_decision');

create or replace function scrub_columns() returns table (name text, col text)
language sql immutable
begin atomic
  select v.name, v.col from (values
    ('turn', 'content'), ('turn', 'tool'), ('turn', 'external_id'),
    ('memory_version', 'content'), ('memory_version', 'why'), ('memory_version', 'state'),
    ('session', 'external_id'), ('session', 'branch'), ('session', 'summary'),
    ('edge', 'meta'), ('summary', 'content'), ('scope_name', 'name'), ('git_event', 'body'),
    ('git_event', 'branch'), ('stale_mark', 'path'), ('stale_mark', 'subject'),
    ('api_key', 'label'), ('outbox', 'payload'), ('recall_trace', 'query'),
    ('recall_trace', 'asked'), ('dream_decision', 'why')) v (name, col);
end;

-- When a scope dreams: what the process says, over it what the tenant has set, over that the project.
create function dream_limits(p_tenant int, p_scope text, p_limits jsonb) returns jsonb
language sql stable
return p_limits
  || coalesce((select s.value from project_setting s
               where s.tenant = p_tenant and s.project = '*' and s.name = 'dream'), '{}')
  || coalesce((select s.value from project_setting s
               where s.tenant = p_tenant and s.name = 'dream' and p_scope like 'project/%'
                 and s.project = split_part(p_scope, '/', 2)), '{}');

-- Why a scope should dream by what came since a worker last looked; null: not yet.
create function dream_threshold(p_tenant int, p_scope text, p_limits jsonb) returns text
language sql stable
begin atomic
  select case when n.segments >= (l.of ->> 'segments')::int then 'segments'
              when n.chars >= (l.of ->> 'chars')::bigint then 'characters'
              when n.turns >= (l.of ->> 'turns')::int then 'turns' end
  from (select sum(s.fresh_turns) as turns, sum(s.fresh_segments) as segments,
               sum(s.fresh_chars) as chars
        from session s
        where s.tenant = p_tenant and s.scope = p_scope and s.pending > 0) n,
       (select dream_limits(p_tenant, p_scope, p_limits) as of) l;
end;

-- Opens the record of a run over what waits.
create or replace function dream_start(p_tenant int, p_scope text, p_epoch bigint, p_run uuid,
                                       p_worker text)
returns boolean
language plpgsql as $$
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return false; end if;
  update dream_run r set status = 'lost', ended = now()
  where r.tenant = p_tenant and r.scope = p_scope and r.status = 'running';
  insert into dream_run (tenant, id, scope, epoch, worker, reason, attempt, waiting)
  select p_tenant, p_run, p_scope, p_epoch, p_worker, d.reason, d.attempts,
         (select coalesce(sum(s.pending), 0) from session s
          where s.tenant = p_tenant and s.scope = p_scope and s.pending > 0)
  from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
  return true;
end $$;

-- Notes that a worker looks at sessions now: what they hold is fresh no more.
create function dream_look(p_tenant int, p_scope text, p_epoch bigint, p_sessions uuid[])
returns boolean
language plpgsql as $$
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return false; end if;
  update session s
  set fresh_turns = 0, fresh_segments = 0, fresh_chars = 0, fresh_since = null
  where s.tenant = p_tenant and s.id = any(p_sessions) and s.scope = p_scope;
  return true;
end $$;

-- Whether a memory that stands says the same and names all these turns: it was dreamt before.
create function dreamt_before(p_tenant int, p_item jsonb) returns uuid
language sql stable
begin atomic
  select m.id from memory m
  where m.tenant = p_tenant and m.scope = p_item ->> 'scope' and m.status = 'active'
    and m.hash = decode(p_item ->> 'hash', 'hex')
    and coalesce(m.key, '') = coalesce(p_item ->> 'key', '')
    and jsonb_array_length(coalesce(p_item -> 'turns', '[]')) > 0
    and not exists (
      select from jsonb_array_elements_text(p_item -> 'turns') t
      where not exists (select from memory_turn u where u.tenant = p_tenant and u.memory = m.id
                          and u.turn = t::uuid))
  limit 1;
end;

create function add_counts(p_one jsonb, p_two jsonb) returns jsonb
language sql immutable
return coalesce((
  select jsonb_object_agg(n.name, n.sum) from (
    select e.key as name, sum(e.value::numeric) as sum from (
      select * from jsonb_each_text(p_one) union all select * from jsonb_each_text(p_two)) e
    group by e.key) n), '{}');

-- Adds to a run what its worker noted: decisions, help that it had, how long each stage took.
create function dream_note(p_tenant int, p_scope text, p_run uuid, p_session uuid, p_made jsonb,
                           p_record jsonb)
returns void
language plpgsql as $$
declare
  v_first int;
begin
  select coalesce(max(d.no), 0) into v_first from dream_decision d
  where d.tenant = p_tenant and d.run = p_run;
  insert into dream_decision (tenant, run, no, scope, outcome, kind, memory, session, turns, why)
  select p_tenant, p_run, v_first + e.nth, p_scope, e.one ->> 'outcome', e.one ->> 'kind',
         (e.one ->> 'memory')::uuid, p_session,
         array(select t::uuid from jsonb_array_elements_text(coalesce(e.one -> 'turns', '[]')) t),
         coalesce(e.one ->> 'why', '')
  from jsonb_array_elements(p_made || coalesce(p_record -> 'decisions', '[]'))
       with ordinality e (one, nth);
  update dream_run r
  set llm_calls = r.llm_calls + coalesce((p_record ->> 'llm_calls')::int, 0),
      llm_tokens = r.llm_tokens + coalesce((p_record ->> 'llm_tokens')::bigint, 0),
      seconds = add_counts(r.seconds, coalesce(p_record -> 'seconds', '{}')),
      outcomes = add_counts(r.outcomes, n.outcomes), kinds = add_counts(r.kinds, n.kinds),
      prompts = array(select distinct x from unnest(r.prompts || array(
        select jsonb_array_elements_text(coalesce(p_record -> 'prompts', '[]')))) x order by x),
      degraded = array(select distinct x from unnest(r.degraded || array(
        select jsonb_array_elements_text(coalesce(p_record -> 'degraded', '[]')))) x order by x)
  from (select coalesce(jsonb_object_agg(o.outcome, o.n), '{}') as outcomes
        from (select d.outcome, count(*) as n from dream_decision d
              where d.tenant = p_tenant and d.run = p_run and d.no > v_first
              group by d.outcome) o) n1,
       lateral (select n1.outcomes, coalesce(jsonb_object_agg(k.kind, k.n), '{}') as kinds
        from (select d.kind, count(*) as n from dream_decision d
              where d.tenant = p_tenant and d.run = p_run and d.no > v_first
                and d.kind is not null and d.outcome in ('created', 'superseded')
              group by d.kind) k) n
  where r.tenant = p_tenant and r.id = p_run;
end $$;

-- Writes the memories of one session's turns and marks the turns, if the epoch still holds; what the
-- same turns said before is left as it stands. Answers the outcomes of the items, or null for a
-- worker that lost its lease.
drop function dream_commit(int, text, text, bigint, uuid, uuid, jsonb, uuid[], jsonb);
create function dream_commit(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                             p_run uuid, p_session uuid, p_items jsonb, p_turns uuid[],
                             p_headers jsonb, p_record jsonb)
returns jsonb
language plpgsql as $$
declare
  v_item jsonb;
  v_one jsonb;
  v_known uuid;
  v_results jsonb := '[]';
  v_made jsonb := '[]';
  v_turns int;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return null; end if;
  perform lock_identities(p_tenant, p_items);
  for v_item in select * from jsonb_array_elements(p_items) loop
    v_known := dreamt_before(p_tenant, v_item);
    v_one := case when v_known is null
      then remember(p_tenant, p_tenant_name, v_item, p_headers)
      else jsonb_build_object('outcome', 'known', 'id', v_known) end;
    v_results := v_results || v_one;
    v_made := v_made || jsonb_build_object(
      'outcome', coalesce(v_one ->> 'outcome', 'refused'), 'kind', v_item ->> 'kind',
      'memory', v_one ->> 'id', 'turns', coalesce(v_item -> 'turns', '[]'),
      'why', coalesce(v_one ->> 'problem', v_item ->> 'why', v_item ->> 'reason', ''));
  end loop;
  with digested as (
    update turn t set run = p_run
    where t.tenant = p_tenant and t.session = p_session and t.id = any(p_turns) and t.run is null
    returning length(t.content) as chars, t.role
  )
  update session s
  set pending = s.pending - d.turns, pending_chars = s.pending_chars - d.chars,
      pending_segments = greatest(s.pending_segments - d.segments, 0)
  from (select count(*) as turns, coalesce(sum(chars), 0) as chars,
               count(*) filter (where role = 'user') as segments from digested) d
  where s.tenant = p_tenant and s.id = p_session
  returning d.turns into v_turns;
  perform dream_note(p_tenant, p_scope, p_run, p_session, v_made, p_record);
  update dream_run r
  set turns = r.turns + coalesce(v_turns, 0), waiting = greatest(r.waiting, r.turns + coalesce(v_turns, 0)),
      created = r.created + n.created, reinforced = r.reinforced + n.reinforced,
      superseded = r.superseded + n.superseded,
      sessions = case when p_session = any(r.sessions) then r.sessions
                      else r.sessions || p_session end
  from (select count(*) filter (where o ->> 'outcome' in ('created', 'superseded')) as created,
               count(*) filter (where o ->> 'outcome' = 'duplicate') as reinforced,
               count(*) filter (where o ->> 'outcome' = 'superseded') as superseded
        from jsonb_array_elements(v_results) o) n
  where r.tenant = p_tenant and r.id = p_run;
  return v_results;
end $$;

-- Adds what a worker noted beside a commit; false where the lease was lost.
create function dream_record(p_tenant int, p_scope text, p_epoch bigint, p_run uuid, p_record jsonb)
returns boolean
language plpgsql as $$
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return false; end if;
  perform dream_note(p_tenant, p_scope, p_run, null, '[]', p_record);
  return true;
end $$;
