-- Enrichment: what is derived from memories after they were written. All writers of edges take
-- their locks in the same order: memories by id, relations by their ends, then the lock of causal
-- edges.

-- Memories whose enrichment is overdue: their event may be lost. They are picked at random, because
-- p_limit memories that always fail would otherwise keep all others out.
create function enrichment_overdue(p_age interval, p_limit int)
returns table (tenant int, tenant_name text, id uuid, version int)
language sql stable security definer
begin atomic
  select m.tenant, t.name, m.id, m.version from memory m join tenant t on t.id = m.tenant
  where m.enriched_version < m.version and m.updated < clock_timestamp() - p_age
    and m.status in ('active', 'superseded')
    and not has_work_failed(m.tenant, m.id, m.version)
  order by random() limit p_limit;
end;
call run_across_tenants('enrichment_overdue(interval, int)');

-- How many memories wait for enrichment and how many changes wait to be applied, in all tenants, and
-- how many of each failed too often.
create function work_backlog()
returns table (memories bigint, changes bigint, failed_memories bigint, failed_changes bigint)
language sql stable security definer
begin atomic
  select w.memories - f.memories, w.changes - f.changes, f.memories, f.changes
  from (select (select count(*) from memory m where m.enriched_version < m.version
                  and m.status in ('active', 'superseded')) as memories,
               (select count(*) from git_event g where g.processed is null) as changes) w,
       (select count(m.id) as memories, count(g.id) as changes
        from work_failure x
        left join memory m on m.tenant = x.tenant and m.id = x.work and m.version = x.version
          and m.enriched_version < m.version and m.status in ('active', 'superseded')
        left join git_event g on g.tenant = x.tenant and g.id = x.work and g.processed is null
        where x.attempts >= max_work_attempts()) f;
end;
call run_across_tenants('work_backlog()');

-- The nodes that memories speak of ([{memory, project, scope, files, entities}]): files are {path,
-- name, id, hash} of the project, entities {label, sort, id, hash} of the scope. Missing ones are
-- created, in an order that is the same for all callers. A file that its memory already touches
-- under that name keeps its node, even after a rename. Returns [{files: {path: node}, entities:
-- {label: node}}] in the order of the memories.
create function ensure_nodes(p_tenant int, p_memories jsonb) returns jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_linked jsonb;
  v_nodes jsonb := '{}';
  v_row record;
  v_node uuid;
begin
  perform set_tenant(p_tenant);
  -- If the server crashed within the next second, they would be created again.
  perform set_config('synchronous_commit', 'off', true);
  select coalesce(jsonb_object_agg(m.memory, m.files), '{}') into v_linked
  from (select a.item ->> 'memory' as memory, jsonb_object_agg(e.meta ->> 'named', e.dst) as files
        from jsonb_array_elements(p_memories) a (item)
        cross join lateral (
          select e.meta, e.dst from edge e
          where e.tenant = p_tenant and e.src = (a.item ->> 'memory')::uuid and e.kind = 'touches'
            and e.known_to is null and e.meta ->> 'named' is not null) e
        where a.item -> 'files' <> '[]'
        group by a.item ->> 'memory') m;
  for v_row in
    select distinct on (a.item ->> 'project', f.path) a.item ->> 'project' as project, f.*
    from jsonb_array_elements(p_memories) a (item)
    cross join lateral jsonb_to_recordset(a.item -> 'files')
      f (path text, name text, id uuid, hash text)
    where not coalesce(v_linked -> (a.item ->> 'memory') ? f.path, false)
    order by a.item ->> 'project', f.path
  loop
    v_node := ensure_file_node(p_tenant, v_row.project, v_row.path, v_row.name, v_row.id,
                               decode(v_row.hash, 'hex'));
    v_nodes := v_nodes || jsonb_build_object(v_row.project || ' ' || v_row.path, v_node);
  end loop;
  for v_row in
    select distinct on (a.item ->> 'scope', f.label) a.item ->> 'scope' as scope, f.*
    from jsonb_array_elements(p_memories) a (item)
    cross join lateral jsonb_to_recordset(a.item -> 'entities')
      f (label text, sort text, id uuid, hash text)
    order by a.item ->> 'scope', f.label
  loop
    v_node := ensure_entity_node(p_tenant, v_row.scope, 'entity:' || v_row.label, v_row.label,
                                 v_row.sort, v_row.id,
                            decode(v_row.hash, 'hex'));
    v_nodes := v_nodes || jsonb_build_object(v_row.scope || ' entity ' || v_row.label, v_node);
  end loop;
  return (
    select jsonb_agg(jsonb_build_object(
      'files', (
        select coalesce(jsonb_object_agg(f.path, f.node) filter (where f.node is not null), '{}')
        from (select f.path, coalesce(v_linked -> (a.item ->> 'memory') ->> f.path,
                                      v_nodes ->> ((a.item ->> 'project') || ' ' || f.path)) as node
              from jsonb_to_recordset(a.item -> 'files') f (path text)) f),
      'entities', (
        select coalesce(jsonb_object_agg(f.label, f.node) filter (where f.node is not null), '{}')
        from (select f.label, v_nodes ->> ((a.item ->> 'scope') || ' entity ' || f.label) as node
              from jsonb_to_recordset(a.item -> 'entities') f (label text)) f)) order by a.n)
    from jsonb_array_elements(p_memories) with ordinality a (item, n));
