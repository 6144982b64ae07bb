-- Near duplicates become one memory; contradictions are linked, and the older one is doubted.

alter table memory add column merged_into uuid;
create index memory_merged on memory (tenant, merged_into) where merged_into is not null;

-- Where a memory went, over as many merges as there were; itself where it was never merged.
create function merged_end(p_tenant int, p_memory uuid) returns uuid
language sql stable
begin atomic
  with recursive gone (id, hops) as (
    select p_memory, 0
    union all
    select m.merged_into, g.hops + 1
    from gone g join memory m on m.tenant = p_tenant and m.id = g.id
    where m.merged_into is not null and g.hops < 1000
  )
  select g.id from gone g order by g.hops desc limit 1;
end;

-- Both memories of a pair, locked in the order of their ids, if each is active at its version.
create function lock_pair(p_tenant int, p_one uuid, p_one_version int, p_two uuid,
                          p_two_version int)
returns boolean
language plpgsql as $$
declare
  v_found int;
begin
  perform from memory m
  where m.tenant = p_tenant and m.id in (p_one, p_two) order by m.id for update;
  select count(*) into v_found from memory m
  where m.tenant = p_tenant and m.status = 'active' and m.kind not in ('file', 'entity')
    and ((m.id = p_one and m.version = p_one_version)
      or (m.id = p_two and m.version = p_two_version));
  return v_found = 2;
end $$;

-- Moves the open edges of a merged memory to the one that stands: each is closed, and opened there
-- unless it would be a loop, a causal cycle, or one that stands already, which keeps the greater
-- weight.
create function move_edges(p_tenant int, p_from uuid, p_to uuid) returns void
language plpgsql as $$
declare
  e edge;
begin
  for e in
    update edge o set known_to = now()
    where o.tenant = p_tenant and o.known_to is null and (o.src = p_from or o.dst = p_from)
    returning o.*
  loop
    continue when p_to in (e.src, e.dst);
    perform link(p_tenant, gen_random_uuid(),
                 case when e.src = p_from then p_to else e.src end, e.kind,
                 case when e.dst = p_from then p_to else e.dst end, e.weight,
                 e.meta || jsonb_build_object('moved_from', p_from));
  end loop;
end $$;

-- What a memory takes over of the one that is merged into it. Where the other's words say more
-- (p_fuller) they become its own.
create function take_over(p_tenant int, p_keep memory, p_gone memory, p_fuller boolean)
returns void
language plpgsql as $$
begin
  if p_fuller then
    perform drop_words(p_tenant, p_keep.doc, p_keep.words);
    perform index_words(p_tenant, p_keep.doc, p_gone.words, word_count(p_gone.words));
  end if;
  update memory m
  set content = case when p_fuller then p_gone.content else m.content end,
      hash = case when p_fuller then p_gone.hash else m.hash end,
      words = case when p_fuller then p_gone.words else m.words end,
      terms = case when p_fuller then word_count(p_gone.words) else m.terms end,
      summary = case when p_fuller then coalesce(p_gone.summary, m.summary)
                     else coalesce(m.summary, p_gone.summary) end,
      key = coalesce(m.key, p_gone.key),
      git = coalesce(m.git, p_gone.git),
      confidence = least(1, greatest(m.confidence, p_gone.confidence) + 0.05),
      valid_from = case when m.valid_from is not null and p_gone.valid_from is not null
                        then least(m.valid_from, p_gone.valid_from) end,
      valid_to = case when m.valid_to is not null and p_gone.valid_to is not null
                      then greatest(m.valid_to, p_gone.valid_to) end,
      metadata = (p_gone.metadata || m.metadata) || jsonb_build_object('merged',
        coalesce(m.metadata -> 'merged', '[]') || coalesce(p_gone.metadata -> 'merged', '[]')
        || jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
          'id', p_gone.id, 'source', p_gone.source, 'session', p_gone.session,
          'agent', p_gone.agent, 'at', p_gone.created)))),
      version = m.version + 1, known_from = now(), updated = now(),
      enriched_version = case when p_fuller or m.enriched_version < m.version
                              then m.enriched_version else m.version + 1 end
  where m.tenant = p_tenant and m.id = p_keep.id;
  insert into memory_tag (tenant, tag, memory)
  select p_tenant, t.tag, p_keep.id from memory_tag t
  where t.tenant = p_tenant and t.memory = p_gone.id on conflict do nothing;
  insert into memory_turn (tenant, memory, turn)
  select p_tenant, p_keep.id, t.turn from memory_turn t
  where t.tenant = p_tenant and t.memory = p_gone.id on conflict do nothing;
end $$;

