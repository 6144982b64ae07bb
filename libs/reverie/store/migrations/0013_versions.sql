-- Every change of a memory keeps what it was: who changed it, when and why. Time travel reads these.

alter table memory add column known_from timestamptz;
alter table memory_version add column state jsonb not null default '{}';
alter table memory_version add column words tsvector not null default '';
create index memory_version_known on memory_version (tenant, known_from, known_to);

do $$
declare
  t record;
begin
  for t in select id from tenant_names() loop
    perform enter(t.id);
    update memory m set known_from = coalesce(
      (select max(v.known_to) from memory_version v where v.tenant = t.id and v.memory = m.id),
      m.created)
    where m.tenant = t.id;
  end loop;
  perform set_config('reverie.tenant', '', true);
end $$;
alter table memory alter column known_from set default now();
alter table memory alter column known_from set not null;

-- Keeps a memory as it is before a change. `state` holds the columns by name, and its tags.
create function keep_version(p_tenant int, p_old memory, p_who text, p_why text) returns void
language sql volatile
begin atomic
  insert into memory_version (tenant, memory, version, content, status, who, why, known_from,
                              known_to, words, state)
  values (p_tenant, p_old.id, p_old.version, p_old.content, p_old.status, p_who, p_why,
          p_old.known_from, greatest(now(), p_old.known_from), p_old.words,
          to_jsonb(p_old) - array['tenant', 'id', 'doc', 'version', 'content', 'status', 'words',
                                  'terms', 'enriched_version', 'short', 'known_from']
          || jsonb_build_object('tags', array(
               select t.tag from memory_tag t
               where t.tenant = p_tenant and t.memory = p_old.id order by t.tag)));
end;

-- Removes the words of a memory from the postings; `p_words` as they were posted.
create function drop_words(p_tenant int, p_doc bigint, p_words tsvector) returns void
language sql volatile
begin atomic
  delete from posting p where p.tenant = p_tenant and p.doc = p_doc
    and p.term = any (array(select term_no(w.lexeme) from unnest(p_words) w));
end;

-- What makes a memory findable; a forgotten one has none of it. Its edges end.
create function drop_derived(p_tenant int, p_old memory) returns void
language plpgsql as $$
begin
  perform drop_words(p_tenant, p_old.doc, p_old.words);
  delete from vec_bge_small_en_v1_5 v using chunk c
  where v.tenant = p_tenant and c.tenant = p_tenant and c.memory = p_old.id and v.chunk = c.no;
  delete from chunk c where c.tenant = p_tenant and c.memory = p_old.id;
  update edge e set known_to = now()
  where e.tenant = p_tenant and p_old.id in (e.src, e.dst) and e.known_to is null;
  update stale_mark s set cleared = now()
  where s.tenant = p_tenant and s.memory = p_old.id and s.cleared is null;
end $$;

