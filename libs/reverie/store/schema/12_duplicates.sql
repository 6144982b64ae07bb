-- Near duplicates become one memory; contradictions are linked, and the older memory loses
-- confidence.

-- Where a memory is now after any number of merges; its own id where it was never merged.
create function merge_target(p_tenant int, p_memory uuid) returns uuid
language sql stable
begin atomic
  with recursive chain (id, hops) as (
    select p_memory, 0
    union all
    select m.merged_into, c.hops + 1
    from chain c join memory m on m.tenant = p_tenant and m.id = c.id
    where m.merged_into is not null and c.hops < 1000
  )
  select c.id from chain c order by c.hops desc limit 1;
end;

-- Locks both memories of a pair in the order of their ids; true if each is active at its version.
create function lock_memory_pair(
  p_tenant int, p_first uuid, p_first_version int, p_second uuid, p_second_version int
) returns boolean
language plpgsql as $$
declare
  v_found int;
begin
  perform from memory m
  where m.tenant = p_tenant and m.id in (p_first, p_second) order by m.id for update;
  select count(*) into v_found from memory m
  where m.tenant = p_tenant and m.status = 'active' and m.kind not in ('file', 'entity')
    and ((m.id = p_first and m.version = p_first_version)
      or (m.id = p_second and m.version = p_second_version));
  return v_found = 2;
end $$;

-- Adds to a memory what it lacks of the one that is merged into it. Where the other's text says
-- more (p_fuller), the text becomes its own.
create function absorb_memory(p_tenant int, p_target memory, p_merged memory, p_fuller boolean)
returns void
language plpgsql as $$
begin
  if p_fuller then
    perform unindex_words(p_tenant, p_target.doc, p_target.words);
    perform index_words(p_tenant, p_target.doc, p_merged.words, word_count(p_merged.words));
  end if;
  update memory m
  set content = case when p_fuller then p_merged.content else m.content end,
      hash = case when p_fuller then p_merged.hash else m.hash end,
      words = case when p_fuller then p_merged.words else m.words end,
      terms = case when p_fuller then word_count(p_merged.words) else m.terms end,
      summary = case when p_fuller then coalesce(p_merged.summary, m.summary)
                     else coalesce(m.summary, p_merged.summary) end,
      key = coalesce(m.key, p_merged.key),
      git = coalesce(m.git, p_merged.git),
      confidence = least(1, greatest(m.confidence, p_merged.confidence) + 0.05),
      valid_from = case when m.valid_from is not null and p_merged.valid_from is not null
                        then least(m.valid_from, p_merged.valid_from) end,
      valid_to = case when m.valid_to is not null and p_merged.valid_to is not null
                      then greatest(m.valid_to, p_merged.valid_to) end,
      metadata = (p_merged.metadata || m.metadata) || jsonb_build_object('merged',
        coalesce(m.metadata -> 'merged', '[]') || coalesce(p_merged.metadata -> 'merged', '[]')
        || jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
          'id', p_merged.id, 'source', p_merged.source, 'session', p_merged.session,
          'agent', p_merged.agent, 'at', p_merged.created)))),
      version = m.version + 1, known_from = now(), updated = now(),
      enriched_version = case when p_fuller or m.enriched_version < m.version
                              then m.enriched_version else m.version + 1 end
  where m.tenant = p_tenant and m.id = p_target.id;
  insert into memory_tag (tenant, tag, memory)
  select p_tenant, t.tag, p_target.id from memory_tag t
  where t.tenant = p_tenant and t.memory = p_merged.id on conflict do nothing;
  insert into memory_turn (tenant, memory, turn)
  select p_tenant, p_target.id, t.turn from memory_turn t
  where t.tenant = p_tenant and t.memory = p_merged.id on conflict do nothing;
end $$;

-- Takes a merged memory out of search: no words, vectors or stale marks. Its row and versions
-- remain, and say where it went.
create function retire_merged_memory(p_tenant int, p_merged memory, p_into uuid) returns void
language plpgsql as $$
begin
  perform delete_search_rows(p_tenant, p_merged);
  update stale_mark s set cleared = now()
  where s.tenant = p_tenant and s.memory = p_merged.id and s.cleared is null;
  update memory m
  set status = 'superseded', superseded_by = p_into, merged_into = p_into, words = '', terms = 0,
      version = m.version + 1, enriched_version = m.version + 1, known_from = now(), updated = now()
  where m.tenant = p_tenant and m.id = p_merged.id;
end $$;

