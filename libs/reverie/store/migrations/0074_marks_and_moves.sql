-- Marks as they are worked out anew, anchors on the move, and how doubt ends.

-- Puts the marks that memories (p_origins) leave by files (p_nodes), on themselves and on who leans on
-- them, in place of those that stood. Answers who is newly in doubt (open) or in none any more.
create function marks_replace(p_tenant int, p_origins uuid[], p_nodes uuid[], p_event uuid,
                              p_marks jsonb)
returns table (memory uuid, version int, open boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_fresh uuid[];
  v_cleared uuid[];
begin
  with wanted as (
    select * from jsonb_to_recordset(p_marks) k (memory uuid, commit text, path text, origin uuid)
  ), gone as (
    update stale_mark s set cleared = now()
    where s.tenant = p_tenant and s.origin = any(p_origins) and s.node = any(p_nodes)
      and s.cleared is null and not exists (
        select from wanted w where w.memory = s.memory and w.commit = s.commit
          and w.path = s.path and w.origin = s.origin)
    returning s.memory
  ) select array_agg(distinct g.memory) into v_cleared from gone g;
  with wanted as (
    select k.* from jsonb_to_recordset(p_marks) k (
      memory uuid, commit text, path text, grade text, score real, change text, subject text,
      committed_at timestamptz, node uuid, origin uuid, via text[], lines jsonb)
    join memory m on m.tenant = p_tenant and m.id = k.memory and m.status = 'active'
  ), fresh as (
    select w.memory from wanted w where not exists (
      select from stale_mark s
      where s.tenant = p_tenant and s.memory = w.memory and s.commit = w.commit
        and s.path = w.path and s.origin = w.origin and s.cleared is null)
  ), put as (
    insert into stale_mark as s (tenant, memory, commit, path, grade, score, change, subject,
                                 committed_at, event, node, origin, via, lines)
    select p_tenant, w.memory, w.commit, w.path, w.grade, w.score, w.change, w.subject,
           w.committed_at, p_event, w.node, w.origin, w.via, w.lines
    from wanted w order by w.memory
    on conflict (tenant, memory, commit, path, origin) do update set
      grade = excluded.grade, score = excluded.score, change = excluded.change,
      event = excluded.event, node = excluded.node, via = excluded.via, lines = excluded.lines,
      created = case when s.cleared is null then s.created else now() end, cleared = null
    where s.cleared is not null
      or (s.grade, s.score, s.change, s.node, s.via, s.lines)
         is distinct from (excluded.grade, excluded.score, excluded.change, excluded.node,
                           excluded.via, excluded.lines)
  ) select array_agg(distinct f.memory) into v_fresh from fresh f;
  return query
  select m.id, m.version, true from memory m
  where m.tenant = p_tenant and m.id = any(v_fresh)
  union all
  select m.id, m.version, false from memory m
  where m.tenant = p_tenant and m.id = any(v_cleared) and m.status = 'active'
    and not exists (select from stale_mark s
                    where s.tenant = p_tenant and s.memory = m.id and s.cleared is null);
end $$;

-- A file that got another name keeps its node, where no node has that name already: says whether.
create function anchor_rename(p_tenant int, p_node uuid, p_path text, p_name text, p_hash bytea)
returns boolean
language plpgsql as $$
declare
  v_old anchor;
begin
  perform enter(p_tenant);
  select a.* into v_old from anchor a where a.tenant = p_tenant and a.node = p_node for update;
  if not found or exists (
      select from anchor b
      where b.tenant = p_tenant and b.project = v_old.project and b.path = p_path)
    or exists (
      select from memory o
      where o.tenant = p_tenant and o.scope = 'project/' || v_old.project
        and o.key = 'file:' || p_path and o.status = 'active' and o.id <> p_node) then
    return false;
  end if;
  update anchor a set path = p_path, name = p_name where a.tenant = p_tenant and a.node = p_node;
  update memory m set key = 'file:' || p_path, content = p_path, hash = p_hash, updated = now()
  where m.tenant = p_tenant and m.id = p_node;
  insert into anchor_alias (tenant, node, project, path, name)
  values (p_tenant, p_node, v_old.project, v_old.path, v_old.name) on conflict do nothing;
  return true;
end $$;

-- Memories that touched a node touch another one from now on; a node that none touches any more
-- becomes that other.
create function anchor_rehome(p_tenant int, p_from uuid, p_to uuid, p_memories uuid[])
returns void
language plpgsql as $$
begin
  perform enter(p_tenant);
  with closed as (
    update edge e set known_to = now()
    where e.tenant = p_tenant and e.dst = p_from and e.kind = 'touches' and e.known_to is null
      and e.src = any(p_memories) and e.src <> p_to
    returning e.src, e.weight, e.meta
  )
  insert into edge as e (tenant, id, src, kind, dst, weight, meta)
  select p_tenant, gen_random_uuid(), c.src, 'touches', p_to, c.weight, c.meta from closed c
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set meta = excluded.meta || e.meta;
  insert into anchor_alias (tenant, node, project, path, name)
  select p_tenant, p_to, a.project, a.path, a.name
  from (select a.project, a.path, a.name from anchor a
        where a.tenant = p_tenant and a.node = p_from
        union all
        select b.project, b.path, b.name from anchor_alias b
        where b.tenant = p_tenant and b.node = p_from) a
  on conflict do nothing;
  perform from edge e
  where e.tenant = p_tenant and e.dst = p_from and e.kind = 'touches' and e.known_to is null limit 1;
  if found then return; end if;
  delete from anchor a where a.tenant = p_tenant and a.node = p_from;
  update memory m
  set status = 'superseded', superseded_by = p_to, merged_into = p_to, version = m.version + 1,
      enriched_version = m.version + 1, known_from = now(), updated = now()
  where m.tenant = p_tenant and m.id = p_from and m.status = 'active';
end $$;

-- What is no more, or no longer holds, casts no doubt and needs none. What says something new knows
-- what was committed before.
create function memory_doubt_ends() returns trigger
language plpgsql as $$
begin
  if old.status = 'active' and new.status in ('superseded', 'deleted') then
    update stale_mark s set cleared = now()
    where s.tenant = new.tenant and s.cleared is null
      and (s.memory = new.id or s.origin = new.id);
  end if;
  return null;
end $$;
create trigger memory_doubt_ends after update of status on memory
  for each row when (old.status is distinct from new.status) execute function memory_doubt_ends();

-- Notes that a memory holds: what is known to speak against it is no reason for doubt any more.
-- Answers {version, cleared, events}; or {problem: not_found|forbidden|made}.
create function memory_confirm(p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[],
                               p_writes text[], p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_marks int;
  v_event uuid;
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
  if v_old.kind in ('file', 'entity') then return jsonb_build_object('problem', 'made'); end if;
  update memory m set checked = now(), confirmed = now()
  where m.tenant = p_tenant and m.id = p_memory;
  with gone as (
    update stale_mark s set cleared = now()
    where s.tenant = p_tenant and s.cleared is null
      and (s.memory = p_memory or s.origin = p_memory)
    returning s.memory
  ) select count(*) filter (where g.memory = p_memory) into v_marks from gone g;
  if v_marks > 0 then
    v_event := gen_random_uuid();
    perform announce(p_tenant, v_event, 'memory.' || p_tenant_name || '.cleared',
                     jsonb_build_object('id', p_memory, 'version', v_old.version), p_headers);
  end if;
  return jsonb_build_object('version', v_old.version, 'cleared', v_marks, 'event', v_event);
end $$;

-- As it was, but that the same change of the same file counts once, however it reached a memory.
create or replace function memory_shown(p_tenant int)
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
    from (
      select distinct on (k.commit, k.path) k.commit, k.path, k.score, k.grade, k.change, k.subject,
             k.committed_at
      from stale_mark k
      where k.tenant = p_tenant and k.memory = m.id and k.cleared is null
      order by k.commit, k.path, k.score desc
    ) k
  ) s on true
  where m.tenant = p_tenant;
end;

-- The columns besides those of memories in which a secret may stand.
create or replace function scrub_columns() returns table (name text, col text)
language sql immutable
begin atomic
  select v.name, v.col from (values
    ('turn', 'content'), ('turn', 'tool'), ('turn', 'external_id'),
    ('memory_version', 'content'), ('memory_version', 'why'), ('memory_version', 'state'),
    ('session', 'external_id'), ('session', 'branch'), ('session', 'summary'), ('edge', 'meta'),
    ('summary', 'content'), ('scope_name', 'name'), ('git_event', 'body'),
    ('git_event', 'branch'), ('stale_mark', 'path'), ('stale_mark', 'subject'),
    ('api_key', 'label'), ('outbox', 'payload'), ('recall_trace', 'query'),
    ('recall_trace', 'asked'), ('dream_decision', 'why'), ('git_file', 'facts'),
    ('git_file', 'name'), ('git_file', 'old_name'), ('git_file', 'branch')) v (name, col);
end;

create function anchor_gone() returns trigger
language plpgsql as $$
begin
  delete from anchor_alias b where b.tenant = old.tenant and b.node = old.node;
  return null;
end $$;
create trigger anchor_gone after delete on anchor for each row execute function anchor_gone();

-- A mark whose origin nobody names is the memory's own.
create function stale_mark_own() returns trigger
language plpgsql as $$
begin
  new.origin := coalesce(new.origin, new.memory);
  return new;
end $$;
create trigger stale_mark_own before insert on stale_mark
  for each row execute function stale_mark_own();
