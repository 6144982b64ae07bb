-- Who wrote a memory first: histories begin with it. The agent, where there is one, else the key.
alter table memory add column who text;

-- Lets a memory give way to another, with the version it was.
create function step_down(p_tenant int, p_old memory, p_by uuid, p_who text, p_why text) returns void
language plpgsql as $$
begin
  perform keep_version(p_tenant, p_old, p_who, p_why);
  update memory m
  set status = 'superseded', superseded_by = p_by, version = m.version + 1,
      enriched_version = case when m.enriched_version = m.version then m.version + 1
                              else m.enriched_version end,
      valid_to = coalesce(m.valid_to, now()), updated = now(), known_from = now()
  where m.tenant = p_tenant and m.id = p_old.id;
end $$;

-- As before, and with who said it.
create or replace function know_again(p_tenant int, p_tenant_name text, p_old memory, p_item jsonb,
                           p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_placed boolean := p_old.git is null and p_item -> 'git' is not null;
  v_version int := p_old.version + v_placed::int;
begin
  if v_placed then
    perform keep_version(p_tenant, p_old, p_item ->> 'who', 'its place in git became known');
  end if;
  update memory m
  set confidence = least(1, greatest(m.confidence, (p_item ->> 'confidence')::real) + 0.05),
      pinned = m.pinned or (p_item ->> 'pinned')::boolean,
      summary = coalesce(m.summary, p_item ->> 'summary'),
      git = coalesce(m.git, p_item -> 'git'),
      metadata = (p_item -> 'metadata') || m.metadata,
      version = v_version,
      updated = case when v_placed then now() else m.updated end,
      known_from = case when v_placed then now() else m.known_from end
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

create or replace function remember(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb)
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
  v_soft boolean := coalesce((p_item ->> 'soft')::boolean, false);
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
      perform step_down(p_tenant, v_old, v_id, p_item ->> 'who', v_reason);
    end if;
    insert into memory (tenant, id, scope, kind, tier, key, content, summary, hash, words, terms,
                        confidence, pinned, session, agent, who, source, git, metadata,
                        valid_from, valid_to)
    values (p_tenant, v_id, v_scope, p_item ->> 'kind', p_item ->> 'tier', v_key,
            p_item ->> 'content', p_item ->> 'summary', v_hash, v_words, v_len,
            case when v_soft then greatest((p_item ->> 'confidence')::real, v_old.confidence)
                 else (p_item ->> 'confidence')::real end,
            (p_item ->> 'pinned')::boolean or coalesce(v_soft and v_old.pinned, false),
            (p_item ->> 'session')::uuid, p_item ->> 'agent', p_item ->> 'who',
            p_item ->> 'source', p_item -> 'git', p_item -> 'metadata',
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
    insert into edge (tenant, id, src, kind, dst, meta)
    values (p_tenant, gen_random_uuid(), v_id, 'supersedes', v_old.id,
            jsonb_build_object('reason', v_reason, 'soft', v_soft));
    perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.superseded',
                     jsonb_build_object('id', v_old.id, 'version', v_old.version + 1), p_headers);
  end if;
  perform link_all(p_tenant, v_id, p_item);
  perform announce(p_tenant, (p_item ->> 'event')::uuid,
                   'memory.' || p_tenant_name || '.remembered',
                   jsonb_build_object('id', v_id, 'version', 1), p_headers);
  return jsonb_build_object('id', v_id, 'version', 1, 'event', p_item ->> 'event',
    'outcome', case when v_old.id is null then 'created' else 'superseded' end);
end $$;
