-- What was known of tasks, merges and the archive at a moment; what a write replaced is told with it.

-- Keeps a memory as it is before a change. `state` holds the columns by name, its tags,
-- and of a task where it stood.
create or replace function keep_version(p_tenant int, p_old memory, p_who text, p_why text) returns void
language sql volatile
begin atomic
  insert into memory_version (tenant, memory, version, content, status, who, why, known_from,
                              known_to, words, state)
  values (p_tenant, p_old.id, p_old.version, p_old.content, p_old.status, p_who, p_why,
          p_old.known_from, greatest(now(), p_old.known_from), p_old.words,
          to_jsonb(p_old) - array['tenant', 'id', 'doc', 'version', 'content', 'status', 'words',
                                  'terms', 'enriched_version', 'carried', 'short', 'known_from']
          || jsonb_build_object('tags', array(
               select t.tag from memory_tag t
               where t.tenant = p_tenant and t.memory = p_old.id order by t.tag))
          || coalesce((select jsonb_build_object('task', jsonb_build_object(
               'state', k.state, 'claimed_by', k.claimed_by, 'claimed_until', k.claimed_until))
               from task k where k.tenant = p_tenant and k.memory = p_old.id), '{}'));
end;

-- Claims (p_seconds given), releases (p_state null) or moves a task. Answers {version, event?}, with
-- no event where nothing but the time of a claim changed; or {problem: not_found|forbidden|no_task|
-- closed|held|waits|blocked|done, ...}, with which nothing was written.
create or replace function task_move(p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[],
                          p_writes text[], p_agent text, p_state text, p_seconds float8,
                          p_who text, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_memory memory;
  v_task task;
  v_holder text;
  v_state text;
  v_waits uuid[];
  v_until timestamptz := clock_timestamp() + make_interval(secs => p_seconds);
  v_event uuid := gen_random_uuid();
begin
  perform enter(p_tenant);
  select m.* into v_memory from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status <> 'deleted'
    and covers(p_reads, m.scope)
  for update;
  if not found then return jsonb_build_object('problem', 'not_found'); end if;
  if not covers(p_writes, v_memory.scope) then
    return jsonb_build_object('problem', 'forbidden', 'scope', v_memory.scope);
  end if;
  if v_memory.kind <> 'task' then
    return jsonb_build_object('problem', 'no_task', 'kind', v_memory.kind);
  end if;
  if v_memory.status <> 'active' then
    return jsonb_build_object('problem', 'closed', 'status', v_memory.status);
  end if;
  insert into task (tenant, memory) values (p_tenant, p_memory) on conflict do nothing;
  select t.* into v_task from task t where t.tenant = p_tenant and t.memory = p_memory;
  v_holder := case when v_task.claimed_until > clock_timestamp() then v_task.claimed_by end;
  if v_holder <> p_agent then
    return jsonb_build_object('problem', 'held', 'by', v_holder, 'until', v_task.claimed_until);
  end if;
  v_state := case when p_seconds is not null then 'doing'
                  when p_state is not null then p_state
                  when v_task.state = 'doing' then 'todo'
                  else v_task.state end;
  if p_seconds is not null and v_task.state in ('blocked', 'done') then
    return jsonb_build_object('problem', v_task.state);
  end if;
  if v_state in ('doing', 'done') and (p_seconds is not null or v_state <> v_task.state) then
    select array_agg(u.id) filter (where covers(p_reads, u.scope)) into v_waits
    from task_undone(p_tenant, p_memory) u having count(*) > 0;
    if found then
      return jsonb_build_object('problem', 'waits', 'for', coalesce(to_jsonb(v_waits), '[]'));
    end if;
  end if;
  if p_seconds is null and v_state = v_task.state and (v_state = 'doing' or v_task.claimed_by is null)
  then
    return jsonb_build_object('version', v_memory.version);
  end if;
  if p_seconds is null or v_holder is null then
    perform keep_version(p_tenant, v_memory, p_who, format(
      'task: %s to %s', v_task.state,
      case when p_seconds is null then v_state else v_state || ', claimed by ' || p_agent end));
  end if;
  update task t
  set state = v_state, updated = now(),
      claimed_by = case when p_seconds is not null then p_agent
                        when v_state = 'doing' then t.claimed_by end,
      claimed_until = case when p_seconds is not null and v_holder is not null
                             then greatest(t.claimed_until, v_until)
                           when p_seconds is not null then v_until
                           when v_state = 'doing' then t.claimed_until end
  where t.tenant = p_tenant and t.memory = p_memory;
  if p_seconds is not null and v_holder is not null then
    return jsonb_build_object('version', v_memory.version);
  end if;
  update memory m
  set version = m.version + 1, known_from = now(), updated = now(),
      enriched_version = case when m.enriched_version = m.version then m.version + 1
                              else m.enriched_version end
  where m.tenant = p_tenant and m.id = p_memory;
  perform announce(p_tenant, v_event, 'memory.' || p_tenant_name || '.task',
                   jsonb_build_object('id', p_memory, 'version', v_memory.version + 1), p_headers);
  return jsonb_build_object('version', v_memory.version + 1, 'event', v_event);
end $$;

-- All that was known at a moment, in the shape of memory_shown but for what has no past: staleness.
drop function memory_then(int, timestamptz);
create function memory_then(p_tenant int, p_at timestamptz)
returns table (
  tenant int, id uuid, doc bigint, scope text, kind text, tier text, status text, key text,
  version int, content text, summary text, hash bytea, confidence real, pinned boolean,
  session uuid, agent text, source text, git jsonb, metadata jsonb, valid_from timestamptz,
  valid_to timestamptz, superseded_by uuid, created timestamptz, updated timestamptz,
  enriched boolean, tags text[], turns uuid[], staleness real, stale_grade text, stale_reason text,
  words tsvector, merged_into uuid, confirmed timestamptz)
language sql stable
begin atomic
  select k.tenant, k.id, k.doc, k.scope, k.kind, k.tier, k.status, k.key, k.version, k.content,
         k.summary, k.hash, k.confidence, k.pinned, k.session, k.agent, k.source, k.git,
         k.metadata, k.valid_from, k.valid_to, k.superseded_by, k.created, k.updated, true, k.tags,
         array(select t.turn from memory_turn t
               where t.tenant = p_tenant and t.memory = k.id order by t.turn),
         0::real, null::text, null::text, k.words, k.merged_into, k.confirmed
  from (
    select m.tenant, m.id, m.doc, m.scope, m.kind, m.tier, m.status, m.key, m.version, m.content,
           m.summary, m.hash, m.confidence, m.pinned, m.session, m.agent, m.source, m.git,
           m.metadata, m.valid_from, m.valid_to, m.superseded_by, m.created, m.updated,
           array(select t.tag from memory_tag t
                 where t.tenant = p_tenant and t.memory = m.id order by t.tag) as tags, m.words,
           m.merged_into, case when m.confirmed <= p_at then m.confirmed end as confirmed
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
           array(select jsonb_array_elements_text(coalesce(v.state -> 'tags', '[]'))), v.words,
           (v.state ->> 'merged_into')::uuid, (v.state ->> 'confirmed')::timestamptz
    from memory_version v join memory m on m.tenant = p_tenant and m.id = v.memory
    where v.tenant = p_tenant and v.known_from <= p_at and p_at < v.known_to
  ) k;
end;

-- Where a memory had gone at a moment, over as many merges as there were; itself where it had not.
create function merged_then(p_tenant int, p_memory uuid, p_at timestamptz) returns uuid
language sql stable
begin atomic
  with recursive gone (id, hops) as (
    select p_memory, 0
    union all
    select k.merged_into, g.hops + 1
    from gone g join memory_then(p_tenant, p_at) k on k.id = g.id
    where k.merged_into is not null and g.hops < 1000
  )
  select g.id from gone g order by g.hops desc limit 1;
end;

-- A task as its row stood at a moment: before its first move it was to do.
create function task_known(p_tenant int, p_memory uuid, p_at timestamptz)
returns table (id uuid, scope text, status text, successor uuid, state text, claimed_by text,
               claimed_until timestamptz)
language sql stable
begin atomic
  select m.id, m.scope, m.status, m.superseded_by, coalesce(t.state, 'todo'), t.claimed_by,
         t.claimed_until
  from memory m left join task t on t.tenant = p_tenant and t.memory = m.id
  where m.tenant = p_tenant and m.id = p_memory and m.kind = 'task'
    and m.known_from <= p_at and m.created <= p_at
  union all
  select m.id, coalesce(v.state ->> 'scope', m.scope), v.status,
         (v.state ->> 'superseded_by')::uuid, coalesce(v.state -> 'task' ->> 'state', 'todo'),
         v.state -> 'task' ->> 'claimed_by', (v.state -> 'task' ->> 'claimed_until')::timestamptz
  from memory_version v join memory m on m.tenant = p_tenant and m.id = v.memory
  where v.tenant = p_tenant and v.memory = p_memory and v.known_from <= p_at and p_at < v.known_to
    and coalesce(v.state ->> 'kind', m.kind) = 'task';
end;

-- A task as it was shown at a moment (as task_shown), with what it waited for then.
create function task_then(p_tenant int, p_memory uuid, p_at timestamptz)
returns table (memory uuid, state text, claimed_by text, claimed_until timestamptz,
               waits_for uuid[], waits_in text[], claimable boolean)
language sql stable
begin atomic
  with recursive needed (id, scope, status, next, state) as (
    select k.id, k.scope, k.status, k.successor, k.state
    from edge e cross join lateral task_known(p_tenant, e.dst, p_at) k
    where e.tenant = p_tenant and e.src = p_memory and e.kind = 'depends_on'
      and e.known_from <= p_at and p_at < coalesce(e.known_to, 'infinity')
    union
    select k.id, k.scope, k.status, k.successor, k.state
    from needed n cross join lateral task_known(p_tenant, n.next, p_at) k
    where n.status = 'superseded'
  ), waited as (
    select coalesce(array_agg(n.id order by n.id), '{}') as ids,
           coalesce(array_agg(n.scope order by n.id), '{}') as scopes
    from needed n
    where n.status in ('active', 'archived') and n.id <> p_memory and n.state <> 'done'
  ), shown as (
    select k.id, k.status, w.ids, w.scopes,
           k.claimed_until > p_at as held, k.claimed_by, k.claimed_until,
           case when k.state = 'done' then 'done'
                when k.state = 'blocked' or w.ids <> '{}' then 'blocked'
                when k.claimed_until <= p_at then 'todo'
                else k.state end as state
    from task_known(p_tenant, p_memory, p_at) k cross join waited w
  )
  select s.id, s.state, case when s.held then s.claimed_by end,
         case when s.held then s.claimed_until end, s.ids, s.scopes,
         s.state in ('todo', 'doing') and s.held is not true and s.status = 'active'
  from shown s;
end;

-- What a write replaced is in its answer, so that the writer publishes both events.
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
  v_told jsonb;
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
    v_told := jsonb_build_object('id', v_old.id, 'version', v_old.version + 1,
                                 'event', gen_random_uuid());
    perform announce(p_tenant, (v_told ->> 'event')::uuid,
                     'memory.' || p_tenant_name || '.superseded', v_told - 'event', p_headers);
  end if;
  perform link_all(p_tenant, v_id, p_item);
  perform announce(p_tenant, (p_item ->> 'event')::uuid,
                   'memory.' || p_tenant_name || '.remembered',
                   jsonb_build_object('id', v_id, 'version', 1), p_headers);
  return jsonb_strip_nulls(jsonb_build_object(
    'id', v_id, 'version', 1, 'event', p_item ->> 'event', 'superseded', v_told,
    'outcome', case when v_old.id is null then 'created' else 'superseded' end));
end $$;

-- A memory that leaves the ranked ones, or comes back to them, leaves its edges open.
create function ranked_changed() returns trigger language plpgsql as $$
begin
  insert into edge_change (tenant, edge)
  select new.tenant, new.id where exists (
    select from edge e where e.tenant = new.tenant and e.src = new.id and e.known_to is null
      and e.kind not in ('touches', 'contradicts')
    union all
    select from edge e where e.tenant = new.tenant and e.dst = new.id and e.known_to is null
      and e.kind not in ('touches', 'contradicts'));
  return null;
end $$;
create trigger ranked_changed after update of status on memory for each row
  when ((old.status in ('active', 'superseded')) <> (new.status in ('active', 'superseded')))
  execute function ranked_changed();

-- Entities by name, in whatever scope; and what was committed, which is evidence for a convention.
create index memory_entity on memory (tenant, key) where kind = 'entity' and status = 'active';
create index memory_committed on memory (tenant, id)
  where git ->> 'commit' is not null or source = 'agent_file';
