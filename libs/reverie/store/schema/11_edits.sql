-- Changing a memory: corrections, edits, archiving, restoring; merging near duplicates and linking
-- contradictions.

-- Puts a memory in the place of one that a correction takes back, whatever key that one has.
-- Returns what remember_item() does, or {problem: moved} where the old one is not as it was read.
create function replace_memory(
  p_tenant int, p_tenant_name text, p_old uuid, p_version int, p_item jsonb, p_why text,
  p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_now timestamptz;
  v_result jsonb;
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
    return remember_item(p_tenant, p_tenant_name,
                    p_item || jsonb_build_object('key', v_old.key, 'reason', p_why), p_headers);
  end if;
  v_now := next_moment(null, v_old.known_from);
  v_result := remember_item(p_tenant, p_tenant_name, p_item || jsonb_build_object('at', v_now, 'replaces', p_old),
                            p_headers);
  if v_result ? 'problem' or (v_result ->> 'id')::uuid = p_old then
    return v_result;
  end if;
  perform supersede(p_tenant, v_old, (v_result ->> 'id')::uuid, p_item ->> 'actor', p_why, v_now);
  return v_result || jsonb_build_object('outcome', 'superseded', 'superseded', announce_superseded(
    p_tenant, p_tenant_name, v_old, (v_result ->> 'id')::uuid, p_why, false, p_headers));
end $$;

-- The other active memory of the scope with the key or the content of a memory.
create function find_twin(p_tenant int, p_memory memory) returns uuid
language sql stable
return (
  select m.id from memory m
  where m.tenant = p_tenant and m.scope = p_memory.scope and m.status = 'active'
    and m.id <> p_memory.id
    and (m.key = p_memory.key
         or m.hash = p_memory.hash and m.key is not distinct from p_memory.key)
  limit 1);

-- Changes a memory. `p_change` holds columns by name (bytea as text), `tags`, and `index_text`
-- where its words change. With p_confirms it holds as of now. Returns {version, events, changed}, or {problem:
-- not_found|forbidden|made|moved|twin, ...}, and then nothing was written: `moved` names the
-- current version, `twin` the active memory with the same content or key.
create function memory_change(
  p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[], p_writes text[],
  p_expected int, p_change jsonb, p_actor text, p_why text, p_event_name text, p_headers jsonb,
  p_confirms boolean
) returns jsonb
language plpgsql as $$
declare
  v_lock record;
  v_old memory;
  v_new memory;
  v_words tsvector;
  v_tags text[];
  v_events jsonb := '{}';
  v_event uuid := gen_random_uuid();
  v_remembered_event uuid;
  v_needs_enrichment boolean;
begin
  v_lock := lock_for_change(p_tenant, p_memory, p_reads, p_writes);
  if v_lock.problem is not null then return v_lock.problem; end if;
  v_old := v_lock.memory;
  if p_expected <> v_old.version then
    return jsonb_build_object('problem', 'moved', 'version', v_old.version);
  end if;
  v_new := jsonb_populate_record(v_old, p_change);
  v_tags := array(select t.tag from memory_tag t
                  where t.tenant = p_tenant and t.memory = p_memory order by t.tag);
  if v_new is not distinct from v_old and (not p_change ? 'tags' or v_tags = array(
       select t from jsonb_array_elements_text(p_change -> 'tags') t order by t)) then
    if p_confirms then
      v_events := jsonb_build_object('cleared', end_doubt(
        p_tenant, p_tenant_name, p_memory, v_old.version, p_headers) -> 'event');
    end if;
    return jsonb_build_object('version', v_old.version, 'changed', false,
                              'events', jsonb_strip_nulls(v_events));
  end if;
  v_words := case when p_change ? 'index_text'
                  then to_tsvector('english', p_change ->> 'index_text') else v_old.words end;
  v_needs_enrichment := v_new.status <> 'deleted' and v_new.content <> v_old.content;
  perform save_version(p_tenant, v_old, p_actor, p_why);
  begin
    update memory m
    set kind = v_new.kind, tier = v_new.tier, status = v_new.status, key = v_new.key,
        content = v_new.content, summary = v_new.summary, hash = v_new.hash, words = v_words,
        terms = case when v_new.status = 'deleted' then 0 else word_count(v_words) end,
        confidence = v_new.confidence, pinned = v_new.pinned, git = v_new.git,
        metadata = v_new.metadata, valid_from = v_new.valid_from, valid_to = v_new.valid_to,
        superseded_by = v_new.superseded_by,
        version = m.version + 1,
        enriched_version = case when m.enriched_version = m.version and not v_needs_enrichment
                                then m.version + 1 else m.enriched_version end
    where m.tenant = p_tenant and m.id = p_memory;
  exception when unique_violation then
    delete from memory_version v
    where v.tenant = p_tenant and v.memory = p_memory and v.version = v_old.version;
    return jsonb_build_object('problem', 'twin', 'id', find_twin(p_tenant, v_new));
  end;
  if v_new.status = 'deleted' or v_new.content <> v_old.content then
    perform follow_evidence(p_tenant, p_tenant_name, v_old, p_writes, v_new.status = 'deleted',
                            p_headers);
  end if;
  if v_new.status = 'deleted' then
    perform delete_derived(p_tenant, v_old);
    perform forget_session_starts(p_tenant);
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
  v_events := jsonb_build_object(p_event_name, v_event, 'remembered', v_remembered_event);
  if p_confirms then
    v_events := v_events || jsonb_build_object('cleared', end_doubt(
      p_tenant, p_tenant_name, p_memory, v_old.version + 1, p_headers) -> 'event');
  end if;
  return jsonb_build_object('version', v_old.version + 1, 'changed', true,
                            'events', jsonb_strip_nulls(v_events));
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

-- Makes an archived memory active and confirmed, and brings back one that was forgotten less than
-- p_kept ago. Returns {version, status}, or {problem: not_found|forbidden|status|twin, ...}: the twin
-- is the active memory with its key or content.
create function restore_memory(
  p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[], p_writes text[], p_actor text,
  p_event uuid, p_headers jsonb, p_kept interval
) returns jsonb
language plpgsql as $$
declare
  v_lock record;
  v_old memory;
begin
  v_lock := lock_for_change(p_tenant, p_memory, p_reads, p_writes);
  if v_lock.problem ->> 'problem' = 'not_found' then
    return restore_forgotten(p_tenant, p_tenant_name, p_memory, p_reads, p_writes, p_actor, p_event,
                             p_headers, p_kept);
  end if;
  if v_lock.problem is not null then return v_lock.problem; end if;
  v_old := v_lock.memory;
  if v_old.status <> 'archived' then
    return jsonb_build_object('problem', 'status', 'status', v_old.status);
  end if;
  begin
    perform save_version(p_tenant, v_old, p_actor, 'restored from the archive');
    update memory m
    set status = 'active', version = m.version + 1, confirmed = clock_timestamp(),
        enriched_version = m.enriched_version + (m.enriched_version = m.version)::int
    where m.tenant = p_tenant and m.id = p_memory;
  exception when unique_violation then
    return jsonb_build_object('problem', 'twin', 'id', find_twin(p_tenant, v_old));
  end;
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'restored', p_memory, v_old.version + 1,
                               p_headers, p_event);
  return jsonb_build_object('version', v_old.version + 1, 'status', 'active');
