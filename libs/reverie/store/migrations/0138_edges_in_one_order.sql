-- What writes edges of one tenant at the same time takes its locks in one order, so that none waits for
-- each other: memories by id, relations by their ends, then the lock of causal edges, then these.

-- The edges of a memory to the nodes it speaks of ({node: meta}). A file that somebody said it speaks of
-- stays touched as long as the memory stands at that version (`told` on the edge), whether or not it
-- names the file: so does one told before anything was derived of it.
create function touch_each(p_tenant int, p_memory memory, p_touches jsonb) returns void
language plpgsql as $$
begin
  update edge e set known_to = now()
  where e.tenant = p_tenant and e.src = p_memory.id and e.kind = 'touches' and e.known_to is null
    and e.meta ? 'named' and not p_touches ? e.dst::text
    and coalesce((e.meta ->> 'told')::int, 0) < p_memory.version;
  insert into edge as e (tenant, id, src, kind, dst, weight, meta)
  select p_tenant, gen_random_uuid(), p_memory.id, 'touches', t.node::uuid, 1, t.meta
  from jsonb_each(p_touches) t (node, meta) order by t.node
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight), meta = e.meta || excluded.meta;
end $$;

-- A memory with up to p_most others that touch what it touches: [{src, dst, weight}], as the edge
-- between two stands, the newer first.
create function relations_of(p_tenant int, p_memory memory, p_most int) returns jsonb
language sql stable
return (
  select coalesce(jsonb_agg(jsonb_build_object(
    'src', greatest(p_memory.id, r.id), 'dst', least(p_memory.id, r.id),
    'weight', least(1, 0.3 + 0.2 * r.shared))), '[]')
  from relatives(p_tenant, p_memory.id, p_memory.scope, p_most) r);

-- Relations ([{src, dst, weight}]; one may be told twice), put in one order for all.
create function relate_each(p_tenant int, p_relations jsonb) returns void
language plpgsql as $$
begin
  insert into edge as e (tenant, id, src, kind, dst, weight)
  select p_tenant, gen_random_uuid(), r.src, 'relates_to', r.dst, max(r.weight)
  from jsonb_to_recordset(p_relations) r (src uuid, dst uuid, weight real)
  group by r.src, r.dst order by r.src, r.dst
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight);
end $$;

create or replace function derive_touches(p_tenant int, p_memory memory, p_touches jsonb,
                                          p_relatives int)
returns void
language plpgsql as $$
begin
  perform touch_each(p_tenant, p_memory, p_touches);
  perform relate_each(p_tenant, relations_of(p_tenant, p_memory, p_relatives));
end $$;

-- Writes what was derived from memories ([{memory, version, headers, ...}]), of each as far as it is
-- there, while the memory stands at that version. `enriched` ({event, subject, body}) says that all is
-- derived; `missed` ({project, subject}) looks for changes that came before its anchors. Answers
-- [{missed: event}] in their order, null for what did not stand. Locks: the memories by id, the relations
-- by their ends, then that of causal edges, before any of these.
create or replace function derive_all(p_tenant int, p_made jsonb, p_vectors halfvec[], p_words sparsevec[])
returns jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_one jsonb;
  v_memory memory;
  v_stand jsonb[] := '{}';
  v_missed jsonb := '{}';
  v_causes boolean := false;
  v_relations jsonb := '[]';
