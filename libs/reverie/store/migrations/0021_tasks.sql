-- Tasks: where each stands and who has it; claims that were learned; deriving anew.

create table task (
  tenant int not null,
  memory uuid not null,
  state text not null default 'todo' check (state in ('todo', 'doing', 'blocked', 'done')),
  claimed_by text,
  claimed_until timestamptz,
  updated timestamptz not null default now(),
  primary key (tenant, memory),
  check ((claimed_by is null) = (claimed_until is null))
) partition by hash (tenant);
call split_by_tenant('task');
call protect('task');

create index memory_learned on memory (tenant, key text_pattern_ops, id)
  where key like 'learn:%' and status = 'active';

-- The tasks that must be done before this one and are not: what it depends on, or what took the
-- place of that. A forgotten task holds nothing up.
create function task_undone(p_tenant int, p_memory uuid) returns table (id uuid, scope text)
language sql stable
begin atomic
  with recursive needed (id, scope, status, next) as (
    select m.id, m.scope, m.status, m.superseded_by
    from edge e join memory m on m.tenant = p_tenant and m.id = e.dst and m.kind = 'task'
    where e.tenant = p_tenant and e.src = p_memory and e.kind = 'depends_on' and e.known_to is null
    union
    select m.id, m.scope, m.status, m.superseded_by
    from needed n join memory m on m.tenant = p_tenant and m.id = n.next and m.kind = 'task'
    where n.status = 'superseded'
  )
  select n.id, n.scope from needed n
  left join task t on t.tenant = p_tenant and t.memory = n.id
  where n.status in ('active', 'archived') and n.id <> p_memory
    and coalesce(t.state, 'todo') <> 'done'
  order by n.id;
end;

-- The tasks as they are shown: one that waits for others is blocked, one whose claim ran out is to
-- do again.
create function task_shown(p_tenant int)
returns table (memory uuid, state text, claimed_by text, claimed_until timestamptz,
               waits_for uuid[], waits_in text[], claimable boolean)
language sql stable
begin atomic
  select s.memory, s.state, s.holder, s.held_until, s.waits_for, s.waits_in,
         s.state in ('todo', 'doing') and s.holder is null and s.active
  from (
    select m.id as memory, m.status = 'active' as active, u.waits_for, u.waits_in,
           case when coalesce(t.state, 'todo') = 'done' then 'done'
                when t.state = 'blocked' or u.waits_for <> '{}' then 'blocked'
                when t.claimed_until <= clock_timestamp() then 'todo'
                else coalesce(t.state, 'todo') end as state,
           case when t.claimed_until > clock_timestamp() then t.claimed_by end as holder,
           case when t.claimed_until > clock_timestamp() then t.claimed_until end as held_until
    from memory m
    left join task t on t.tenant = p_tenant and t.memory = m.id
    cross join lateral (
      select coalesce(array_agg(d.id order by d.id), '{}') as waits_for,
             coalesce(array_agg(d.scope order by d.id), '{}') as waits_in
      from task_undone(p_tenant, m.id) d
    ) u
    where m.tenant = p_tenant and m.kind = 'task'
  ) s;
end;