end $$;

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
      version = m.version + 1,
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
      version = m.version + 1, enriched_version = m.version + 1
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
-- once per pair. With `replaces` the older one is superseded, unless it is pinned or has a key, whose
-- successor somebody names. Returns {id, version, event, name} or {problem: moved|known|apart}.
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
  if (p_pair ->> 'replaces')::boolean and not v_old.pinned and v_old.key is null
     and edge_cycle(p_tenant, v_newer, 'supersedes', v_older) is null then
    perform supersede(p_tenant, v_old, v_newer, 'reverie', p_why);
    return announce_superseded(p_tenant, p_tenant_name, v_old, v_newer, p_why, false, p_headers)
           || jsonb_build_object('name', 'superseded');
  end if;
  perform save_version(p_tenant, v_old, 'reverie', 'contradicted by ' || v_newer || ': ' || p_why);
  update memory m
  set confidence = least(m.confidence, greatest(0.1, m.confidence * 0.5)),
      version = m.version + 1,
      enriched_version = case when m.enriched_version < m.version then m.enriched_version
                              else m.version + 1 end
  where m.tenant = p_tenant and m.id = v_older;
  perform link(p_tenant, gen_random_uuid(), v_newer, 'contradicts', v_older, 1,
               jsonb_build_object('reason', p_why));
  perform enqueue_event(p_tenant, v_event, 'memory.' || p_tenant_name || '.contradicted',
    jsonb_build_object('id', v_older, 'version', v_old.version + 1, 'by', v_newer), p_headers);
  return jsonb_build_object('id', v_older, 'version', v_old.version + 1, 'event', v_event,
                            'name', 'contradicted');
end $$;
