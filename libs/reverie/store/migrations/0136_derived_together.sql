-- What is derived from several memories is written in one call, and so are the nodes they speak of.

-- The nodes that memories speak of ([{memory, project, scope, files, entities}]; files are
-- {path, name, id, hash} of the project, entities {label, sort, id, hash} of the scope). They are made in
-- an order that is the same for all, so that none waits for each other. A file that its memory touches
-- already under its name keeps that node, wherever the file went. Answers [{files: {path: node},
-- entities: {label: node}}] in the order of the memories.
create function anchor_each(p_tenant int, p_asked jsonb)
returns jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_known jsonb;
  v_nodes jsonb := '{}';
  v_one record;
  v_node uuid;
begin
  perform enter(p_tenant);
  -- They would be made again, if the server died within the next second.
  perform set_config('synchronous_commit', 'off', true);
  select coalesce(jsonb_object_agg(m.memory, m.files), '{}') into v_known
  from (select a.one ->> 'memory' as memory, jsonb_object_agg(e.meta ->> 'named', e.dst) as files
        from jsonb_array_elements(p_asked) a (one)
        cross join lateral (
          select e.meta, e.dst from edge e
          where e.tenant = p_tenant and e.src = (a.one ->> 'memory')::uuid and e.kind = 'touches'
            and e.known_to is null and e.meta ? 'named') e
        where a.one -> 'files' <> '[]'
        group by a.one ->> 'memory') m;
  for v_one in
    select distinct on (a.one ->> 'project', f.path) a.one ->> 'project' as project, f.*
    from jsonb_array_elements(p_asked) a (one)
    cross join lateral jsonb_to_recordset(a.one -> 'files')
      f (path text, name text, id uuid, hash text)
    where not coalesce(v_known -> (a.one ->> 'memory') ? f.path, false)
    order by a.one ->> 'project', f.path
  loop
    v_node := anchor_file(p_tenant, v_one.project, v_one.path, v_one.name, v_one.id,
                          decode(v_one.hash, 'hex'));
    v_nodes := v_nodes || jsonb_build_object(v_one.project || ' ' || v_one.path, v_node);
  end loop;
  for v_one in
    select distinct on (a.one ->> 'scope', f.label) a.one ->> 'scope' as scope, f.*
    from jsonb_array_elements(p_asked) a (one)
    cross join lateral jsonb_to_recordset(a.one -> 'entities')
      f (label text, sort text, id uuid, hash text)
    order by a.one ->> 'scope', f.label
  loop
    v_node := anchor_entity(p_tenant, v_one.scope, v_one.label, v_one.sort, v_one.id,
                            decode(v_one.hash, 'hex'));
    v_nodes := v_nodes || jsonb_build_object(v_one.scope || ' entity ' || v_one.label, v_node);
  end loop;
  return (
    select jsonb_agg(jsonb_build_object(
      'files', (
        select coalesce(jsonb_object_agg(f.path, f.node) filter (where f.node is not null), '{}')
        from (select f.path, coalesce(v_known -> (a.one ->> 'memory') ->> f.path,
                                      v_nodes ->> ((a.one ->> 'project') || ' ' || f.path)) as node
              from jsonb_to_recordset(a.one -> 'files') f (path text)) f),
      'entities', (
        select coalesce(jsonb_object_agg(f.label, f.node) filter (where f.node is not null), '{}')
        from (select f.label, v_nodes ->> ((a.one ->> 'scope') || ' entity ' || f.label) as node
              from jsonb_to_recordset(a.one -> 'entities') f (label text)) f)) order by a.n)
    from jsonb_array_elements(p_asked) with ordinality a (one, n));
end $$;
grant execute on function anchor_each(int, jsonb) to reverie_app;

-- The chunks of memories ([{memory, first, pieces: [{start, stop, hash}]}]) with a vector of the model
-- each, and weighted words where there are any: those of a memory from its `first` on. Raises RV003 where
-- the tenant goes by another model.
create function derive_chunks_all(p_tenant int, p_made jsonb, p_vectors halfvec[], p_words sparsevec[])
returns void
language plpgsql as $$
declare
  v_table text;
  v_nos bigint[];
  v_places int[];
begin
  select coalesce(t.models -> t.model ->> 'vectors', 'vec_bge_small_en_v1_5') into v_table
  from tenant t where t.id = p_tenant and not exists (
    select from jsonb_array_elements(p_made) a (one)
    where a.one ->> 'model' <> coalesce(t.model, 'bge-small-en-v1.5'));
  if not found then
    raise exception using errcode = 'RV003', message = 'the tenant goes by another model';
  end if;
  with gone as (
    delete from chunk c
    where c.tenant = p_tenant and c.memory = any (
      array(select (a.one ->> 'memory')::uuid from jsonb_array_elements(p_made) a (one)))
    returning c.no)
  select array_agg(g.no) into v_nos from gone g;
  if v_nos is not null then
    execute format('delete from %I where tenant = $1 and chunk = any ($2)', v_table)
    using p_tenant, v_nos;
  end if;
  with piece as materialized (
    select (a.one ->> 'memory')::uuid as memory, (p.n - 1)::int as ord, p.one,
           ((a.one ->> 'first')::int + p.n)::int as place
    from jsonb_array_elements(p_made) a (one)
    cross join lateral jsonb_array_elements(a.one -> 'pieces') with ordinality p (one, n)
  ), made as (
    insert into chunk (tenant, memory, ord, start, stop, hash)
    select p_tenant, p.memory, p.ord, (p.one ->> 'start')::int, (p.one ->> 'stop')::int,
           decode(p.one ->> 'hash', 'hex')
    from piece p order by p.place
    returning no, memory, ord)
  select array_agg(m.no order by p.place), array_agg(p.place order by p.place)
  into v_nos, v_places
  from made m join piece p on p.memory = m.memory and p.ord = m.ord;
  insert into sparse_splade_tiny (tenant, chunk, v)
  select p_tenant, u.no, p_words[u.place] from unnest(v_nos, v_places) u (no, place)
  where p_words[u.place] is not null;
  execute format('insert into %I (tenant, chunk, v)'
                 ' select $1, u.no, $4[u.place] from unnest($2, $3) u (no, place)', v_table)
  using p_tenant, v_nos, v_places, p_vectors;
end $$;

-- Writes what was derived from memories ([{memory, version, headers, ...}]), of each as far as it is
-- there, while the memory stands at that version. `enriched` ({event, subject, body}) says that all is
-- derived; `missed` ({project, subject}) looks for changes that came before its anchors. Answers
-- [{missed: event}] in their order, null for what did not stand.
create function derive_all(p_tenant int, p_made jsonb, p_vectors halfvec[], p_words sparsevec[])
returns jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_one jsonb;
  v_memory memory;
  v_stand jsonb[] := '{}';
  v_missed jsonb := '{}';
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
      perform derive_touches(p_tenant, v_memory, v_one -> 'touches', (v_one ->> 'relatives')::int);
    end if;
  end loop;
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
  -- Last, for it takes the lock that all causal edges of a tenant take.
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
grant execute on function derive_all(int, jsonb, halfvec[], sparsevec[]) to reverie_app;
