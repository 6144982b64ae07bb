-- Writing a memory: one call writes the memory, its words, tags, edges and event.

-- Saves a memory as it is before a change; the row must be locked. `state` holds the other columns
-- by name, the tags, and the state of a task. Its time ends now: the transaction may have begun long
-- before, and waited for the lock while other versions were made.
create function save_version(p_tenant int, p_old memory, p_actor text, p_why text,
                             p_at timestamptz default null)
returns void
language sql volatile
begin atomic
  insert into memory_version (tenant, memory, version, content, status, actor, reason, known_from,
                              known_to, words, state)
  values (p_tenant, p_old.id, p_old.version, p_old.content, p_old.status, p_actor, p_why,
          p_old.known_from, next_moment(p_at, p_old.known_from), p_old.words,
          to_jsonb(p_old) - array['tenant', 'id', 'doc', 'version', 'content', 'status', 'words',
                                  'terms', 'enriched_version', 'imported_version', 'short', 'known_from']
          || jsonb_build_object('tags', array(
               select t.tag from memory_tag t
               where t.tenant = p_tenant and t.memory = p_old.id order by t.tag))
          || coalesce((select jsonb_build_object('task', jsonb_build_object(
               'state', k.state, 'claimed_by', k.claimed_by, 'claimed_until', k.claimed_until))
               from task k where k.tenant = p_tenant and k.memory = p_old.id), '{}'));
end;

-- Lets one memory take the place of another; saves the version that it was.
create function supersede(p_tenant int, p_old memory, p_by uuid, p_actor text, p_why text,
                          p_at timestamptz default null)
returns void
language plpgsql as $$
begin
  perform save_version(p_tenant, p_old, p_actor, p_why, p_at);
  update memory m
  set status = 'superseded', superseded_by = p_by, version = m.version + 1,
      enriched_version = m.enriched_version + (m.enriched_version = m.version)::int,
      valid_to = coalesce(m.valid_to, clock_timestamp())
  where m.tenant = p_tenant and m.id = p_old.id;
end $$;

-- Links a memory that was superseded to the one that took its place, and writes its event. Returns
-- {id, version, event}.
create function announce_superseded(
  p_tenant int, p_tenant_name text, p_old memory, p_by uuid, p_why text, p_soft boolean, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_event uuid := gen_random_uuid();
begin
  insert into edge (tenant, id, src, kind, dst, meta)
  values (p_tenant, gen_random_uuid(), p_by, 'supersedes', p_old.id,
          jsonb_build_object('reason', p_why, 'soft', p_soft))
  on conflict do nothing;
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'superseded', p_old.id, p_old.version + 1,
                               p_headers, v_event);
  return jsonb_build_object('id', p_old.id, 'version', p_old.version + 1, 'event', v_event);
end $$;

-- Locks a memory for a change by a user, and reads it. `problem` is {problem:
-- not_found|forbidden|made, ...}, or null where the grants allow the change.
create function lock_for_change(
  p_tenant int, p_memory uuid, p_reads text[], p_writes text[], out memory memory, out problem jsonb
)
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  select m.* into memory from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status <> 'deleted'
    and scope_matches(p_reads, m.scope)
  for update;
  if not found then
    problem := jsonb_build_object('problem', 'not_found');
  elsif not scope_matches(p_writes, memory.scope) then
    problem := jsonb_build_object('problem', 'forbidden', 'scope', memory.scope);
  elsif memory.kind in ('file', 'entity') then
    problem := jsonb_build_object('problem', 'made');
  end if;
end $$;

-- Archives a memory, with its event; saves the version that it was.
create function archive_memory(p_tenant int, p_tenant_name text, p_old memory, p_actor text, p_why text,
                               p_headers jsonb)
returns void
language plpgsql as $$
begin
  perform save_version(p_tenant, p_old, p_actor, p_why);
  update memory m
  set status = 'archived', version = m.version + 1,
      enriched_version = m.enriched_version + (m.enriched_version = m.version)::int
  where m.tenant = p_tenant and m.id = p_old.id;
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'archived', p_old.id, p_old.version + 1,
                               p_headers);
end $$;

-- Lets one writer at a time write each identity (key or content) of a batch, in one order for all,
-- so that two batches wait for each other instead of deadlocking. There are 1,024 locks per tenant.
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

-- Whether an item has tags that a memory lacks.
create function has_new_tags(p_tenant int, p_memory uuid, p_item jsonb) returns boolean
language sql stable
return exists (
  select from jsonb_array_elements_text(coalesce(p_item -> 'tags', '[]')) t
  where not exists (select from memory_tag g
                    where g.tenant = p_tenant and g.memory = p_memory and g.tag = t));