end $$;

-- Puts the edges of a memory to the nodes it speaks of ({node: meta}) and closes those to others. A
-- file that the caller named (`memory_version` in the edge's meta) stays linked as long as the memory has
-- that version.
create function put_touch_edges(p_tenant int, p_memory memory, p_touches jsonb) returns void
language plpgsql as $$
begin
  update edge e set known_to = next_moment(null, e.known_from)
  where e.tenant = p_tenant and e.src = p_memory.id and e.kind = 'touches' and e.known_to is null
    and e.meta ? 'named' and not p_touches ? e.dst::text
    and (jsonb_typeof(e.meta -> 'memory_version') is distinct from 'number'
         or (e.meta ->> 'memory_version')::numeric < p_memory.version);
  insert into edge as e (tenant, id, src, kind, dst, weight, meta)
  select p_tenant, gen_random_uuid(), p_memory.id, 'touches', t.node::uuid, 1, t.meta
  from jsonb_each(p_touches) t (node, meta) order by t.node
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight), meta = e.meta || excluded.meta;
end $$;

-- Memories of a scope that touch the same nodes. A node counts less the more memories of the scope
-- touch it (1 for two, a half for five); one that over 50 touch does not count. Of a node that over
-- 1000 memories of all scopes touch, the first 1000 are looked at.
create function memories_sharing_nodes(p_tenant int, p_memory uuid, p_scope text, p_limit int)
returns table (id uuid, shared float8)
language sql stable
begin atomic
  select o.id, sum(1 / sqrt(greatest(cardinality(n.touching) - 1, 1)))::float8 as shared
  from edge e
  cross join lateral (
    select array(
      select x.src
      from (select x.src from edge x
            where x.tenant = p_tenant and x.dst = e.dst and x.kind = 'touches' and x.known_to is null
            limit 1000) x
      cross join lateral (
        select from memory m where m.tenant = p_tenant and m.id = x.src and m.scope = p_scope limit 1) m
      limit 51) as touching
  ) n
  cross join lateral unnest(n.touching) o (id)
  cross join lateral (
    select from memory m where m.tenant = p_tenant and m.id = o.id and m.status = 'active' limit 1) m
  where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null
    and cardinality(n.touching) <= 50 and o.id <> p_memory
  group by o.id order by shared desc, o.id desc limit p_limit;
end;

-- A memory with up to p_limit others that touch what it touches: [{src, dst, weight}]. A relation
-- has no direction; by convention it leads from the newer to the older.
create function relations_of(p_tenant int, p_memory memory, p_limit int) returns jsonb
language sql stable
return (
  select coalesce(jsonb_agg(jsonb_build_object(
    'src', greatest(p_memory.id, r.id), 'dst', least(p_memory.id, r.id),
    'weight', least(1, 0.3 + 0.2 * r.shared))), '[]')
  from memories_sharing_nodes(p_tenant, p_memory.id, p_memory.scope, p_limit) r);

-- Puts relations ([{src, dst, weight}], duplicates allowed), sorted by their ends.
create function put_relations(p_tenant int, p_relations jsonb) returns void
language plpgsql as $$
begin
  insert into edge as e (tenant, id, src, kind, dst, weight)
  select p_tenant, gen_random_uuid(), r.src, 'relates_to', r.dst, max(r.weight)
  from jsonb_to_recordset(p_relations) r (src uuid, dst uuid, weight real)
  group by r.src, r.dst order by r.src, r.dst
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight);
end $$;

