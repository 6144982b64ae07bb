-- Changing a memory: corrections, edits, archiving and restoring.

-- Puts a memory in the place of one that a correction takes back, whatever key that one has.
-- Returns what remember() does, or {problem: moved} where the old one is not as it was read.
create function replace_memory(
  p_tenant int, p_tenant_name text, p_old uuid, p_version int, p_item jsonb, p_why text,
  p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_result jsonb;
  v_event uuid := gen_random_uuid();
begin
  perform set_tenant(p_tenant);
  perform lock_identities(p_tenant, jsonb_build_array(p_item));
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_old and m.version = p_version and m.status = 'active'
    and m.scope = p_item ->> 'scope'
  for update;
  if not found then
    return jsonb_build_object('problem', 'moved');
  end if;
  if v_old.key is not null then
    return remember(p_tenant, p_tenant_name,
                    p_item || jsonb_build_object('key', v_old.key, 'reason', p_why), p_headers);
  end if;
  v_result := remember(p_tenant, p_tenant_name, p_item, p_headers);
  if v_result ? 'problem' or (v_result ->> 'id')::uuid = p_old then
    return v_result;
  end if;
  perform supersede(p_tenant, v_old, (v_result ->> 'id')::uuid, p_item ->> 'who', p_why);
  insert into edge (tenant, id, src, kind, dst, meta)
  values (p_tenant, gen_random_uuid(), (v_result ->> 'id')::uuid, 'supersedes', v_old.id,
          jsonb_build_object('reason', p_why, 'soft', false))
  on conflict do nothing;
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'superseded', v_old.id, v_old.version + 1,
                               p_headers, v_event);
  return v_result || jsonb_build_object('outcome', 'superseded', 'superseded', jsonb_build_object(
    'id', v_old.id, 'version', v_old.version + 1, 'event', v_event));
end $$;