-- Handles a memory that is stated again: it becomes surer and gains what it lacked, and existing
-- values win. What a reader can see of that makes a new version. After a git location that was
-- unknown it is enriched again, because its files have yet to be linked.
create function reinforce_memory(
  p_tenant int, p_tenant_name text, p_old memory, p_item jsonb, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_new memory := p_old;
  v_has_git boolean := p_old.git is null and p_item -> 'git' is not null;
  v_version int;
begin
  v_new.confidence := least(1, greatest(p_old.confidence, (p_item ->> 'confidence')::real) + 0.05);
  v_new.pinned := p_old.pinned or (p_item ->> 'pinned')::boolean;
  v_new.summary := coalesce(p_old.summary, p_item ->> 'summary');
  v_new.git := coalesce(p_old.git, p_item -> 'git');
  v_new.metadata := (p_item -> 'metadata') || p_old.metadata;
  v_version := p_old.version
    + (v_new is distinct from p_old or has_new_tags(p_tenant, p_old.id, p_item))::int;
  if v_version > p_old.version then
    perform save_version(p_tenant, p_old, p_item ->> 'actor', case
      when v_has_git then 'its place in git became known' else 'stated again' end);
  end if;
  update memory m
  set confidence = v_new.confidence, pinned = v_new.pinned, summary = v_new.summary,
      git = v_new.git, metadata = v_new.metadata, version = v_version,
      confirmed = clock_timestamp(),
      enriched_version = case when m.enriched_version = m.version and not v_has_git
                              then v_version else m.enriched_version end
  where m.tenant = p_tenant and m.id = p_old.id;
  perform add_memory_details(p_tenant, p_old.id, p_item);
  perform link_item_edges(p_tenant, p_old.id, p_item);
  if v_has_git then
    perform enqueue_memory_event(p_tenant, p_tenant_name, 'remembered', p_old.id, v_version,
                                 p_headers, (p_item ->> 'event')::uuid);
  elsif v_version > p_old.version then
    perform enqueue_memory_event(p_tenant, p_tenant_name, 'edited', p_old.id, v_version, p_headers);
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'id', p_old.id, 'outcome', 'duplicate', 'version', v_version,
    'event', case when v_has_git then p_item -> 'event' end));
end $$;

-- The largest number of active memories that a tenant may have, if it has that many; else null. The
-- service, the operator and the tenant may each set one, and the lowest counts.
create function full_at(p_tenant int) returns int
language sql stable
begin atomic
  select c.most from (
    select least(nullif(current_setting('reverie.tenant_memories', true), '')::int,
                 (t.limits ->> 'memories')::int,
                 (select (s.value ->> 'memories')::int from project_setting s
                  where s.tenant = p_tenant and s.project = '*' and s.name = 'limits')) as most
    from tenant t where t.id = p_tenant
  ) c
  where c.most <= (
    select count(*) from (
      select from memory m
      where m.tenant = p_tenant and m.status = 'active' and m.kind not in ('file', 'entity')
      limit c.most) held);
end;

-- Writes one validated item. Returns {id, outcome, version, event, superseded?}, or {problem:
-- conflict|missing_edge|cycle|full|busy, ...}, and then nothing was written. An item that `replaces`
-- another one is written also where the tenant is full.
create function remember_item(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb)
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
  v_now timestamptz;
  v_edge jsonb;
  v_superseded jsonb;
  v_limit int;
  v_soft boolean := coalesce((p_item ->> 'soft')::boolean, false);
