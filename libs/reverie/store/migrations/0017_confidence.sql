-- What present confidence is computed from: when a memory was confirmed, what used it, how it hangs
-- together; who said it, which is the evidence for a convention; and the pass that archives.

-- When its content changed, it was said again or its confidence rose; null: not since it was made.
alter table memory add column confirmed timestamptz;
alter table tenant add column tended timestamptz not null default now();

-- Use by readers, apart from the wide row. `*_then` is what stood when the hour began: ranking reads
-- that, so that a question asked again has the same order.
create table memory_use (
  tenant int not null,
  memory uuid not null,
  count int not null default 0,
  last timestamptz,
  boost real not null default 0,
  hour timestamptz not null default date_trunc('hour', now()),
  last_then timestamptz,
  boost_then real not null default 0,
  primary key (tenant, memory)
) partition by hash (tenant);

-- Which session, or key and hour, has used which memory already.
create table memory_use_session (
  tenant int not null,
  used_by text not null,
  memory uuid not null,
  at timestamptz not null default now(),
  primary key (tenant, used_by, memory)
) partition by hash (tenant);
create index memory_use_session_at on memory_use_session (tenant, at);

-- How often a memory was said, by session; the nil session stands for none.
create table memory_said (
  tenant int not null,
  memory uuid not null,
  session uuid not null,
  times int not null default 1,
  first timestamptz not null default now(),
  last timestamptz not null default now(),
  primary key (tenant, memory, session)
) partition by hash (tenant);

do $$
declare
  t record;
  v_table regclass;
begin
  foreach v_table in array array['memory_use', 'memory_use_session', 'memory_said']::regclass[] loop
    call split_by_tenant(v_table);
    call protect(v_table);
  end loop;
  for t in select id from tenant_names() loop
    perform enter(t.id);
    insert into memory_said (tenant, memory, session, first, last)
    select m.tenant, m.id, coalesce(m.session, '00000000-0000-0000-0000-000000000000'),
           m.created, m.created
    from memory m where m.tenant = t.id and m.kind not in ('file', 'entity');
  end loop;
  perform set_config('reverie.tenant', '', true);
end $$;

-- A statement that names the confidence confirms a memory where it raises it, changes the content, or
-- leaves the version: what is said again at full confidence. Marks, renames and supersedes do not.
create function note_confirmed() returns trigger
language plpgsql as $$
begin
  if new.hash <> old.hash or new.confidence > old.confidence
     or new.version = old.version and new.confidence = old.confidence then
    new.confirmed := now();
  end if;
  return new;
end $$;
create trigger memory_confirmed before update of confidence, hash on memory
  for each row execute function note_confirmed();

create or replace function add_details(p_tenant int, p_memory uuid, p_item jsonb) returns void
language sql volatile
begin atomic
  insert into memory_tag (tenant, tag, memory)
  select p_tenant, t, p_memory from jsonb_array_elements_text(coalesce(p_item -> 'tags', '[]')) t
  on conflict do nothing;
  insert into memory_turn (tenant, memory, turn)
  select p_tenant, p_memory, t::uuid
  from jsonb_array_elements_text(coalesce(p_item -> 'turns', '[]')) t
  on conflict do nothing;
  insert into memory_said as s (tenant, memory, session)
  select p_tenant, p_memory,
         coalesce((p_item ->> 'session')::uuid, '00000000-0000-0000-0000-000000000000')
  where p_item ? 'hash'
  on conflict (tenant, memory, session) do update set times = s.times + 1, last = now();
end;

-- Counts a use of memories by one session, once; boosts them, and less their strongest neighbours.
-- Answers how many were used for the first time.
create function use_memories(p_tenant int, p_by text, p_memories uuid[], p_reads text[],
                             p_boost real, p_near real, p_fan_out int)
returns int
language plpgsql as $$
declare
  v_fresh uuid[];
