-- The fast path of a write: one call writes the memory, its words, tags, edges and event.

-- The nodes from a cause to an effect along open causal edges; null where none lead there.
-- Walks each edge once, however many ways there are.
create function causal_path(p_tenant int, p_cause uuid, p_effect uuid) returns uuid[]
language sql stable
begin atomic
  with recursive walk (node, parent) as (
    select p_cause, null::uuid
    union
    select n.node, w.node
    from walk w cross join lateral (
      select e.dst as node from edge e
      where e.tenant = p_tenant and e.src = w.node and e.kind = 'led_to' and e.known_to is null
      union all
      select e.src from edge e
      where e.tenant = p_tenant and e.dst = w.node and e.known_to is null
        and e.kind = any (array['supersedes', 'learned_in', 'part_of'])
    ) n
    where w.node <> p_effect
  ), back (node, path) as (
    select p_effect, array[p_effect] where exists (select from walk where walk.node = p_effect)
    union all
    select s.parent, s.parent || b.path
    from back b cross join lateral (
      select w.parent from walk w
      where w.node = b.node and w.parent <> all (b.path) order by w.parent limit 1
    ) s
    where b.node <> p_cause
  )
  select b.path from back b where b.node = p_cause;
end;

-- An edge, or the greater weight on the one that stands. Answers {id}, or {problem: self} or
-- {problem: cycle, path}: from the effect over what it led to back to the cause and the effect.
create function link(p_tenant int, p_id uuid, p_src uuid, p_kind text, p_dst uuid,
                     p_weight real, p_meta jsonb)
returns jsonb
language plpgsql as $$
declare
  v_src uuid := p_src;
  v_dst uuid := p_dst;
  v_kind text := p_kind;
  v_path uuid[];
  v_id uuid;
begin
  perform enter(p_tenant);
  if p_src = p_dst then
    return jsonb_build_object('problem', 'self');
  end if;
  if p_kind = 'caused_by' then
    v_src := p_dst; v_dst := p_src; v_kind := 'led_to';
  end if;
  if v_kind in ('led_to', 'supersedes', 'learned_in', 'part_of') then
    -- Lock, then look: the statement after the lock has a snapshot that sees the other's edge.
    perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
    v_path := case when v_kind = 'led_to' then causal_path(p_tenant, v_dst, v_src)
                   else causal_path(p_tenant, v_src, v_dst) end;
    if v_path is not null then
      return jsonb_build_object('problem', 'cycle', 'path', v_path || v_path[1]);
    end if;
  end if;
  insert into edge as e (tenant, id, src, kind, dst, weight, meta)
  values (p_tenant, p_id, v_src, v_kind, v_dst, p_weight, p_meta)
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight)
  returning e.id into v_id;
  return jsonb_build_object('id', v_id);
end $$;

create function announce(p_tenant int, p_id uuid, p_subject text, p_payload jsonb, p_headers jsonb)
returns void
language sql volatile
begin atomic
  insert into outbox (tenant, id, subject, payload, headers)
  values (p_tenant, p_id, p_subject, p_payload || jsonb_build_object('v', 1, 'tenant', p_tenant),
          p_headers);
end;

-- Adds the words of one memory to the postings.
create function index_words(p_tenant int, p_doc bigint, p_words tsvector, p_len int) returns void
language sql volatile
begin atomic
  insert into posting (tenant, term, doc, tf, len)
  select p_tenant, term_no(w.lexeme), p_doc, least(cardinality(w.positions), 32767), p_len
  from unnest(p_words) w
  on conflict do nothing;
end;

create function add_details(p_tenant int, p_memory uuid, p_item jsonb) returns void
language sql volatile
begin atomic
  insert into memory_tag (tenant, tag, memory)
  select p_tenant, t, p_memory from jsonb_array_elements_text(coalesce(p_item -> 'tags', '[]')) t
  on conflict do nothing;
  insert into memory_turn (tenant, memory, turn)
  select p_tenant, p_memory, t::uuid
  from jsonb_array_elements_text(coalesce(p_item -> 'turns', '[]')) t
  on conflict do nothing;