-- Changes a memory. `p_change` holds columns by name (bytea as text), `tags`, and `index_text`
-- where its words change. Returns {version, events, changed}, or {problem:
-- not_found|forbidden|made|moved|twin, ...}, and then nothing was written: `moved` names the
-- current version, `twin` the active memory with the same content or key.
create function memory_change(
  p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[], p_writes text[],
  p_expected int, p_change jsonb, p_actor text, p_why text, p_event_name text, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_new memory;
  v_words tsvector;
  v_tags text[];
  v_twin uuid;
  v_event uuid := gen_random_uuid();
  v_remembered_event uuid;
  v_needs_enrichment boolean;
begin
  perform set_tenant(p_tenant);
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status <> 'deleted'
    and scope_matches(p_reads, m.scope)
  for update;
  if not found then return jsonb_build_object('problem', 'not_found'); end if;
  if not scope_matches(p_writes, v_old.scope) then
    return jsonb_build_object('problem', 'forbidden', 'scope', v_old.scope);
  end if;
  if v_old.kind in ('file', 'entity') then return jsonb_build_object('problem', 'made'); end if;
  if p_expected <> v_old.version then
    return jsonb_build_object('problem', 'moved', 'version', v_old.version);
  end if;
  v_new := jsonb_populate_record(v_old, p_change);
  v_tags := array(select t.tag from memory_tag t
                  where t.tenant = p_tenant and t.memory = p_memory order by t.tag);
  if v_new is not distinct from v_old and (not p_change ? 'tags' or v_tags = array(
       select t from jsonb_array_elements_text(p_change -> 'tags') t order by t)) then
    return jsonb_build_object('version', v_old.version, 'changed', false, 'events', '{}'::jsonb);
  end if;
  v_words := case when p_change ? 'index_text'
                  then to_tsvector('english', p_change ->> 'index_text') else v_old.words end;
  v_needs_enrichment := v_new.status <> 'deleted'
    and (v_new.content <> v_old.content or v_new.status <> v_old.status);
  perform save_version(p_tenant, v_old, p_actor, p_why);
  begin
    update memory m
    set kind = v_new.kind, tier = v_new.tier, status = v_new.status, key = v_new.key,
        content = v_new.content, summary = v_new.summary, hash = v_new.hash, words = v_words,
        terms = case when v_new.status = 'deleted' then 0 else word_count(v_words) end,
        confidence = v_new.confidence, pinned = v_new.pinned, git = v_new.git,
        metadata = v_new.metadata, valid_from = v_new.valid_from, valid_to = v_new.valid_to,
        superseded_by = v_new.superseded_by,
        version = m.version + 1, known_from = now(), updated = now(),
        enriched_version = case when m.enriched_version = m.version and not v_needs_enrichment
                                then m.version + 1 else m.enriched_version end
    where m.tenant = p_tenant and m.id = p_memory;
  exception when unique_violation then
    select m.id into v_twin from memory m
    where m.tenant = p_tenant and m.scope = v_old.scope and m.status = 'active' and m.id <> p_memory
      and (m.key = v_new.key or m.hash = v_new.hash and m.key is not distinct from v_new.key)
    limit 1;
    delete from memory_version v
    where v.tenant = p_tenant and v.memory = p_memory and v.version = v_old.version;
    return jsonb_build_object('problem', 'twin', 'id', v_twin);
  end;
  if v_new.status = 'deleted' then
    perform delete_derived(p_tenant, v_old);
  elsif v_words <> v_old.words then
    perform unindex_words(p_tenant, v_old.doc, v_old.words);
    perform index_words(p_tenant, v_old.doc, v_words, word_count(v_words));
  end if;
  if p_change ? 'tags' then
    delete from memory_tag t where t.tenant = p_tenant and t.memory = p_memory;
    perform add_memory_details(p_tenant, p_memory, jsonb_build_object('tags', p_change -> 'tags'));
  end if;
  perform enqueue_memory_event(p_tenant, p_tenant_name, p_event_name, p_memory, v_old.version + 1,
                               p_headers, v_event);
  if v_needs_enrichment then
    v_remembered_event := gen_random_uuid();
    perform enqueue_memory_event(p_tenant, p_tenant_name, 'remembered', p_memory,
                                 v_old.version + 1, p_headers, v_remembered_event);
  end if;
  return jsonb_build_object(
    'version', v_old.version + 1, 'changed', true,
    'events', jsonb_strip_nulls(jsonb_build_object(p_event_name, v_event, 'remembered', v_remembered_event)));
end $$;

-- Archives memories as they were read at p_seen, except those that changed, were used or confirmed
-- since. Returns the ids of those that it archived.
create function archive_memories(
  p_tenant int, p_tenant_name text, p_memories uuid[], p_versions int[], p_seen timestamptz,
  p_why text, p_headers jsonb
) returns setof uuid
language plpgsql as $$
declare
  v_old memory;
begin
  perform set_tenant(p_tenant);
  for v_old in
    select m.* from memory m join unnest(p_memories, p_versions) x (id, version) on x.id = m.id
    where m.tenant = p_tenant and m.version = x.version and m.status = 'active' and not m.pinned
      and coalesce(m.confirmed, m.created) <= p_seen
      and not exists (select from memory_use u
                      where u.tenant = p_tenant and u.memory = m.id and u.last > p_seen)
    order by m.id for update of m
  loop
    perform archive_memory(p_tenant, p_tenant_name, v_old, 'dream', p_why, p_headers);
    return next v_old.id;
  end loop;
end $$;

-- Makes an archived memory active and confirmed. Returns {version}, or {problem:
-- not_found|forbidden|status|twin, ...}: the twin is the active memory with its key or content.
create function restore_memory(
  p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[], p_writes text[], p_actor text,
  p_event uuid, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_twin uuid;
begin
  perform set_tenant(p_tenant);
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status <> 'deleted'
    and scope_matches(p_reads, m.scope)
  for update;
  if not found then return jsonb_build_object('problem', 'not_found'); end if;
  if not scope_matches(p_writes, v_old.scope) then
    return jsonb_build_object('problem', 'forbidden', 'scope', v_old.scope);
  end if;
  if v_old.status <> 'archived' then
    return jsonb_build_object('problem', 'status', 'status', v_old.status);
  end if;
  begin
    perform save_version(p_tenant, v_old, p_actor, 'restored from the archive');
    update memory m
    set status = 'active', version = m.version + 1, known_from = now(), updated = now(),
        confirmed = now(),
        enriched_version = m.enriched_version + (m.enriched_version = m.version)::int
    where m.tenant = p_tenant and m.id = p_memory;
  exception when unique_violation then
    select m.id into v_twin from memory m
    where m.tenant = p_tenant and m.scope = v_old.scope and m.status = 'active'
      and (m.key = v_old.key or m.hash = v_old.hash and m.key is not distinct from v_old.key)
    limit 1;
    return jsonb_build_object('problem', 'twin', 'id', v_twin);
  end;
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'restored', p_memory, v_old.version + 1,
                               p_headers, p_event);
  return jsonb_build_object('version', v_old.version + 1);
end $$;
