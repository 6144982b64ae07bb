-- A dream's run: what its worker writes, from the start to the end of the job.

-- Opens the record of a run over the pending turns; false where the lease was lost.
create function dream_start(p_tenant int, p_scope text, p_epoch bigint, p_run uuid, p_worker text)
returns boolean
language plpgsql as $$
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return false; end if;
  update dream_run r set status = 'lost', ended = now()
  where r.tenant = p_tenant and r.scope = p_scope and r.status = 'running';
  insert into dream_run (tenant, id, scope, epoch, worker, reason, attempt, waiting)
  select p_tenant, p_run, p_scope, p_epoch, p_worker, d.reason, d.attempts,
         (select coalesce(sum(s.pending), 0) from session s
          where s.tenant = p_tenant and s.scope = p_scope and s.pending > 0)
  from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
  return true;
end $$;

-- Records that a worker has looked at sessions: what they hold is no longer fresh.
create function dream_poll(p_tenant int, p_scope text, p_epoch bigint, p_sessions uuid[])
returns boolean
language plpgsql as $$
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return false; end if;
  update session s
  set new_turns = 0, new_segments = 0, new_chars = 0, new_since = null
  where s.tenant = p_tenant and s.id = any(p_sessions) and s.scope = p_scope and s.new_turns > 0;
  return true;
end $$;

-- Adds two objects of numbers key by key.
create function sum_counts(p_one jsonb, p_two jsonb) returns jsonb
language sql immutable
return coalesce((
  select jsonb_object_agg(n.name, n.sum) from (
    select e.key as name, sum(e.value::numeric) as sum from (
      select * from jsonb_each_text(p_one) union all select * from jsonb_each_text(p_two)) e
    group by e.key) n), '{}');

-- Adds to the record of a run what its worker reports: decisions, language model use, duration of
-- stages.
create function add_run_record(
  p_tenant int, p_scope text, p_run uuid, p_session uuid, p_decisions jsonb, p_record jsonb
) returns void
language plpgsql as $$
declare
  v_first int;
begin
  select coalesce(max(d.no), 0) into v_first from dream_decision d
  where d.tenant = p_tenant and d.run = p_run;
  insert into dream_decision (tenant, run, no, scope, outcome, kind, memory, session, turns, reason)
  select p_tenant, p_run, v_first + d.nth, p_scope, d.item ->> 'outcome', d.item ->> 'kind',
         (d.item ->> 'memory')::uuid, p_session,
         array(select t::uuid from jsonb_array_elements_text(coalesce(d.item -> 'turns', '[]')) t),
         coalesce(d.item ->> 'reason', '')
  from jsonb_array_elements(p_decisions || coalesce(p_record -> 'decisions', '[]'))
       with ordinality d (item, nth);
  update dream_run r
  set llm_calls = r.llm_calls + coalesce((p_record ->> 'llm_calls')::int, 0),
      llm_tokens = r.llm_tokens + coalesce((p_record ->> 'llm_tokens')::bigint, 0),
      seconds = sum_counts(r.seconds, coalesce(p_record -> 'seconds', '{}')),
      outcomes = sum_counts(r.outcomes, n.outcomes), kinds = sum_counts(r.kinds, n.kinds),
      prompts = array(select distinct x from unnest(r.prompts || array(
        select jsonb_array_elements_text(coalesce(p_record -> 'prompts', '[]')))) x order by x),
      degraded = array(select distinct x from unnest(r.degraded || array(
        select jsonb_array_elements_text(coalesce(p_record -> 'degraded', '[]')))) x order by x)
  from (select coalesce(jsonb_object_agg(o.outcome, o.n), '{}') as outcomes
        from (select d.outcome, count(*) as n from dream_decision d
              where d.tenant = p_tenant and d.run = p_run and d.no > v_first
              group by d.outcome) o) n1,
       lateral (select n1.outcomes, coalesce(jsonb_object_agg(k.kind, k.n), '{}') as kinds
        from (select d.kind, count(*) as n from dream_decision d
              where d.tenant = p_tenant and d.run = p_run and d.no > v_first
                and d.kind is not null and d.outcome in ('created', 'superseded')
              group by d.kind) k) n
  where r.tenant = p_tenant and r.id = p_run;
end $$;