-- Changes a memory. `p_change`: columns by name (bytea as text), and `tags`, and `index_text` where
-- its words change. Answers {version, events, changed}; or {problem: not_found|forbidden|made|moved|
-- twin, ...}, with which nothing was written: moved names the version that stands, twin the active
-- memory that has the content or key already.
create function memory_change(p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[],
                              p_writes text[], p_expected int, p_change jsonb, p_who text,
                              p_why text, p_name text, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_new memory;
  v_words tsvector;
  v_tags text[];
  v_twin uuid;
  v_event uuid := gen_random_uuid();
  v_again uuid;
  v_derives boolean;
begin
  perform enter(p_tenant);
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status <> 'deleted'
    and covers(p_reads, m.scope)
  for update;
  if not found then return jsonb_build_object('problem', 'not_found'); end if;
  if not covers(p_writes, v_old.scope) then
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
  v_derives := v_new.status <> 'deleted'
    and (v_new.content <> v_old.content or v_new.status <> v_old.status);
  perform keep_version(p_tenant, v_old, p_who, p_why);
  begin
    update memory m
    set kind = v_new.kind, tier = v_new.tier, status = v_new.status, key = v_new.key,
        content = v_new.content, summary = v_new.summary, hash = v_new.hash, words = v_words,
        terms = case when v_new.status = 'deleted' then 0 else word_count(v_words) end,
        confidence = v_new.confidence, pinned = v_new.pinned, git = v_new.git,
        metadata = v_new.metadata, valid_from = v_new.valid_from, valid_to = v_new.valid_to,
        superseded_by = v_new.superseded_by,
        version = m.version + 1, known_from = now(), updated = now(),
        enriched_version = case when m.enriched_version = m.version and not v_derives
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
    perform drop_derived(p_tenant, v_old);
  elsif v_words <> v_old.words then
    perform drop_words(p_tenant, v_old.doc, v_old.words);
    perform index_words(p_tenant, v_old.doc, v_words, word_count(v_words));
  end if;
  if p_change ? 'tags' then
    delete from memory_tag t where t.tenant = p_tenant and t.memory = p_memory;
    perform add_details(p_tenant, p_memory, jsonb_build_object('tags', p_change -> 'tags'));
  end if;
  perform announce(p_tenant, v_event, 'memory.' || p_tenant_name || '.' || p_name,
                   jsonb_build_object('id', p_memory, 'version', v_old.version + 1), p_headers);
  if v_derives then
    v_again := gen_random_uuid();
    perform announce(p_tenant, v_again, 'memory.' || p_tenant_name || '.remembered',
                     jsonb_build_object('id', p_memory, 'version', v_old.version + 1), p_headers);
  end if;
  return jsonb_build_object(
    'version', v_old.version + 1, 'changed', true,
    'events', jsonb_strip_nulls(jsonb_build_object(p_name, v_event, 'remembered', v_again)));
end $$;

-- All that was known at a moment, in the shape of memory_shown but for what has no past: staleness.
create function memory_then(p_tenant int, p_at timestamptz)
returns table (
  tenant int, id uuid, doc bigint, scope text, kind text, tier text, status text, key text,
  version int, content text, summary text, hash bytea, confidence real, pinned boolean,
  session uuid, agent text, source text, git jsonb, metadata jsonb, valid_from timestamptz,
  valid_to timestamptz, superseded_by uuid, created timestamptz, updated timestamptz,
  enriched boolean, tags text[], turns uuid[], staleness real, stale_grade text, stale_reason text,
  words tsvector)
language sql stable
begin atomic
  select k.tenant, k.id, k.doc, k.scope, k.kind, k.tier, k.status, k.key, k.version, k.content,
         k.summary, k.hash, k.confidence, k.pinned, k.session, k.agent, k.source, k.git,
         k.metadata, k.valid_from, k.valid_to, k.superseded_by, k.created, k.updated, true, k.tags,
         array(select t.turn from memory_turn t
               where t.tenant = p_tenant and t.memory = k.id order by t.turn),
         0::real, null::text, null::text, k.words
  from (
    select m.tenant, m.id, m.doc, m.scope, m.kind, m.tier, m.status, m.key, m.version, m.content,
           m.summary, m.hash, m.confidence, m.pinned, m.session, m.agent, m.source, m.git,
           m.metadata, m.valid_from, m.valid_to, m.superseded_by, m.created, m.updated,
           array(select t.tag from memory_tag t
                 where t.tenant = p_tenant and t.memory = m.id order by t.tag) as tags, m.words
    from memory m
    where m.tenant = p_tenant and m.known_from <= p_at and m.created <= p_at
    union all
    select m.tenant, m.id, m.doc, coalesce(v.state ->> 'scope', m.scope),
           coalesce(v.state ->> 'kind', m.kind), coalesce(v.state ->> 'tier', m.tier), v.status,
           case when v.state ? 'key' then v.state ->> 'key' else m.key end, v.version, v.content,
           v.state ->> 'summary', coalesce((v.state ->> 'hash')::bytea, m.hash),
           coalesce((v.state ->> 'confidence')::real, m.confidence),
           coalesce((v.state ->> 'pinned')::boolean, false), m.session, m.agent, m.source,
           v.state -> 'git', coalesce(v.state -> 'metadata', '{}'),
           (v.state ->> 'valid_from')::timestamptz, (v.state ->> 'valid_to')::timestamptz,
           (v.state ->> 'superseded_by')::uuid, m.created, v.known_from,
           array(select jsonb_array_elements_text(coalesce(v.state -> 'tags', '[]'))), v.words
    from memory_version v join memory m on m.tenant = p_tenant and m.id = v.memory
    where v.tenant = p_tenant and v.known_from <= p_at and p_at < v.known_to
  ) k;
end;

-- `remember` and `know_again` keep whole versions. A soft supersede, for a minor correction, leaves the
-- new entry as sure and as pinned as the old one; `v_soft` matters only where one stood.
create or replace function know_again(p_tenant int, p_tenant_name text, p_old memory, p_item jsonb,
                           p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_placed boolean := p_old.git is null and p_item -> 'git' is not null;
  v_version int := p_old.version + v_placed::int;
begin
  if v_placed then
    perform keep_version(p_tenant, p_old, p_item ->> 'agent', 'its place in git became known');
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
      perform keep_version(p_tenant, v_old, p_item ->> 'agent', v_reason);
      update memory m
      set status = 'superseded', superseded_by = v_id, version = m.version + 1,
          enriched_version = case when m.enriched_version = m.version then m.version + 1
                                  else m.enriched_version end,
          valid_to = coalesce(m.valid_to, now()), updated = now(), known_from = now()
      where m.tenant = p_tenant and m.id = v_old.id;
    end if;
    insert into memory (tenant, id, scope, kind, tier, key, content, summary, hash, words, terms,
                        confidence, pinned, session, agent, source, git, metadata,
                        valid_from, valid_to)
    values (p_tenant, v_id, v_scope, p_item ->> 'kind', p_item ->> 'tier', v_key,
            p_item ->> 'content', p_item ->> 'summary', v_hash, v_words, v_len,
            case when v_soft then greatest((p_item ->> 'confidence')::real, v_old.confidence)
                 else (p_item ->> 'confidence')::real end,
            (p_item ->> 'pinned')::boolean or coalesce(v_soft and v_old.pinned, false),
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