-- Replaces the chunks of memories ([{memory, first, pieces: [{start, stop, hash}]}]): each gets a
-- vector of the model, and weighted terms where there are any, from position `first` of the arrays
-- on. Raises RV003 where the tenant uses another model. A switch of the model waits until this is
-- committed, because what fills the new model's vectors could not see these chunks.
create function derive_chunks(
  p_tenant int, p_items jsonb, p_vectors halfvec[], p_sparse sparsevec[]
) returns void
language plpgsql as $$
declare
  v_table text;
  v_nos bigint[];
  v_positions int[];
begin
  perform pg_advisory_xact_lock_shared(hashtext('reverie.model'), p_tenant);
  select coalesce(t.models -> t.model ->> 'vectors', 'vec_bge_small_en_v1_5') into v_table
  from tenant t where t.id = p_tenant and not exists (
    select from jsonb_array_elements(p_items) a (item)
    where a.item ->> 'model' <> coalesce(t.model, 'bge-small-en-v1.5'));
  if not found then
    raise exception using errcode = 'RV003', message = 'the tenant goes by another model';
  end if;
  with deleted as (
    delete from chunk c
    where c.tenant = p_tenant and c.memory = any (
      array(select (a.item ->> 'memory')::uuid from jsonb_array_elements(p_items) a (item)))
    returning c.no)
  select array_agg(d.no) into v_nos from deleted d;
  if v_nos is not null then
    execute format('delete from %I where tenant = $1 and chunk = any ($2)', v_table)
    using p_tenant, v_nos;
  end if;
  with piece as materialized (
    select (a.item ->> 'memory')::uuid as memory, (p.n - 1)::int as ordinal, p.chunk,
           ((a.item ->> 'first')::int + p.n)::int as position
    from jsonb_array_elements(p_items) a (item)
    cross join lateral jsonb_array_elements(a.item -> 'pieces') with ordinality p (chunk, n)
  ), inserted as (
    insert into chunk (tenant, memory, ordinal, start, stop, hash)
    select p_tenant, p.memory, p.ordinal, (p.chunk ->> 'start')::int, (p.chunk ->> 'stop')::int,
           decode(p.chunk ->> 'hash', 'hex')
    from piece p order by p.position
    returning no, memory, ordinal)
  select array_agg(m.no order by p.position), array_agg(p.position order by p.position)
  into v_nos, v_positions
  from inserted m join piece p on p.memory = m.memory and p.ordinal = m.ordinal;
  insert into sparse_splade_tiny (tenant, chunk, v)
  select p_tenant, u.no, p_sparse[u.position] from unnest(v_nos, v_positions) u (no, position)
  where p_sparse[u.position] is not null;
  execute format('insert into %I (tenant, chunk, v)'
                 ' select $1, u.no, $4[u.position] from unnest($2, $3) u (no, position)', v_table)
  using p_tenant, v_nos, v_positions, p_vectors;
end $$;

-- Replaces the causes that were inferred from a memory ([{src, dst, weight, meta}]), and links it
-- to its session. Causes from a language model are only closed where the model was asked again
-- (p_llm). What would close a cycle is left out.
create function derive_causes(p_tenant int, p_memory memory, p_causes jsonb, p_llm boolean)
returns void
language plpgsql as $$
declare
  v_cause record;
  v_node uuid;
begin
  update edge e set known_to = next_moment(null, e.known_from)
  where e.tenant = p_tenant and e.kind = 'led_to' and e.known_to is null
    and e.meta ->> 'from' = p_memory.id::text and p_memory.id in (e.src, e.dst)
    and (p_llm or not starts_with(coalesce(e.meta ->> 'rule', ''), 'llm '))
    and not exists (
      select from jsonb_to_recordset(p_causes) c (src uuid, dst uuid)
      where c.src = e.src and c.dst = e.dst);
  for v_cause in
    select * from jsonb_to_recordset(p_causes) c (src uuid, dst uuid, weight real, meta jsonb)
  loop
    perform link(p_tenant, gen_random_uuid(), v_cause.src, 'led_to', v_cause.dst, v_cause.weight,
                 v_cause.meta);
  end loop;
  if p_memory.session is null or p_memory.kind = 'session' then return; end if;
  select m.id into v_node from memory m
  where m.tenant = p_tenant and m.kind = 'session' and m.key = 'session:' || p_memory.session
    and m.status = 'active' and m.id <> p_memory.id
  order by m.id limit 1;
  if found then
    perform link(p_tenant, gen_random_uuid(), p_memory.id, 'learned_in', v_node, 1,
                 '{"rule": "session"}');
  end if;
