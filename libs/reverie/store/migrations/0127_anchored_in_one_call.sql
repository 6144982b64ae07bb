-- The nodes that a memory speaks of, found or made in one call whose plans are kept: files ({path, name,
-- id, hash}) of a project, and entities ({label, sort, id, hash}) of a scope, each list in an order that is
-- the same for all, so that none waits for each other. A file that the memory touches already under its
-- name keeps that node, wherever the file went. Answers {files: {path: node}, entities: {label: node}}.
create function anchor_all(p_tenant int, p_memory uuid, p_project text, p_scope text, p_files jsonb,
                           p_entities jsonb)
returns jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_files jsonb := '{}';
  v_entities jsonb := '{}';
  v_one record;
  v_node uuid;
begin
  perform enter(p_tenant);
  -- They would be made again, if the server died within the next second.
  perform set_config('synchronous_commit', 'off', true);
  if p_files <> '[]' then
    select coalesce(jsonb_object_agg(e.meta ->> 'named', e.dst), '{}') into v_files
    from edge e
    where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null
      and e.meta ->> 'named' in (
        select f.path from jsonb_to_recordset(p_files) f (path text));
  end if;
  for v_one in
    select * from jsonb_to_recordset(p_files) f (path text, name text, id uuid, hash text)
  loop
    continue when v_files ? v_one.path;
    v_node := anchor_file(p_tenant, p_project, v_one.path, v_one.name, v_one.id,
                          decode(v_one.hash, 'hex'));
    v_files := v_files || jsonb_strip_nulls(jsonb_build_object(v_one.path, v_node));
  end loop;
  for v_one in
    select * from jsonb_to_recordset(p_entities) n (label text, sort text, id uuid, hash text)
  loop
    v_node := anchor_entity(p_tenant, p_scope, v_one.label, v_one.sort, v_one.id,
                            decode(v_one.hash, 'hex'));
    v_entities := v_entities || jsonb_strip_nulls(jsonb_build_object(v_one.label, v_node));
  end loop;
  return jsonb_build_object('files', v_files, 'entities', v_entities);
end $$;
grant execute on function anchor_all(int, uuid, text, text, jsonb, jsonb) to reverie_app;
