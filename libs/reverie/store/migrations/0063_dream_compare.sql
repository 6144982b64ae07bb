-- What a dream writes is compared with what its scope knows, stays within the scope of the turns that
-- it cites, and hangs on the memory of the session that it was learned in.

-- The memory of a session is one node: when the session went on it says more, in place.
create function rewrite_session(p_tenant int, p_tenant_name text, p_old memory, p_item jsonb,
                                p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_words tsvector := to_tsvector('english', p_item ->> 'words');
begin
  perform keep_version(p_tenant, p_old, p_item ->> 'who', p_item ->> 'reason');
  perform drop_words(p_tenant, p_old.doc, p_old.words);
  perform index_words(p_tenant, p_old.doc, v_words, word_count(v_words));
  update memory m
  set content = p_item ->> 'content', hash = decode(p_item ->> 'hash', 'hex'), words = v_words,
      terms = word_count(v_words), summary = coalesce(p_item ->> 'summary', m.summary),
      git = coalesce(p_item -> 'git', m.git), version = m.version + 1,
      known_from = now(), updated = now()
  where m.tenant = p_tenant and m.id = p_old.id;
  delete from memory_tag t where t.tenant = p_tenant and t.memory = p_old.id;
  perform add_details(p_tenant, p_old.id, p_item);
  perform announce(p_tenant, (p_item ->> 'event')::uuid, 'memory.' || p_tenant_name || '.remembered',
                   jsonb_build_object('id', p_old.id, 'version', p_old.version + 1), p_headers);
  return jsonb_build_object('id', p_old.id, 'outcome', 'rewritten', 'version', p_old.version + 1,
                            'event', p_item -> 'event', 'why', p_item ->> 'reason');
end $$;

-- Whether all turns that an item cites are of the session, and the session of the scope.
create function cites_only(p_tenant int, p_scope text, p_session uuid, p_item jsonb) returns boolean
language sql stable
return jsonb_array_length(coalesce(p_item -> 'turns', '[]')) > 0 and not exists (
  select from jsonb_array_elements_text(p_item -> 'turns') c
  where not exists (
    select from turn t join session s on s.tenant = p_tenant and s.id = t.session
    where t.tenant = p_tenant and t.id = c::uuid and s.id = p_session and s.scope = p_scope));

-- Writes one item of a digest. `like` is what was found to say the same, less, or the opposite:
-- {id, version, verdict, why}; where that has changed since, the item is new. What was said again is
-- known surer; what says more takes the place of the older, which is written first; what
-- speaks against it is linked, and the older is doubted. Answers as `remember` does, or
-- {problem: beyond} for what is not of the scope or cites turns of elsewhere.
create function dream_write(p_tenant int, p_tenant_name text, p_scope text, p_session uuid,
                            p_item jsonb, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_like jsonb := p_item -> 'like';
  v_old memory;
  v_one jsonb;
  v_pair jsonb;
begin
  if p_item ->> 'scope' <> p_scope or not cites_only(p_tenant, p_scope, p_session, p_item) then
    return jsonb_build_object('problem', 'beyond');
  end if;
  if p_item ->> 'key' = 'session:' || p_session then
    select m.* into v_old from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = p_item ->> 'key'
      and m.status = 'active' for update;
    if found and v_old.hash <> decode(p_item ->> 'hash', 'hex') then
      return rewrite_session(p_tenant, p_tenant_name, v_old, p_item, p_headers);
    end if;
    return remember(p_tenant, p_tenant_name, p_item, p_headers);
  end if;
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = (v_like ->> 'id')::uuid and m.scope = p_scope
    and m.version = (v_like ->> 'version')::int and m.status = 'active' for update;
  if v_old.id is null then
    return remember(p_tenant, p_tenant_name, p_item, p_headers);
  end if;
  if v_like ->> 'verdict' = 'same' then
    return know_again(p_tenant, p_tenant_name, v_old, p_item, p_headers)
           || jsonb_build_object('why', v_like ->> 'why');
  end if;
  v_one := remember(p_tenant, p_tenant_name, p_item, p_headers);
  if v_one ->> 'outcome' <> 'created' then
    return v_one;
  end if;
  if v_like ->> 'verdict' = 'refined' and not v_old.pinned and v_old.key is null then
    perform step_down(p_tenant, v_old, (v_one ->> 'id')::uuid, p_item ->> 'who', v_like ->> 'why');
    insert into edge (tenant, id, src, kind, dst, meta)
    values (p_tenant, gen_random_uuid(), (v_one ->> 'id')::uuid, 'supersedes', v_old.id,
            jsonb_build_object('reason', v_like ->> 'why', 'soft', false));
    perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.superseded',
                     jsonb_build_object('id', v_old.id, 'version', v_old.version + 1), p_headers);
    return v_one || jsonb_build_object('outcome', 'superseded', 'why', v_like ->> 'why');
  end if;
  v_pair := jsonb_build_object('older', v_old.id, 'older_version', v_old.version,
                               'newer', v_one ->> 'id', 'newer_version', 1);
  if v_like ->> 'verdict' = 'contradicting' and not contradict_memories(
       p_tenant, p_tenant_name, v_pair, v_like ->> 'why', p_headers) ? 'problem' then
    return v_one || jsonb_build_object('outcome', 'contradicting', 'why', v_like ->> 'why');
  end if;
  return v_one;
end $$;

-- Hangs what a session taught on the memory of the session: what a digest came to, and what its agent
-- remembered in it.
create function learned_in(p_tenant int, p_scope text, p_session uuid, p_results jsonb) returns void
language plpgsql as $$
declare
  v_node uuid;
begin
  select m.id into v_node from memory m
  where m.tenant = p_tenant and m.scope = p_scope and m.key = 'session:' || p_session
    and m.status = 'active';
  if v_node is null then return; end if;
  perform link(p_tenant, gen_random_uuid(), l.id, 'learned_in', v_node, 1, '{}')
  from (
    select (o ->> 'id')::uuid as id from jsonb_array_elements(p_results) o where o ? 'id'
    union
    select m.id from memory m
    where m.tenant = p_tenant and m.session = p_session and m.scope = p_scope
      and m.status = 'active' and m.kind not in ('file', 'entity')
  ) l
  where l.id <> v_node and not exists (
    select from edge e where e.tenant = p_tenant and e.src = l.id and e.kind = 'learned_in'
      and e.dst = v_node and e.known_to is null);
end $$;

create or replace function dream_commit(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                             p_run uuid, p_session uuid, p_items jsonb, p_turns uuid[],
                             p_headers jsonb, p_record jsonb)
returns jsonb
language plpgsql as $$
declare
  v_item jsonb;
  v_one jsonb;
  v_known uuid;
  v_results jsonb := '[]';
  v_made jsonb := '[]';
  v_turns int;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return null; end if;
  perform lock_identities(p_tenant, p_items);
  for v_item in select * from jsonb_array_elements(p_items) loop
    v_known := dreamt_before(p_tenant, v_item);
    v_one := case when v_known is null
      then dream_write(p_tenant, p_tenant_name, p_scope, p_session, v_item, p_headers)
      else jsonb_build_object('outcome', 'known', 'id', v_known) end;
    v_results := v_results || v_one;
    v_made := v_made || jsonb_build_object(
      'outcome', coalesce(v_one ->> 'outcome', 'refused'), 'kind', v_item ->> 'kind',
      'memory', v_one ->> 'id', 'turns', coalesce(v_item -> 'turns', '[]'),
      'why', coalesce(v_one ->> 'problem', v_one ->> 'why', v_item ->> 'why', v_item ->> 'reason', ''));
  end loop;
  perform learned_in(p_tenant, p_scope, p_session, v_results);
  with digested as (
    update turn t set run = p_run
    where t.tenant = p_tenant and t.session = p_session and t.id = any(p_turns) and t.run is null
    returning length(t.content) as chars, t.role
  )
  update session s
  set pending = s.pending - d.turns, pending_chars = s.pending_chars - d.chars,
      pending_segments = greatest(s.pending_segments - d.segments, 0)
  from (select count(*) as turns, coalesce(sum(chars), 0) as chars,
               count(*) filter (where role = 'user') as segments from digested) d
  where s.tenant = p_tenant and s.id = p_session
  returning d.turns into v_turns;
  perform dream_note(p_tenant, p_scope, p_run, p_session, v_made, p_record);
  update dream_run r
  set turns = r.turns + coalesce(v_turns, 0), waiting = greatest(r.waiting, r.turns + coalesce(v_turns, 0)),
      created = r.created + n.created, reinforced = r.reinforced + n.reinforced,
      superseded = r.superseded + n.superseded,
      sessions = case when p_session = any(r.sessions) then r.sessions
                      else r.sessions || p_session end
  from (select count(*) filter (where o ->> 'outcome' in ('created', 'superseded', 'contradicting'))
               as created,
               count(*) filter (where o ->> 'outcome' = 'duplicate') as reinforced,
               count(*) filter (where o ->> 'outcome' = 'superseded') as superseded
        from jsonb_array_elements(v_results) o) n
  where r.tenant = p_tenant and r.id = p_run;
  return v_results;
end $$;
