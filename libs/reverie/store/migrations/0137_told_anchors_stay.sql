-- A file that somebody said a memory speaks of stays touched as long as the memory stands at that
-- version (`told` on the edge), whether or not it names the file: so does one told before anything was
-- derived of it.
create or replace function derive_touches(p_tenant int, p_memory memory, p_touches jsonb,
                                          p_relatives int)
returns void
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
  insert into edge as e (tenant, id, src, kind, dst, weight)
  select p_tenant, gen_random_uuid(), greatest(p_memory.id, r.id), 'relates_to',
         least(p_memory.id, r.id), least(1, 0.3 + 0.2 * r.shared)
  from relatives(p_tenant, p_memory.id, p_memory.scope, p_relatives) r order by r.id
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight);
end $$;
