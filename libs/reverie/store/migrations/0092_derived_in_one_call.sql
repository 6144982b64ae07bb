-- What is derived from a memory is written in one call, whose plans are kept.

-- Its edges to the nodes it speaks of ({node: meta}), and to memories of its scope that touch the same
-- ones: a node counts less the more memories touch it (1 for two, a half for five), one that over 50
-- touch counts nothing. A relation has no direction: the newer leads to the older.
create function derive_touches(p_tenant int, p_memory memory, p_touches jsonb, p_relatives int)
returns void
language plpgsql as $$
begin
  update edge e set known_to = now()
  where e.tenant = p_tenant and e.src = p_memory.id and e.kind = 'touches' and e.known_to is null
    and e.meta ? 'named' and not p_touches ? e.dst::text;
  insert into edge as e (tenant, id, src, kind, dst, weight, meta)
  select p_tenant, gen_random_uuid(), p_memory.id, 'touches', t.node::uuid, 1, t.meta
  from jsonb_each(p_touches) t (node, meta) order by t.node
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight), meta = e.meta || excluded.meta;
  insert into edge as e (tenant, id, src, kind, dst, weight)
  select p_tenant, gen_random_uuid(), greatest(p_memory.id, r.id), 'relates_to',
         least(p_memory.id, r.id), least(1, 0.3 + 0.2 * r.shared)
  from relatives(p_tenant, p_memory.id, p_memory.scope, p_relatives) r order by r.id
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight);
end $$;

create function relatives(p_tenant int, p_memory uuid, p_scope text, p_limit int)
returns table (id uuid, shared float8)
language sql stable
begin atomic
  select s.id, s.shared
  from (select o.src as id, sum(1 / sqrt(greatest(n.touched - 1, 1)))::float8 as shared
        from edge e
        cross join lateral (
          select count(*) as touched from (
            select from edge x where x.tenant = p_tenant and x.dst = e.dst and x.kind = 'touches'
              and x.known_to is null limit 51) few
        ) n
        cross join lateral (
          select o.src from edge o
          where o.tenant = p_tenant and o.dst = e.dst and o.kind = 'touches' and o.known_to is null
            and o.src <> e.src and n.touched <= 50
          limit 51) o
        where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null
        group by o.src order by shared desc, o.src desc) s
  cross join lateral (
    select from memory m
    where m.tenant = p_tenant and m.id = s.id and m.status = 'active' and m.scope = p_scope
    limit 1) m
  order by s.shared desc, s.id desc limit p_limit;
end;

-- Its chunks ([{start, stop, hash}]) with a vector of the model each, and weighted words where there
-- are any. Raises RV003 where the tenant goes by another model.
create function derive_chunks(p_tenant int, p_memory uuid, p_model text, p_pieces jsonb,
                              p_vectors halfvec[], p_words sparsevec[])
returns void
language plpgsql as $$
declare
  v_table text;
  v_nos bigint[];
begin
  select coalesce(t.models -> t.model ->> 'vectors', 'vec_bge_small_en_v1_5') into v_table
  from tenant t where t.id = p_tenant
    and (p_model is null or p_model = coalesce(t.model, 'bge-small-en-v1.5'));
  if not found then
    raise exception using errcode = 'RV003', message = 'the tenant goes by another model';
  end if;
  with gone as (
    delete from chunk c where c.tenant = p_tenant and c.memory = p_memory returning c.no)
  select array_agg(g.no) into v_nos from gone g;
  if v_nos is not null then
    execute format('delete from %I where tenant = $1 and chunk = any ($2)', v_table)
    using p_tenant, v_nos;
  end if;
  with made as (
    insert into chunk (tenant, memory, ord, start, stop, hash)
    select p_tenant, p_memory, (p.n - 1)::int, (p.piece ->> 'start')::int, (p.piece ->> 'stop')::int,
           decode(p.piece ->> 'hash', 'hex')
    from jsonb_array_elements(p_pieces) with ordinality p (piece, n) order by p.n
    returning no, ord)
  select array_agg(m.no order by m.ord) into v_nos from made m;
  insert into sparse_splade_tiny (tenant, chunk, v)
  select p_tenant, u.no, u.words from unnest(v_nos, p_words) u (no, words) where u.words is not null;
  execute format('insert into %I (tenant, chunk, v)'
                 ' select $1, u.no, u.v from unnest($2, $3) u (no, v)', v_table)
  using p_tenant, v_nos, p_vectors;
end $$;

-- The causes that were inferred from a memory ([{src, dst, weight, meta}]): others are closed, those
-- that a language model told only where it was heard again. With them the session it was learned in.
-- What would close a cycle is left out.
create function derive_causes(p_tenant int, p_memory memory, p_causes jsonb, p_told boolean)
returns void
language plpgsql as $$
declare
  v_cause record;
  v_node uuid;
begin
  update edge e set known_to = now()
  where e.tenant = p_tenant and e.kind = 'led_to' and e.known_to is null
    and e.meta ->> 'from' = p_memory.id::text and p_memory.id in (e.src, e.dst)
    and (p_told or not starts_with(coalesce(e.meta ->> 'rule', ''), 'llm '))
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

-- Writes what was derived from a memory, as far as p_made holds it, while the memory stands at that
-- version: else null. `enriched` ({event, subject, body}) says that all is derived; `missed` ({project,
-- subject}) looks for changes that came before its anchors. Answers {missed: event}.
create function derive(p_tenant int, p_memory uuid, p_version int, p_made jsonb, p_vectors halfvec[],
                       p_words sparsevec[], p_headers jsonb)
returns jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_memory memory;
  v_missed uuid;
begin
  perform enter(p_tenant);
  -- It would be derived again, if the server died within the next second.
  perform set_config('synchronous_commit', 'off', true);
  select m.* into v_memory from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.version = p_version and m.status <> 'deleted'
  for update;
  if not found then return null; end if;
  if p_made ? 'touches' then
    perform derive_touches(p_tenant, v_memory, p_made -> 'touches', (p_made ->> 'relatives')::int);
  end if;
  if p_made ? 'pieces' then
    perform derive_chunks(p_tenant, p_memory, p_made ->> 'model', p_made -> 'pieces', p_vectors,
                          p_words);
  end if;
  if p_made ? 'enriched' then
    update memory m set enriched_version = greatest(m.enriched_version, p_version)
    where m.tenant = p_tenant and m.id = p_memory;
    perform announce(p_tenant, (p_made #>> '{enriched,event}')::uuid,
                     p_made #>> '{enriched,subject}', p_made #> '{enriched,body}', p_headers);
  end if;
  if p_made ? 'missed' then
    v_missed := missed(p_tenant, p_memory, p_made #>> '{missed,project}',
                       p_made #>> '{missed,subject}', p_headers);
  end if;
  -- Last, for it takes the lock that all causal edges of a tenant take.
  if p_made ? 'causes' then
    perform derive_causes(p_tenant, v_memory, p_made -> 'causes',
                          coalesce((p_made ->> 'told')::boolean, false));
  end if;
  return jsonb_build_object('missed', v_missed);
end $$;