begin
  perform enter(p_tenant);
  -- It would be derived again, if the server died within the next second.
  perform set_config('synchronous_commit', 'off', true);
  -- In an order that is the same for all, so that none waits for each other.
  perform from memory m
  where m.tenant = p_tenant and m.id = any (
    array(select (a.one ->> 'memory')::uuid from jsonb_array_elements(p_made) a (one)))
  order by m.id for update;
  for v_one in select a.one from jsonb_array_elements(p_made) with ordinality a (one, n) order by a.n
  loop
    select m.* into v_memory from memory m
    where m.tenant = p_tenant and m.id = (v_one ->> 'memory')::uuid
      and m.version = (v_one ->> 'version')::int and m.status <> 'deleted';
    continue when not found;
    v_stand := array_append(v_stand, v_one);
    if v_one ? 'touches' then
      perform touch_each(p_tenant, v_memory, v_one -> 'touches');
      v_relations := v_relations
        || relations_of(p_tenant, v_memory, (v_one ->> 'relatives')::int);
    end if;
    v_causes := v_causes or v_one ? 'causes';
  end loop;
  perform relate_each(p_tenant, v_relations);
  if exists (select from unnest(v_stand) s (one) where s.one ? 'pieces') then
    perform derive_chunks_all(
      p_tenant, (select jsonb_agg(s.one) from unnest(v_stand) s (one) where s.one ? 'pieces'),
      p_vectors, p_words);
  end if;
  update memory m set enriched_version = greatest(m.enriched_version, m.version)
  where m.tenant = p_tenant and m.id = any (
    array(select (s.one ->> 'memory')::uuid from unnest(v_stand) s (one) where s.one ? 'enriched'));
  perform announce(p_tenant, (s.one #>> '{enriched,event}')::uuid, s.one #>> '{enriched,subject}',
                   s.one #> '{enriched,body}', s.one -> 'headers')
  from unnest(v_stand) s (one) where s.one ? 'enriched';
  for v_one in
    select s.one from unnest(v_stand) s (one) where s.one ? 'missed'
    order by s.one #>> '{missed,project}'
  loop
    v_missed := v_missed || jsonb_build_object(v_one ->> 'memory', missed(
      p_tenant, (v_one ->> 'memory')::uuid, v_one #>> '{missed,project}',
      v_one #>> '{missed,subject}', v_one -> 'headers'));
  end loop;
  -- Last, for all that is causal in a tenant waits for it.
  if v_causes then
    perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
  end if;
  foreach v_one in array v_stand loop
    continue when not v_one ? 'causes';
    select m.* into v_memory from memory m
    where m.tenant = p_tenant and m.id = (v_one ->> 'memory')::uuid;
    perform derive_causes(p_tenant, v_memory, v_one -> 'causes',
                          coalesce((v_one ->> 'told')::boolean, false));
  end loop;
  return (
    select jsonb_agg(
      case when exists (select from unnest(v_stand) s (one)
                        where s.one ->> 'memory' = a.one ->> 'memory')
           then jsonb_build_object('missed', v_missed -> (a.one ->> 'memory')) end order by a.n)
    from jsonb_array_elements(p_made) with ordinality a (one, n));
end $$;

-- Moves the open edges of a merged memory to the one that stands: each is closed, and opened there
-- unless it would be a loop, a causal cycle, or one that stands already, which keeps the greater
-- weight.
create or replace function move_edges(p_tenant int, p_from uuid, p_to uuid) returns void
language plpgsql as $$
declare
  e edge;
  v_causal boolean;
begin
  perform from edge o
  where o.tenant = p_tenant and o.known_to is null and o.kind = 'relates_to'
    and (o.src in (p_from, p_to) or o.dst in (p_from, p_to))
  order by o.src, o.dst for update;
  foreach v_causal in array '{false,true}'::boolean[] loop
    if v_causal then
      perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
    end if;
    for e in
      select o.* from edge o
      where o.tenant = p_tenant and o.known_to is null and (o.src = p_from or o.dst = p_from)
        and v_causal = (o.kind in ('led_to', 'supersedes', 'learned_in', 'part_of', 'depends_on'))
      order by o.src, o.dst, o.kind
    loop
      update edge o set known_to = now()
      where o.tenant = p_tenant and o.id = e.id and o.known_to is null;
      continue when not found or p_to in (e.src, e.dst);
      perform link(p_tenant, gen_random_uuid(),
                   case when e.src = p_from then p_to else e.src end, e.kind,
                   case when e.dst = p_from then p_to else e.dst end, e.weight,
                   e.meta || jsonb_build_object('moved_from', p_from));
    end loop;
  end loop;
end $$;