end;

-- Lets one writer at a time at each identity (key or content) of a batch, in one order for all:
-- batches that meet in opposite order wait instead of dying of a deadlock. 1,024 locks a tenant.
create function lock_identities(p_tenant int, p_items jsonb) returns void
language sql volatile
begin atomic
  select pg_advisory_xact_lock(n.no) from (
    select distinct hashtextextended(
      'reverie.write ' || p_tenant || ' ' || (hashtextextended(
        (i ->> 'scope') || ' ' || coalesce('key ' || (i ->> 'key'), i ->> 'hash'), 0) & 1023), 0) as no
    from jsonb_array_elements(p_items) i
    order by 1
  ) n;
end;

-- The edges of an item from the memory that it became. Raises RV001 with the problem of one.
create function link_all(p_tenant int, p_memory uuid, p_item jsonb) returns void
language plpgsql as $$
declare
  v_edge jsonb;
  v_linked jsonb;
begin
  for v_edge in select * from jsonb_array_elements(coalesce(p_item -> 'edges', '[]')) loop
    v_linked := link(p_tenant, (v_edge ->> 'id')::uuid, p_memory, v_edge ->> 'type',
                     (v_edge ->> 'to')::uuid, (v_edge ->> 'weight')::real, v_edge -> 'metadata');
    if v_linked ? 'problem' then
      raise exception using errcode = 'RV001', message = v_linked::text;
    end if;
  end loop;
end $$;

-- A memory said again: surer, with what it lacked. What stands wins over what comes. A place in git
-- that was unknown is a new version, for its files are yet to be anchored.
create function know_again(p_tenant int, p_tenant_name text, p_old memory, p_item jsonb,
                           p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_placed boolean := p_old.git is null and p_item -> 'git' is not null;
  v_version int := p_old.version + v_placed::int;
begin
  if v_placed then
    insert into memory_version (tenant, memory, version, content, status, who, why, known_from)
    values (p_tenant, p_old.id, p_old.version, p_old.content, p_old.status, p_item ->> 'agent',
            'its place in git became known', p_old.updated);
  end if;
  update memory m
  set confidence = least(1, greatest(m.confidence, (p_item ->> 'confidence')::real) + 0.05),
      pinned = m.pinned or (p_item ->> 'pinned')::boolean,
      summary = coalesce(m.summary, p_item ->> 'summary'),
      git = coalesce(m.git, p_item -> 'git'),
      metadata = (p_item -> 'metadata') || m.metadata,
      version = v_version,
      updated = case when v_placed then now() else m.updated end
  where m.tenant = p_tenant and m.id = p_old.id;
  perform add_details(p_tenant, p_old.id, p_item);
  perform link_all(p_tenant, p_old.id, p_item);
  if v_placed then
    perform announce(p_tenant, (p_item ->> 'event')::uuid,
                     'memory.' || p_tenant_name || '.remembered',
                     jsonb_build_object('id', p_old.id, 'version', v_version), p_headers);
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'id', p_old.id, 'outcome', 'duplicate', 'version', v_version,
    'event', case when v_placed then p_item -> 'event' end));
end $$;