begin
  perform set_tenant(p_tenant);
  for v_edge in select * from jsonb_array_elements(coalesce(p_item -> 'edges', '[]')) loop
    perform from memory m where m.tenant = p_tenant and m.id = (v_edge ->> 'to')::uuid
      and m.status <> 'deleted' and scope_matches(array(
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
      return reinforce_memory(p_tenant, p_tenant_name, v_old, p_item, p_headers);
    end if;
    if v_old.id is not null then
      if v_reason is null then
        return jsonb_build_object('problem', 'conflict', 'id', v_old.id);
      end if;
      v_now := next_moment(null, v_old.known_from);
      perform supersede(p_tenant, v_old, v_id, p_item ->> 'actor', v_reason, v_now);
    else
      v_limit := full_at(p_tenant);
      if v_limit is not null and not p_item ? 'replaces' then
        return jsonb_build_object('problem', 'full', 'limit', v_limit);
      end if;
      v_now := coalesce((p_item ->> 'at')::timestamptz, clock_timestamp());
    end if;
    insert into memory (tenant, id, scope, kind, tier, key, content, summary, hash, words, terms,
                        confidence, pinned, session, agent, actor, source, git, metadata,
                        valid_from, valid_to, created, updated, known_from)
    values (p_tenant, v_id, v_scope, p_item ->> 'kind', p_item ->> 'tier', v_key,
            p_item ->> 'content', p_item ->> 'summary', v_hash, v_words, v_len,
            case when v_soft then greatest((p_item ->> 'confidence')::real, v_old.confidence)
                 else (p_item ->> 'confidence')::real end,
            (p_item ->> 'pinned')::boolean or coalesce(v_soft and v_old.pinned, false),
            (p_item ->> 'session')::uuid, p_item ->> 'agent', p_item ->> 'actor',
            p_item ->> 'source', p_item -> 'git', p_item -> 'metadata',
            (p_item ->> 'valid_from')::timestamptz, (p_item ->> 'valid_to')::timestamptz,
            v_now, v_now, v_now)
    on conflict do nothing
    returning doc into v_doc;
    exit when v_doc is not null;
    if v_old.id is not null then
      -- Another writer won: roll back the supersede with the whole call; the caller retries.
      raise exception using errcode = 'serialization_failure', message = 'key raced';
    end if;
  end loop;
  if v_doc is null then
    return jsonb_build_object('problem', 'busy');
  end if;
  perform index_words(p_tenant, v_doc, v_words, v_len);
  perform add_memory_details(p_tenant, v_id, p_item);
  if v_old.id is not null then
    v_superseded := announce_superseded(p_tenant, p_tenant_name, v_old, v_id, v_reason, v_soft,
                                        p_headers);
  end if;
  perform link_item_edges(p_tenant, v_id, p_item);
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'remembered', v_id, 1, p_headers,
                               (p_item ->> 'event')::uuid);
  return jsonb_strip_nulls(jsonb_build_object(
    'id', v_id, 'version', 1, 'event', p_item ->> 'event', 'superseded', v_superseded,
    'outcome', case when v_old.id is null then 'created' else 'superseded' end));
end $$;

-- Writes items in order and returns each outcome. Raises RV002 where the secrets that the caller
-- redacted by have changed. Of an idempotent request (p_request), each p_place is written once. Its
-- plans are cached, because planning took half of the time; no cached plan may read a whole table.
create function remember(p_tenant int, p_tenant_name text, p_items jsonb, p_headers jsonb,
                             p_epoch bigint, p_request text, p_place text)
returns setof jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_item jsonb;
  v_results jsonb;
begin
  perform set_tenant(p_tenant);
  if p_request is not null then
    select i.effect -> p_place into v_results from idempotency i
    where i.tenant = p_tenant and i.key = p_request for update;
  end if;
  if v_results is null then
    if p_epoch <> vault_epoch_of(p_tenant) then
      raise exception using errcode = 'RV002', message = 'the secrets of the vault changed';
    end if;
    perform lock_identities(p_tenant, p_items);
    v_results := '[]';
    for v_item in select * from jsonb_array_elements(p_items) loop
      v_results := v_results || remember_item(p_tenant, p_tenant_name, v_item, p_headers);
    end loop;
    -- A request that changed nothing may be tried again.
    if p_request is not null and jsonb_path_exists(v_results, '$[*] ? (!exists(@.problem))') then
      update idempotency i
      set effect = coalesce(i.effect, '{}') || jsonb_build_object(p_place, v_results)
      where i.tenant = p_tenant and i.key = p_request;
    end if;
  end if;
  return query select * from jsonb_array_elements(v_results);
end $$;

-- Writes a verified claim, unless a later verification of it exists: {problem: later, id,
-- verified}. The same facts, however the claim is worded, count as a restatement of the existing
-- one.
create function fact_put(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb) returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_tag jsonb := p_item -> 'metadata' -> 'fact';
  v_item jsonb := p_item;
begin
  perform set_tenant(p_tenant);
  perform lock_identities(p_tenant, jsonb_build_array(p_item));
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.scope = p_item ->> 'scope' and m.key = p_item ->> 'key'
    and m.status = 'active';
  if v_old.metadata -> 'fact' ->> 'verified' > v_tag ->> 'verified' then
    return jsonb_build_object('problem', 'later', 'id', v_old.id,
                              'verified', v_old.metadata -> 'fact' ->> 'verified');
  end if;
  if jsonb_typeof(v_old.metadata -> 'fact') = 'object'
     and (v_old.metadata -> 'fact') - array['statement', 'topic'] = v_tag - array['statement', 'topic'] then
    v_item := v_item || jsonb_build_object('hash', encode(v_old.hash, 'hex'));
  end if;
  return remember_item(p_tenant, p_tenant_name, v_item, p_headers);
end $$;
