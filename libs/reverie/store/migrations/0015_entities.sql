-- Entities: what memories speak of beside files. A node lies in the project of the memory that
-- names it, or in that memory's own scope where it has no project: nobody reads a name that none of
-- the memories open to him names.

create function anchor_entity(p_tenant int, p_scope text, p_name text, p_sort text, p_id uuid,
                              p_hash bytea)
returns uuid
language plpgsql as $$
declare
  v_node uuid;
begin
  perform enter(p_tenant);
  for attempt in 1..2 loop
    select m.id into v_node from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = 'entity:' || p_name
      and m.kind = 'entity' and m.status = 'active';
    exit when found;
    insert into memory (tenant, id, scope, kind, tier, key, enriched_version, content, hash, words,
                        terms, confidence, source, metadata)
    values (p_tenant, p_id, p_scope, 'entity', 'cold', 'entity:' || p_name, 1, p_name, p_hash, '',
            0, 1, 'anchor', jsonb_build_object('sort', p_sort))
    on conflict do nothing;
  end loop;
  return v_node;
end $$;
