-- Topics: an entity node of the key topic:<slug> that the memories of a project scope which keep being
-- about one thing are part_of. A topic is part of nothing, so that it closes no causal ring; link()
-- looks all the same, for people may link it by hand.

-- The node of a topic, made or brought back; null where something else has its key.
create function topic_node(p_tenant int, p_scope text, p_topic jsonb) returns uuid
language plpgsql as $$
declare
  v_key text := p_topic ->> 'key';
  v_node uuid;
begin
  for attempt in 1..2 loop
    select m.id into v_node from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = v_key and m.kind = 'entity'
      and m.status = 'active';
    exit when found;
    select m.id into v_node from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = v_key and m.kind = 'entity'
      and m.status = 'archived' order by m.id limit 1;
    if found then
      perform anchor_back(p_tenant, v_node);
    else
      insert into memory (tenant, id, scope, kind, tier, key, enriched_version, content, hash, words,
                          terms, confidence, source, metadata)
      values (p_tenant, (p_topic ->> 'id')::uuid, p_scope, 'entity', 'cold', v_key, 1,
              p_topic ->> 'name', decode(p_topic ->> 'hash', 'hex'), '', 0, 1, 'anchor',
              jsonb_build_object('sort', 'topic'))
      on conflict do nothing;
    end if;
  end loop;
  return v_node;
end $$;

-- Makes memories part of a topic and takes out those that are not its own any more; whether that
-- changed anything. What was linked by hand stays.
create function topic_members(p_tenant int, p_node uuid, p_scope text, p_members uuid[])
returns boolean
language plpgsql as $$
declare
  v_closed int;
  v_linked int;
begin
  update edge e set known_to = now()
  where e.tenant = p_tenant and e.dst = p_node and e.kind = 'part_of' and e.known_to is null
    and e.meta ->> 'rule' = 'topic' and e.src <> all (p_members);
  get diagnostics v_closed = row_count;
  select count(*) filter (where l.linked ? 'id') into v_linked
  from (
    select link(p_tenant, gen_random_uuid(), m.id, 'part_of', p_node, 0.5, '{"rule": "topic"}') as linked
    from memory m
    where m.tenant = p_tenant and m.id = any(p_members) and m.scope = p_scope
      and m.status = 'active'
      and not exists (select from edge e
                      where e.tenant = p_tenant and e.src = m.id and e.dst = p_node
                        and e.kind = 'part_of' and e.known_to is null)
  ) l;
  return v_closed + v_linked > 0;
end $$;

-- Makes these the topics of a scope: those that are none any more lose their members and are put
-- away, unless something was linked to them by hand. Answers what changed.
create function topics_put(p_tenant int, p_scope text, p_topics jsonb)
returns table (node uuid, name text, members int)
language plpgsql as $$
declare
  v_topic jsonb;
  v_members uuid[];
  v_kept uuid[] := '{}';
  m memory;
begin
  perform enter(p_tenant);
  perform pg_advisory_xact_lock(hashtext('reverie.topics'), p_tenant);
  for v_topic in select t from jsonb_array_elements(p_topics) t loop
    node := topic_node(p_tenant, p_scope, v_topic);
    continue when node is null;
    v_kept := v_kept || node;
    v_members := array(select x::uuid from jsonb_array_elements_text(v_topic -> 'members') x);
    if topic_members(p_tenant, node, p_scope, v_members) then
      name := v_topic ->> 'name';
      members := cardinality(v_members);
      return next;
    end if;
  end loop;
  for m in
    select x.* from memory x
    where x.tenant = p_tenant and x.scope = p_scope and x.kind = 'entity' and x.status = 'active'
      and x.key like 'topic:%' and x.id <> all (v_kept)
    order by x.id for update
  loop
    perform topic_members(p_tenant, m.id, p_scope, '{}');
    continue when exists (select from edge e where e.tenant = p_tenant and m.id in (e.src, e.dst)
                            and e.known_to is null);
    perform keep_version(p_tenant, m, 'dream', 'no topic any more');
    update memory x
    set status = 'archived', version = x.version + 1, known_from = now(), updated = now(),
        enriched_version = x.version + 1
    where x.tenant = p_tenant and x.id = m.id;
    node := m.id;
    name := m.content;
    members := 0;
    return next;
  end loop;
end $$;
grant execute on function topic_node(int, text, jsonb), topic_members(int, uuid, text, uuid[]),
  topics_put(int, text, jsonb) to reverie_app;
