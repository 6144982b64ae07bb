-- Two who derive from one memory at once write and tell it once: who comes second finds it done.

-- Writes what was derived from memories ([{memory, version, headers, ...}]), of each as far as it is
-- there, while the memory stands at that version. `enriched` ({event, subject, body}) says that all is
-- derived, which is written and told once of a version; `missed` ({project, subject}) looks for changes
-- that came before its anchors. Answers [{missed: event}] in their order, null for what did not stand.
-- Locks: the memories by id, the relations by their ends, then that of causal edges, before any of these.
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
    continue when not found
      or v_one ? 'enriched' and v_memory.enriched_version >= v_memory.version;
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