-- Claims (p_seconds given), releases (p_state null) or moves a task. Answers {version, event?}, with
-- no event where nothing but the time of a claim changed; or {problem: not_found|forbidden|no_task|
-- closed|held|waits|blocked|done, ...}, with which nothing was written.
create function task_move(p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[],
                          p_writes text[], p_agent text, p_state text, p_seconds float8,
                          p_who text, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_memory memory;
  v_task task;
  v_holder text;
  v_state text;
  v_waits uuid[];
  v_until timestamptz := clock_timestamp() + make_interval(secs => p_seconds);
  v_event uuid := gen_random_uuid();
begin
  perform enter(p_tenant);
  select m.* into v_memory from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status <> 'deleted'
    and covers(p_reads, m.scope)
  for update;
  if not found then return jsonb_build_object('problem', 'not_found'); end if;
  if not covers(p_writes, v_memory.scope) then
    return jsonb_build_object('problem', 'forbidden', 'scope', v_memory.scope);
  end if;
  if v_memory.kind <> 'task' then
    return jsonb_build_object('problem', 'no_task', 'kind', v_memory.kind);
  end if;
  if v_memory.status <> 'active' then
    return jsonb_build_object('problem', 'closed', 'status', v_memory.status);
  end if;
  insert into task (tenant, memory) values (p_tenant, p_memory) on conflict do nothing;
  select t.* into v_task from task t where t.tenant = p_tenant and t.memory = p_memory;
  v_holder := case when v_task.claimed_until > clock_timestamp() then v_task.claimed_by end;
  if v_holder <> p_agent then
    return jsonb_build_object('problem', 'held', 'by', v_holder, 'until', v_task.claimed_until);
  end if;
  v_state := case when p_seconds is not null then 'doing'
                  when p_state is not null then p_state
                  when v_task.state = 'doing' then 'todo'
                  else v_task.state end;
  if p_seconds is not null and v_task.state in ('blocked', 'done') then
    return jsonb_build_object('problem', v_task.state);
  end if;
  if v_state in ('doing', 'done') and (p_seconds is not null or v_state <> v_task.state) then
    select array_agg(u.id) filter (where covers(p_reads, u.scope)) into v_waits
    from task_undone(p_tenant, p_memory) u having count(*) > 0;
    if found then
      return jsonb_build_object('problem', 'waits', 'for', coalesce(to_jsonb(v_waits), '[]'));
    end if;
  end if;
  if p_seconds is null and v_state = v_task.state and (v_state = 'doing' or v_task.claimed_by is null)
  then
    return jsonb_build_object('version', v_memory.version);
  end if;
  update task t
  set state = v_state, updated = now(),
      claimed_by = case when p_seconds is not null then p_agent
                        when v_state = 'doing' then t.claimed_by end,
      claimed_until = case when p_seconds is not null and v_holder is not null
                             then greatest(t.claimed_until, v_until)
                           when p_seconds is not null then v_until
                           when v_state = 'doing' then t.claimed_until end
  where t.tenant = p_tenant and t.memory = p_memory;
  if p_seconds is not null and v_holder is not null then
    return jsonb_build_object('version', v_memory.version);
  end if;
  perform keep_version(p_tenant, v_memory, p_who, format(
    'task: %s to %s', v_task.state,
    case when p_seconds is null then v_state else v_state || ', claimed by ' || p_agent end));
  update memory m
  set version = m.version + 1, known_from = now(), updated = now(),
      enriched_version = case when m.enriched_version = m.version then m.version + 1
                              else m.enriched_version end
  where m.tenant = p_tenant and m.id = p_memory;
  perform announce(p_tenant, v_event, 'memory.' || p_tenant_name || '.task',
                   jsonb_build_object('id', p_memory, 'version', v_memory.version + 1), p_headers);
  return jsonb_build_object('version', v_memory.version + 1, 'event', v_event);
end $$;

-- A claim that was learned, unless one of a later verification stands: {problem: later, id, verified}.
-- The same facts again, however the claim is spaced, are the one that stands said again.
create function learn(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb) returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_tag jsonb := p_item -> 'metadata' -> 'learned';
  v_item jsonb := p_item;
begin
  perform enter(p_tenant);
  perform lock_identities(p_tenant, jsonb_build_array(p_item));
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.scope = p_item ->> 'scope' and m.key = p_item ->> 'key'
    and m.status = 'active';
  if v_old.metadata -> 'learned' ->> 'verified' > v_tag ->> 'verified' then
    return jsonb_build_object('problem', 'later', 'id', v_old.id,
                              'verified', v_old.metadata -> 'learned' ->> 'verified');
  end if;
  if (v_old.metadata -> 'learned') - array['claim', 'topic'] = v_tag - array['claim', 'topic'] then
    v_item := v_item || jsonb_build_object('hash', encode(v_old.hash, 'hex'));
  end if;
  return remember(p_tenant, p_tenant_name, v_item, p_headers);
end $$;

-- How far a rebuilding of derived rows came, so that one that was broken off goes on.
create table reindexing (
  tenant int not null,
  part text not null,
  after uuid not null,
  primary key (tenant, part)
);
call protect('reindexing');

-- Puts the words of memories in their place ({id: text}), where they differ. Answers how many did.
create function reindex_words(p_tenant int, p_texts jsonb) returns int
language plpgsql as $$
declare
  m memory;
  v_words tsvector;
  v_count int := 0;
begin
  perform enter(p_tenant);
  for m in
    select k.* from memory k
    where k.tenant = p_tenant and k.id in (select t::uuid from jsonb_object_keys(p_texts) t)
      and k.status <> 'deleted' and k.merged_into is null
    order by k.id for update
  loop
    v_words := to_tsvector('english', p_texts ->> m.id::text);
    if v_words <> m.words or m.terms <> word_count(v_words) then
      update memory k set words = v_words, terms = word_count(v_words)
      where k.tenant = p_tenant and k.id = m.id;
      v_count := v_count + 1;
    end if;
    insert into posting as p (tenant, term, doc, tf, len)
    select p_tenant, term_no(w.lexeme), m.doc, least(cardinality(w.positions), 32767),
           word_count(v_words)
    from unnest(v_words) w
    on conflict (tenant, term, doc) do update set tf = excluded.tf, len = excluded.len
      where (p.tf, p.len) <> (excluded.tf, excluded.len);
  end loop;
  return v_count;
end $$;

-- The same for turns, which keep no words of their own: what is not among them is removed.
create function reindex_turns(p_tenant int, p_texts jsonb) returns void
language plpgsql as $$
begin
  perform enter(p_tenant);
  with these as materialized (
    select t.id, t.doc, to_tsvector('english', p_texts ->> t.id::text) as words
    from turn t
    where t.tenant = p_tenant and t.id in (select k::uuid from jsonb_object_keys(p_texts) k)
  ), said as materialized (
    select t.doc, term_no(w.lexeme) as term, least(cardinality(w.positions), 32767) as tf,
           word_count(t.words) as len
    from these t cross join lateral unnest(t.words) w
  ), counted as (
    update turn t set terms = word_count(k.words)
    from these k where t.tenant = p_tenant and t.id = k.id and t.terms <> word_count(k.words)
  ), gone as (
    delete from turn_posting p
    where p.tenant = p_tenant and p.doc in (select k.doc from these k)
      and not exists (select from said s where s.doc = p.doc and s.term = p.term)
  )
  insert into turn_posting as p (tenant, term, doc, tf, len)
  select p_tenant, s.term, s.doc, s.tf, s.len from said s
  on conflict (tenant, term, doc) do update set tf = excluded.tf, len = excluded.len
    where (p.tf, p.len) <> (excluded.tf, excluded.len);
end $$;

grant execute on function task_shown(int), task_undone(int, uuid) to reverie_app;