begin
  perform enter(p_tenant);
  with first as (
    insert into memory_use_session (tenant, used_by, memory)
    select p_tenant, p_by, m.id from memory m
    where m.tenant = p_tenant and m.id = any (p_memories) and covers(p_reads, m.scope)
      and m.status <> 'deleted'
    order by m.id
    on conflict do nothing
    returning memory
  ) select array_agg(memory) into v_fresh from first;
  if v_fresh is null then return 0; end if;
  insert into memory_use as u (tenant, memory, count, last, boost)
  select p_tenant, b.memory, max(b.used), max(b.at), max(b.boost)
  from (
    select f as memory, 1 as used, now() as at, p_boost as boost from unnest(v_fresh) f
    union all
    select n.other, 0, null, p_near
    from unnest(v_fresh) f cross join lateral (
      select e.other from (
        select dst as other, weight from edge
        where tenant = p_tenant and src = f and known_to is null and kind <> 'touches'
        union all
        select src, weight from edge
        where tenant = p_tenant and dst = f and known_to is null and kind <> 'touches'
      ) e join memory m on m.tenant = p_tenant and m.id = e.other
      where m.status = 'active' and covers(p_reads, m.scope)
      order by e.weight desc, e.other limit p_fan_out
    ) n
  ) b
  group by b.memory order by b.memory
  on conflict (tenant, memory) do update set
    count = u.count + excluded.count,
    last = coalesce(excluded.last, u.last),
    boost = least(1, u.boost + excluded.boost),
    last_then = case when u.hour < excluded.hour then u.last else u.last_then end,
    boost_then = case when u.hour < excluded.hour then u.boost else u.boost_then end,
    hour = excluded.hour;
  return cardinality(v_fresh);
end $$;

drop function memory_shown(int);
create function memory_shown(p_tenant int)
returns table (
  tenant int, id uuid, doc bigint, scope text, kind text, tier text, status text, key text,
  version int, content text, summary text, hash bytea, confidence real, pinned boolean,
  session uuid, agent text, source text, git jsonb, metadata jsonb, valid_from timestamptz,
  valid_to timestamptz, superseded_by uuid, created timestamptz, updated timestamptz,
  enriched boolean, tags text[], turns uuid[], staleness real, stale_grade text, stale_reason text,
  confirmed timestamptz, linked boolean, uses int, used timestamptz, boost real,
  used_then timestamptz, boost_then real)
language sql stable
begin atomic
  select m.tenant, m.id, m.doc, m.scope, m.kind, m.tier, m.status, m.key, m.version, m.content,
         m.summary, m.hash, m.confidence, m.pinned, m.session, m.agent, m.source, m.git, m.metadata,
         m.valid_from, m.valid_to, m.superseded_by, m.created, m.updated,
         m.enriched_version >= m.version,
         array(select t.tag from memory_tag t
               where t.tenant = p_tenant and t.memory = m.id order by t.tag),
         array(select t.turn from memory_turn t
               where t.tenant = p_tenant and t.memory = m.id order by t.turn),
         coalesce(s.score, 0), s.grade, s.reason,
         m.confirmed,
         -- No `exists`: for many rows that would be a hash over all edges of the tenant.
         coalesce(
           (select true from edge e where e.tenant = p_tenant and e.src = m.id
              and e.known_to is null and e.kind not in ('touches', 'learned_in') limit 1),
           (select true from edge e where e.tenant = p_tenant and e.dst = m.id
              and e.known_to is null and e.kind not in ('touches', 'learned_in') limit 1),
           false),
         coalesce(u.count, 0), u.last, coalesce(u.boost, 0),
         case when u.hour < date_trunc('hour', now()) then u.last else u.last_then end,
         coalesce(case when u.hour < date_trunc('hour', now()) then u.boost else u.boost_then end, 0)
  from memory m
  left join memory_use u on u.tenant = p_tenant and u.memory = m.id
  left join lateral (
    select case when bool_or(k.score >= 1) then 1
                else 1 - exp(sum(ln(nullif(1 - k.score::float8, 0)))) end::real as score,
           (array_agg(k.grade order by array_position(array['suspect', 'stale', 'gone'], k.grade) desc))[1]
             as grade,
           (array_agg(k.change || ' ' || k.path || ' in ' || left(k.commit, 10) || ' (' || k.subject || ')'
              order by k.score desc, k.committed_at desc, k.path))[1] as reason
    from stale_mark k
    where k.tenant = p_tenant and k.memory = m.id and k.cleared is null
  ) s on true
  where m.tenant = p_tenant;