-- Adds to the record of a run beside a commit; false where the lease was lost.
create function dream_record(p_tenant int, p_scope text, p_epoch bigint, p_run uuid, p_record jsonb)
returns boolean
language plpgsql as $$
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return false; end if;
  perform add_run_record(p_tenant, p_scope, p_run, null, '[]', p_record);
  return true;
end $$;

-- The progress of a run, as the event stream shows it.
create function dream_progress(p_tenant int, p_run uuid) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object('run', r.id, 'scope', r.scope, 'status', r.status, 'turns', r.turns,
                            'waiting', r.waiting, 'created', r.created,
                            'reinforced', r.reinforced, 'superseded', r.superseded)
  from dream_run r where r.tenant = p_tenant and r.id = p_run;
end;

-- The active memory that says the same and names all these turns: the item was dreamt before.
create function find_dreamt_memory(p_tenant int, p_item jsonb) returns uuid
language sql stable
begin atomic
  select m.id from memory m
  where m.tenant = p_tenant and m.scope = p_item ->> 'scope' and m.status = 'active'
    and m.hash = decode(p_item ->> 'hash', 'hex')
    and coalesce(m.key, '') = coalesce(p_item ->> 'key', '')
    and jsonb_array_length(coalesce(p_item -> 'turns', '[]')) > 0
    and not exists (
      select from jsonb_array_elements_text(p_item -> 'turns') t
      where not exists (select from memory_turn u where u.tenant = p_tenant and u.memory = m.id
                          and u.turn = t::uuid))
  limit 1;
end;

-- Whether all turns that an item cites belong to the session, and the session to the scope.
create function cites_only_session(p_tenant int, p_scope text, p_session uuid, p_item jsonb) returns boolean
language sql stable
return jsonb_array_length(coalesce(p_item -> 'turns', '[]')) > 0 and not exists (
  select from jsonb_array_elements_text(p_item -> 'turns') c
  where not exists (
    select from turn t join session s on s.tenant = p_tenant and s.id = t.session
    where t.tenant = p_tenant and t.id = c::uuid and s.id = p_session and s.scope = p_scope));

-- Updates the one memory of a session in place, when the session went on.
create function rewrite_session_memory(
  p_tenant int, p_tenant_name text, p_old memory, p_item jsonb, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_words tsvector := to_tsvector('english', p_item ->> 'words');
begin
  perform save_version(p_tenant, p_old, p_item ->> 'actor', p_item ->> 'reason');
  perform unindex_words(p_tenant, p_old.doc, p_old.words);
  perform index_words(p_tenant, p_old.doc, v_words, word_count(v_words));
  update memory m
  set content = p_item ->> 'content', hash = decode(p_item ->> 'hash', 'hex'), words = v_words,
      terms = word_count(v_words), summary = coalesce(p_item ->> 'summary', m.summary),
      git = coalesce(p_item -> 'git', m.git), version = m.version + 1
  where m.tenant = p_tenant and m.id = p_old.id;
  delete from memory_tag t where t.tenant = p_tenant and t.memory = p_old.id;
  perform add_memory_details(p_tenant, p_old.id, p_item);
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'remembered', p_old.id, p_old.version + 1,
                               p_headers, (p_item ->> 'event')::uuid);
  return jsonb_build_object('id', p_old.id, 'outcome', 'rewritten', 'version', p_old.version + 1,
                            'event', p_item -> 'event', 'reason', p_item ->> 'reason');
end $$;