-- One memory as the service validated it. Answers {id, outcome, version, event} or
-- {problem: conflict|missing_edge|cycle|busy, ...}; with a problem nothing was written.
create function remember(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_id uuid := p_item ->> 'id';
  v_scope text := p_item ->> 'scope';
  v_key text := p_item ->> 'key';
  v_reason text := p_item ->> 'reason';
  v_hash bytea := decode(p_item ->> 'hash', 'hex');
  v_words tsvector := to_tsvector('english', p_item ->> 'words');
  v_len int := word_count(v_words);
  v_old memory;
  v_doc bigint;
  v_edge jsonb;
begin
  perform enter(p_tenant);
  for v_edge in select * from jsonb_array_elements(coalesce(p_item -> 'edges', '[]')) loop
    perform from memory m where m.tenant = p_tenant and m.id = (v_edge ->> 'to')::uuid
      and m.status <> 'deleted' and covers(array(
        select jsonb_array_elements_text(p_item -> 'reads')), m.scope);
    if not found then
      return jsonb_build_object('problem', 'missing_edge', 'to', v_edge ->> 'to');
    end if;
  end loop;
  for attempt in 1..5 loop
    v_old := null;
    if v_key is not null then
      select m.* into v_old from memory m
      where m.tenant = p_tenant and m.scope = v_scope and m.key = v_key and m.status = 'active'
      for update;
    else
      select m.* into v_old from memory m
      where m.tenant = p_tenant and m.scope = v_scope and m.hash = v_hash
        and coalesce(m.key, '') = '' and m.status = 'active'
      for update;
    end if;
    if v_old.id is not null and v_old.hash = v_hash then
      return know_again(p_tenant, p_tenant_name, v_old, p_item, p_headers);
    end if;
    if v_old.id is not null then
      if v_reason is null then
        return jsonb_build_object('problem', 'conflict', 'id', v_old.id);
      end if;
      insert into memory_version (tenant, memory, version, content, status, who, why, known_from)
      values (p_tenant, v_old.id, v_old.version, v_old.content, v_old.status,
              p_item ->> 'agent', v_reason, v_old.updated);
      update memory m
      set status = 'superseded', superseded_by = v_id, version = m.version + 1,
          enriched_version = case when m.enriched_version = m.version then m.version + 1
                                  else m.enriched_version end,
          valid_to = coalesce(m.valid_to, now()), updated = now()
      where m.tenant = p_tenant and m.id = v_old.id;
    end if;
    insert into memory (tenant, id, scope, kind, tier, key, content, summary, hash, words, terms,
                        confidence, pinned, session, agent, source, git, metadata,
                        valid_from, valid_to)
    values (p_tenant, v_id, v_scope, p_item ->> 'kind', p_item ->> 'tier', v_key,
            p_item ->> 'content', p_item ->> 'summary', v_hash, v_words, v_len,
            (p_item ->> 'confidence')::real, (p_item ->> 'pinned')::boolean,
            (p_item ->> 'session')::uuid, p_item ->> 'agent', p_item ->> 'source',
            p_item -> 'git', p_item -> 'metadata',
            (p_item ->> 'valid_from')::timestamptz, (p_item ->> 'valid_to')::timestamptz)
    on conflict do nothing
    returning doc into v_doc;
    exit when v_doc is not null;
    if v_old.id is not null then
      -- The row changed under the supersede: undo it with the whole call, the caller repeats.
      raise exception using errcode = 'serialization_failure', message = 'key raced';
    end if;
  end loop;
  if v_doc is null then
    return jsonb_build_object('problem', 'busy');
  end if;
  perform index_words(p_tenant, v_doc, v_words, v_len);
  perform add_details(p_tenant, v_id, p_item);
  if v_old.id is not null then
    insert into edge (tenant, id, src, kind, dst)
    values (p_tenant, gen_random_uuid(), v_id, 'supersedes', v_old.id);
  end if;
  perform link_all(p_tenant, v_id, p_item);
  perform announce(p_tenant, (p_item ->> 'event')::uuid,
                   'memory.' || p_tenant_name || '.remembered',
                   jsonb_build_object('id', v_id, 'version', 1), p_headers);
  return jsonb_build_object('id', v_id, 'version', 1, 'event', p_item ->> 'event',
    'outcome', case when v_old.id is null then 'created' else 'superseded' end);
end $$;

-- Writes memories in order; answers each outcome.
create function remember_all(p_tenant int, p_tenant_name text, p_items jsonb, p_headers jsonb)
returns setof jsonb
language plpgsql as $$
declare
  v_item jsonb;
begin
  perform lock_identities(p_tenant, p_items);
  for v_item in select * from jsonb_array_elements(p_items) loop
    return next remember(p_tenant, p_tenant_name, v_item, p_headers);
  end loop;
end $$;