end;
grant execute on function memory_shown(int) to reverie_app;

-- Archives memories as they were read at p_seen: not what changed, was used or confirmed since.
-- Answers the ids of those that it archived.
create function archive_memories(p_tenant int, p_tenant_name text, p_memories uuid[],
                                 p_versions int[], p_seen timestamptz, p_why text, p_headers jsonb)
returns setof uuid
language plpgsql as $$
declare
  v_old memory;
begin
  perform enter(p_tenant);
  for v_old in
    select m.* from memory m join unnest(p_memories, p_versions) x (id, version) on x.id = m.id
    where m.tenant = p_tenant and m.version = x.version and m.status = 'active' and not m.pinned
      and coalesce(m.confirmed, m.created) <= p_seen
      and not exists (select from memory_use u
                      where u.tenant = p_tenant and u.memory = m.id and u.last > p_seen)
    order by m.id for update of m
  loop
    perform keep_version(p_tenant, v_old, 'dream', p_why);
    update memory m
    set status = 'archived', version = m.version + 1, known_from = now(), updated = now(),
        enriched_version = case when m.enriched_version = m.version then m.version + 1
                                else m.enriched_version end
    where m.tenant = p_tenant and m.id = v_old.id;
    perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.archived',
                     jsonb_build_object('id', v_old.id, 'version', v_old.version + 1), p_headers);
    return next v_old.id;
  end loop;
end $$;

-- Makes an archived memory active and confirmed. Answers {version}, or {problem: not_found|
-- forbidden|status|twin, ...}: the twin is the active memory that has its key or content.
create function restore_memory(p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[],
                               p_writes text[], p_who text, p_event uuid, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_twin uuid;
begin
  perform enter(p_tenant);
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status <> 'deleted'
    and covers(p_reads, m.scope)
  for update;
  if not found then return jsonb_build_object('problem', 'not_found'); end if;
  if not covers(p_writes, v_old.scope) then
    return jsonb_build_object('problem', 'forbidden', 'scope', v_old.scope);
  end if;
  if v_old.status <> 'archived' then
    return jsonb_build_object('problem', 'status', 'status', v_old.status);
  end if;
  begin
    perform keep_version(p_tenant, v_old, p_who, 'restored from the archive');
    update memory m
    set status = 'active', version = m.version + 1, known_from = now(), updated = now(),
        confirmed = now(),
        enriched_version = case when m.enriched_version = m.version then m.version + 1
                                else m.enriched_version end
    where m.tenant = p_tenant and m.id = p_memory;
  exception when unique_violation then
    select m.id into v_twin from memory m
    where m.tenant = p_tenant and m.scope = v_old.scope and m.status = 'active'
      and (m.key = v_old.key or m.hash = v_old.hash and m.key is not distinct from v_old.key)
    limit 1;
    return jsonb_build_object('problem', 'twin', 'id', v_twin);
  end;
  perform announce(p_tenant, p_event, 'memory.' || p_tenant_name || '.restored',
                   jsonb_build_object('id', p_memory, 'version', v_old.version + 1), p_headers);
  return jsonb_build_object('version', v_old.version + 1);
end $$;

-- The tenant whose memories were tended longest ago, if that is p_every ago; it is this caller's.
create function tend_claim(p_every interval) returns table (tenant int, tenant_name text)
language sql volatile security definer
begin atomic
  update tenant t set tended = clock_timestamp()
  where t.id = (select d.id from tenant d where d.tended < clock_timestamp() - p_every
                order by d.tended, d.id limit 1 for update skip locked)
  returning t.id, t.name;
end;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function tend_claim(interval) set search_path = %I, public, pg_temp',
                 current_schema());
  alter function tend_claim(interval) owner to reverie_system;
  revoke all on function tend_claim(interval) from public;
  grant execute on function tend_claim(interval) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