-- Writes one item of a digest. `like` is the existing memory that it resembles: {id, version,
-- verdict, reason}. `same` reinforces that memory, `refined` supersedes it, `contradicting` links it
-- and lowers its confidence; where it has changed since, the item is new. Returns what remember_item()
-- does, or {problem: beyond} for an item of a scope that is neither p_scope nor one of the session's
-- own, or with turns of another session, and
-- {problem: forgotten} for the memory of a session whose memory was forgotten.
create function dream_write_item(
  p_tenant int, p_tenant_name text, p_scope text, p_session uuid, p_item jsonb, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_match jsonb := p_item -> 'like';
  v_old memory;
  v_result jsonb;
  v_pair jsonb;
begin
  if not cites_only_session(p_tenant, p_scope, p_session, p_item)
     or p_item ->> 'scope' <> p_scope and not exists (
       select from session s where s.tenant = p_tenant and s.id = p_session
         and p_item ->> 'scope' = any(s.own_scopes)) then
    return jsonb_build_object('problem', 'beyond');
  end if;
  if p_item ->> 'key' = 'session:' || p_session then
    select m.* into v_old from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = p_item ->> 'key'
      and m.status = 'active' for update;
    if found and v_old.hash <> decode(p_item ->> 'hash', 'hex') then
      return rewrite_session_memory(p_tenant, p_tenant_name, v_old, p_item, p_headers);
    end if;
    -- It would quote again what was forgotten.
    if v_old.id is null and exists (
      select from memory m
      where m.tenant = p_tenant and m.scope = p_scope and m.key = p_item ->> 'key'
        and m.status = 'deleted') then
      return jsonb_build_object('problem', 'forgotten');
    end if;
    return remember_item(p_tenant, p_tenant_name, p_item, p_headers);
  end if;
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = (v_match ->> 'id')::uuid and m.scope = p_scope
    and m.version = (v_match ->> 'version')::int and m.status = 'active' for update;
  if v_old.id is null then
    return remember_item(p_tenant, p_tenant_name, p_item, p_headers);
  end if;
  if v_match ->> 'verdict' = 'same' then
    return reinforce_memory(p_tenant, p_tenant_name, v_old, p_item, p_headers)
           || jsonb_build_object('reason', v_match ->> 'reason');
  end if;
  v_result := remember_item(
    p_tenant, p_tenant_name,
    p_item || case when v_match ->> 'verdict' = 'refined' and not v_old.pinned and v_old.key is null
                   then jsonb_build_object('replaces', v_old.id) else '{}' end, p_headers);
  if v_result ? 'problem' or v_result ->> 'outcome' <> 'created' then
    return v_result;
  end if;
  if v_match ->> 'verdict' = 'refined' and not v_old.pinned and v_old.key is null then
    perform supersede(p_tenant, v_old, (v_result ->> 'id')::uuid, p_item ->> 'actor', v_match ->> 'reason');
    perform announce_superseded(p_tenant, p_tenant_name, v_old, (v_result ->> 'id')::uuid,
                                v_match ->> 'reason', false, p_headers);
    return v_result || jsonb_build_object('outcome', 'superseded', 'reason', v_match ->> 'reason');
  end if;
  v_pair := jsonb_build_object('older', v_old.id, 'older_version', v_old.version,
                               'newer', v_result ->> 'id', 'newer_version', 1);
  if v_match ->> 'verdict' = 'contradicting' and not contradict_memories(
       p_tenant, p_tenant_name, v_pair, v_match ->> 'reason', p_headers) ? 'problem' then
    return v_result || jsonb_build_object('outcome', 'contradicting', 'reason', v_match ->> 'reason');
  end if;
  return v_result;
end $$;

-- Links what a session taught to the memory of the session: the results of the digest, and what its
-- agent remembered in it.
create function link_session_memories(p_tenant int, p_scope text, p_session uuid, p_results jsonb) returns void
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

-- Writes the memories of one session's turns and marks the turns as digested. Returns the outcomes
-- of the items, or null where the lease was lost.
create function dream_commit(
  p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint, p_run uuid, p_session uuid,
  p_items jsonb, p_turns uuid[], p_headers jsonb, p_record jsonb
) returns jsonb
language plpgsql as $$
declare
  v_item jsonb;
  v_result jsonb;
  v_existing uuid;
  v_results jsonb := '[]';
  v_decisions jsonb := '[]';
  v_turns int;
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return null; end if;
  perform lock_identities(p_tenant, p_items);
  for v_item in select * from jsonb_array_elements(p_items) loop
    v_existing := find_dreamt_memory(p_tenant, v_item);
    v_result := case when v_existing is null
      then dream_write_item(p_tenant, p_tenant_name, p_scope, p_session, v_item, p_headers)
      else jsonb_build_object('outcome', 'known', 'id', v_existing) end;
    v_results := v_results || v_result;
    v_decisions := v_decisions || jsonb_build_object(
      'outcome', coalesce(v_result ->> 'outcome', 'refused'), 'kind', v_item ->> 'kind',
      'memory', v_result ->> 'id', 'turns', coalesce(v_item -> 'turns', '[]'),
      'reason', coalesce(v_result ->> 'problem', v_result ->> 'reason', v_item ->> 'decision_reason', v_item ->> 'reason', ''));
  end loop;
  perform link_session_memories(p_tenant, p_scope, p_session, v_results);
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
  perform add_run_record(p_tenant, p_scope, p_run, p_session, v_decisions, p_record);
  update dream_run r
  set turns = r.turns + coalesce(v_turns, 0),
      waiting = greatest(r.waiting, r.turns + coalesce(v_turns, 0)),
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

-- Ends the record of a run, and publishes it. Returns its progress ({} where it has no record), or
-- null where the lease was lost.
create function close_dream_run(
  p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint, p_run uuid, p_status text,
  p_error text, p_event uuid, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_progress jsonb;
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return null; end if;
  update dream_run r
  set status = p_status, ended = now(), error = p_error,
      waiting = case p_status when 'done' then r.turns else r.waiting end
  where r.tenant = p_tenant and r.id = p_run;
  v_progress := dream_progress(p_tenant, p_run);
  if v_progress is null then return '{}'; end if;
  perform enqueue_event(p_tenant, p_event, 'memory.' || p_tenant_name || '.digested', v_progress,
                        p_headers);
  return v_progress;
end $$;

-- Ends a run with its event. The job is due again where that was requested in the meantime or
-- enough turns came. Returns {state, told}: done, again or lost, and the event.
create function dream_finish(
  p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint, p_run uuid, p_event uuid,
  p_subject text, p_headers jsonb, p_progress_event uuid, p_limits jsonb
) returns jsonb
language plpgsql as $$
declare
  v_reason text;
  v_progress jsonb := close_dream_run(p_tenant, p_tenant_name, p_scope, p_epoch, p_run, 'done', null,
                                      p_progress_event, p_headers);
begin
  if v_progress is null then return jsonb_build_object('state', 'lost'); end if;
  select case when d.again then d.reason else dream_threshold(p_tenant, p_scope, p_limits) end
  into v_reason from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
  if v_reason is null then
    delete from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
    return jsonb_build_object('state', 'done', 'progress', v_progress);
  end if;
  update dream_job d
  set again = false, lease_until = null, epoch = 0, attempts = 0, due = clock_timestamp(),
      requested = clock_timestamp(), reason = v_reason
  where d.tenant = p_tenant and d.scope = p_scope;
  perform enqueue_event(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return jsonb_build_object('state', 'again', 'progress', v_progress);
end $$;

-- Gives a failed job back after a pause, or parks it after the last attempt, with a dead letter
-- {id, subject, headers}. Without p_max_attempts it is not counted as an attempt, because something
-- it needed was unavailable. Returns {state, told}.
create function dream_fail(
  p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint, p_run uuid, p_error text,
  p_max_attempts int, p_pause interval, p_dead_letter jsonb, p_progress_event uuid
) returns jsonb
language plpgsql as $$
declare
  v_parked text;
  v_progress jsonb := close_dream_run(p_tenant, p_tenant_name, p_scope, p_epoch, p_run, 'failed',
                                      p_error, p_progress_event, '{}');
begin
  if v_progress is null then return jsonb_build_object('state', 'lost'); end if;
  update dream_job d
  set lease_until = null, epoch = 0, due = clock_timestamp() + p_pause * power(2, d.attempts - 1),
      attempts = d.attempts - (p_max_attempts is null)::int,
      parked = case when d.attempts >= p_max_attempts then p_error end,
      parked_at = case when d.attempts >= p_max_attempts then clock_timestamp() end
  where d.tenant = p_tenant and d.scope = p_scope
  returning d.parked into v_parked;
  if v_parked is not null then
    perform enqueue_event(p_tenant, (p_dead_letter ->> 'id')::uuid, p_dead_letter ->> 'subject',
                          jsonb_build_object('scope', p_scope), p_dead_letter -> 'headers');
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'state', case when v_parked is null then 'retry' else 'parked' end,
    'progress', nullif(v_progress, '{}')));
end $$;

-- Gives an unfinished job back, because its worker was asked to stop; it is due at once.
create function dream_release(
  p_tenant int, p_scope text, p_epoch bigint, p_event uuid, p_subject text, p_headers jsonb
) returns boolean
language plpgsql as $$
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return false; end if;
  update dream_run r set status = 'lost', ended = now()
  where r.tenant = p_tenant and r.scope = p_scope and r.status = 'running';
  update dream_job d
  set lease_until = null, epoch = 0, attempts = greatest(d.attempts - 1, 0), due = clock_timestamp()
  where d.tenant = p_tenant and d.scope = p_scope;
  perform enqueue_event(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return true;
end $$;