end $$;

-- Writes what was derived from memories ([{memory, version, headers, ...}]), as far as it is given,
-- while each memory still has that version. `enriched` ({event, subject, body}) says that all is
-- derived, which is written and announced once per version; `missed` ({project, subject}) looks for
-- changes that came before the memory was linked to its files. Returns [{missed: event}] in their
-- order, null for an outdated one.
create function derive(p_tenant int, p_items jsonb, p_vectors halfvec[], p_sparse sparsevec[])
returns jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_item jsonb;
  v_memory memory;
  v_current jsonb[] := '{}';
  v_missed jsonb := '{}';
  v_has_causes boolean := false;
  v_relations jsonb := '[]';
begin
  perform set_tenant(p_tenant);
  -- If the server crashed within the next second, it would be derived again.
  perform set_config('synchronous_commit', 'off', true);
  -- All callers lock in the same order, so that none deadlock.
  perform from memory m
  where m.tenant = p_tenant and m.id = any (
    array(select (a.item ->> 'memory')::uuid from jsonb_array_elements(p_items) a (item)))
  order by m.id for update;
  for v_item in select a.item from jsonb_array_elements(p_items) with ordinality a (item, n) order by a.n
  loop
    select m.* into v_memory from memory m
    where m.tenant = p_tenant and m.id = (v_item ->> 'memory')::uuid
      and m.version = (v_item ->> 'version')::int and m.status <> 'deleted';
    continue when not found
      or v_item ? 'enriched' and v_memory.enriched_version >= v_memory.version;
    v_current := array_append(v_current, v_item);
    if v_item ? 'touches' then
      perform put_touch_edges(p_tenant, v_memory, v_item -> 'touches');
      v_relations := v_relations
        || relations_of(p_tenant, v_memory, (v_item ->> 'relatives')::int);
    end if;
    v_has_causes := v_has_causes or v_item ? 'causes';
  end loop;
  perform put_relations(p_tenant, v_relations);
  if exists (select from unnest(v_current) s (item) where s.item ? 'pieces') then
    perform derive_chunks(
      p_tenant, (select jsonb_agg(s.item) from unnest(v_current) s (item) where s.item ? 'pieces'),
      p_vectors, p_sparse);
  end if;
  update memory m set enriched_version = greatest(m.enriched_version, m.version)
  where m.tenant = p_tenant and m.id = any (
    array(select (s.item ->> 'memory')::uuid from unnest(v_current) s (item) where s.item ? 'enriched'));
  perform enqueue_event(p_tenant, (s.item #>> '{enriched,event}')::uuid, s.item #>> '{enriched,subject}',
                        s.item #> '{enriched,body}', s.item -> 'headers')
  from unnest(v_current) s (item) where s.item ? 'enriched';
  for v_item in
    select s.item from unnest(v_current) s (item) where s.item ? 'missed'
    order by s.item #>> '{missed,project}'
  loop
    v_missed := v_missed || jsonb_build_object(v_item ->> 'memory', enqueue_missed_changes(
      p_tenant, (v_item ->> 'memory')::uuid, v_item #>> '{missed,project}',
      v_item #>> '{missed,subject}', v_item -> 'headers'));
  end loop;
  -- Last, because every writer of causal edges in the tenant waits for this lock.
  if v_has_causes then
    perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
  end if;
  foreach v_item in array v_current loop
    continue when not v_item ? 'causes';
    select m.* into v_memory from memory m
    where m.tenant = p_tenant and m.id = (v_item ->> 'memory')::uuid;
    perform derive_causes(p_tenant, v_memory, v_item -> 'causes',
                          coalesce((v_item ->> 'llm_consulted')::boolean, false));
  end loop;
  return (
    select jsonb_agg(
      case when exists (select from unnest(v_current) s (item)
                        where s.item ->> 'memory' = a.item ->> 'memory')
           then jsonb_build_object('missed', v_missed -> (a.item ->> 'memory')) end order by a.n)
    from jsonb_array_elements(p_items) with ordinality a (item, n));
end $$;