-- Puts a merged memory out of every search: no words, no vectors, no marks. Its row and versions
-- stay, and say where it went.
create function put_away(p_tenant int, p_gone memory, p_into uuid) returns void
language plpgsql as $$
begin
  perform drop_words(p_tenant, p_gone.doc, p_gone.words);
  delete from vec_bge_small_en_v1_5 v using chunk c
  where v.tenant = p_tenant and c.tenant = p_tenant and c.memory = p_gone.id and v.chunk = c.no;
  delete from chunk c where c.tenant = p_tenant and c.memory = p_gone.id;
  update stale_mark s set cleared = now()
  where s.tenant = p_tenant and s.memory = p_gone.id and s.cleared is null;
  update memory m
  set status = 'superseded', superseded_by = p_into, merged_into = p_into, words = '', terms = 0,
      version = m.version + 1, enriched_version = m.version + 1, known_from = now(), updated = now()
  where m.tenant = p_tenant and m.id = p_gone.id;
end $$;

-- Merges the two memories of one statement into the surer one; of two as sure, the older id stands.
-- `p_fuller` is the one whose words say more. Answers {into, merged, version, event}, or
-- {problem: moved|apart}, with which nothing was written: one of them changed, or they are not to
-- be one (other scope, kind or key, periods that never meet, both pinned).
create function merge_memories(p_tenant int, p_tenant_name text, p_pair jsonb, p_why text,
                               p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_one uuid := p_pair ->> 'older';
  v_two uuid := p_pair ->> 'newer';
  v_event uuid := gen_random_uuid();
  v_keep memory;
  v_gone memory;
  v_fuller boolean;
begin
  perform enter(p_tenant);
  if not lock_pair(p_tenant, v_one, (p_pair ->> 'older_version')::int,
                   v_two, (p_pair ->> 'newer_version')::int) then
    return jsonb_build_object('problem', 'moved');
  end if;
  select m.* into v_keep from memory m where m.tenant = p_tenant and m.id in (v_one, v_two)
  order by m.pinned desc, m.confidence desc, m.id limit 1;
  select m.* into v_gone from memory m
  where m.tenant = p_tenant and m.id in (v_one, v_two) and m.id <> v_keep.id;
  if v_gone.pinned or v_keep.scope <> v_gone.scope or v_keep.key <> v_gone.key
     or v_keep.kind <> v_gone.kind or v_keep.valid_to <= v_gone.valid_from or v_gone.valid_to <= v_keep.valid_from then
    return jsonb_build_object('problem', 'apart');
  end if;
  v_fuller := not v_keep.pinned and coalesce(v_gone.id = (p_pair ->> 'fuller')::uuid, false);
  perform keep_version(p_tenant, v_gone, 'reverie', 'merged into ' || v_keep.id || ': ' || p_why);
  perform keep_version(p_tenant, v_keep, 'reverie', 'took in ' || v_gone.id || ': ' || p_why);
  perform put_away(p_tenant, v_gone, v_keep.id);
  perform take_over(p_tenant, v_keep, v_gone, v_fuller);
  perform move_edges(p_tenant, v_gone.id, v_keep.id);
  perform announce(p_tenant, v_event, 'memory.' || p_tenant_name || '.merged', jsonb_build_object(
    'id', v_keep.id, 'version', v_keep.version + 1, 'merged', v_gone.id), p_headers);
  if v_fuller then
    perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.remembered',
      jsonb_build_object('id', v_keep.id, 'version', v_keep.version + 1), p_headers);
  end if;
  return jsonb_build_object('into', v_keep.id, 'merged', v_gone.id,
                            'version', v_keep.version + 1, 'event', v_event);
end $$;

-- Links a memory to an older one that it contradicts and halves the older one's confidence, once:
-- a pair that was ever linked is left alone. Answers {id, version, event} or {problem: moved|known|
-- apart}.
create function contradict_memories(p_tenant int, p_tenant_name text, p_pair jsonb, p_why text,
                                    p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_older uuid := p_pair ->> 'older';
  v_newer uuid := p_pair ->> 'newer';
  v_event uuid := gen_random_uuid();
  v_old memory;
begin
  perform enter(p_tenant);
  if not lock_pair(p_tenant, v_older, (p_pair ->> 'older_version')::int,
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
  perform keep_version(p_tenant, v_old, 'reverie', 'contradicted by ' || v_newer || ': ' || p_why);
  update memory m
  set confidence = least(m.confidence, greatest(0.1, m.confidence * 0.5)),
      version = m.version + 1, known_from = now(), updated = now(),
      enriched_version = case when m.enriched_version < m.version then m.enriched_version
                              else m.version + 1 end
  where m.tenant = p_tenant and m.id = v_older;
  perform link(p_tenant, gen_random_uuid(), v_newer, 'contradicts', v_older, 1,
               jsonb_build_object('reason', p_why));
  perform announce(p_tenant, v_event, 'memory.' || p_tenant_name || '.contradicted',
    jsonb_build_object('id', v_older, 'version', v_old.version + 1, 'by', v_newer), p_headers);
  return jsonb_build_object('id', v_older, 'version', v_old.version + 1, 'event', v_event);
end $$;