-- Merges two memories that say the same into the surer one, or the older id. `fuller` names the one
-- whose text says more. Returns {into, merged, version, event}, or {problem: moved|apart}, and then
-- nothing was written: one of them changed, or they must not be merged (other scope, kind or key,
-- separate periods, both pinned).
create function merge_memories(
  p_tenant int, p_tenant_name text, p_pair jsonb, p_why text, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_older uuid := p_pair ->> 'older';
  v_newer uuid := p_pair ->> 'newer';
  v_event uuid := gen_random_uuid();
  v_target memory;
  v_merged memory;
  v_fuller boolean;
begin
  perform set_tenant(p_tenant);
  if not lock_memory_pair(p_tenant, v_older, (p_pair ->> 'older_version')::int,
                          v_newer, (p_pair ->> 'newer_version')::int) then
    return jsonb_build_object('problem', 'moved');
  end if;
  select m.* into v_target from memory m where m.tenant = p_tenant and m.id in (v_older, v_newer)
  order by m.pinned desc, m.confidence desc, m.id limit 1;
  select m.* into v_merged from memory m
  where m.tenant = p_tenant and m.id in (v_older, v_newer) and m.id <> v_target.id;
  if v_merged.pinned or v_target.scope <> v_merged.scope or v_target.key <> v_merged.key
     or v_target.kind <> v_merged.kind or v_target.valid_to <= v_merged.valid_from
     or v_merged.valid_to <= v_target.valid_from then
    return jsonb_build_object('problem', 'apart');
  end if;
  v_fuller := not v_target.pinned and coalesce(v_merged.id = (p_pair ->> 'fuller')::uuid, false);
  perform save_version(p_tenant, v_merged, 'reverie', 'merged into ' || v_target.id || ': ' || p_why);
  perform save_version(p_tenant, v_target, 'reverie', 'took in ' || v_merged.id || ': ' || p_why);
  perform retire_merged_memory(p_tenant, v_merged, v_target.id);
  perform absorb_memory(p_tenant, v_target, v_merged, v_fuller);
  perform move_edges(p_tenant, v_merged.id, v_target.id);
  perform enqueue_event(p_tenant, v_event, 'memory.' || p_tenant_name || '.merged', jsonb_build_object(
    'id', v_target.id, 'version', v_target.version + 1, 'merged', v_merged.id), p_headers);
  if v_fuller then
    perform enqueue_memory_event(p_tenant, p_tenant_name, 'remembered', v_target.id,
                                 v_target.version + 1, p_headers);
  end if;
  return jsonb_build_object('into', v_target.id, 'merged', v_merged.id,
                            'version', v_target.version + 1, 'event', v_event);
end $$;

-- Links a memory to an older one that it contradicts and halves the confidence of the older one,
-- once per pair. Returns {id, version, event} or {problem: moved|known|apart}.
create function contradict_memories(
  p_tenant int, p_tenant_name text, p_pair jsonb, p_why text, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_older uuid := p_pair ->> 'older';
  v_newer uuid := p_pair ->> 'newer';
  v_event uuid := gen_random_uuid();
  v_old memory;
begin
  perform set_tenant(p_tenant);
  if not lock_memory_pair(p_tenant, v_older, (p_pair ->> 'older_version')::int,
                          v_newer, (p_pair ->> 'newer_version')::int) then
    return jsonb_build_object('problem', 'moved');
  end if;
  perform from edge e where e.tenant = p_tenant and e.kind in ('contradicts', 'supersedes')
    and ((e.src = v_newer and e.dst = v_older) or (e.src = v_older and e.dst = v_newer));
  if found then
    return jsonb_build_object('problem', 'known');
  end if;
  select m.* into v_old from memory m join memory n on n.tenant = p_tenant and n.id = v_newer
  where m.tenant = p_tenant and m.id = v_older and m.scope = n.scope;
  if not found then
    return jsonb_build_object('problem', 'apart');
  end if;
  perform save_version(p_tenant, v_old, 'reverie', 'contradicted by ' || v_newer || ': ' || p_why);
  update memory m
  set confidence = least(m.confidence, greatest(0.1, m.confidence * 0.5)),
      version = m.version + 1, known_from = now(), updated = now(),
      enriched_version = case when m.enriched_version < m.version then m.enriched_version
                              else m.version + 1 end
  where m.tenant = p_tenant and m.id = v_older;
  perform link(p_tenant, gen_random_uuid(), v_newer, 'contradicts', v_older, 1,
               jsonb_build_object('reason', p_why));
  perform enqueue_event(p_tenant, v_event, 'memory.' || p_tenant_name || '.contradicted',
    jsonb_build_object('id', v_older, 'version', v_old.version + 1, 'by', v_newer), p_headers);
  return jsonb_build_object('id', v_older, 'version', v_old.version + 1, 'event', v_event);
end $$;
