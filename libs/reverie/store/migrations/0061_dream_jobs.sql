-- Turns are counted as they come; a job says why it is there, and ends with an event or a dead letter.

-- Answers {accepted, duplicates, scope, pending, pending_chars, due} or {problem: not_found}; `due`
-- is why the scope should dream, null while it need not or a request is open.
drop function append_turns(int, uuid, jsonb);
create function append_turns(p_tenant int, p_session uuid, p_turns jsonb, p_limits jsonb)
returns jsonb
language plpgsql as $$
declare
  v_session session;
  v_accepted int;
  v_segments int;
  v_chars bigint;
  v_due text;
begin
  perform enter(p_tenant);
  select s.* into v_session from session s
  where s.tenant = p_tenant and s.id = p_session for update;
  if not found then
    return jsonb_build_object('problem', 'not_found');
  end if;
  with incoming as (
    select i.*, row_number() over (partition by i.external_id order by i.place) as copy
    from rows from (jsonb_to_recordset(p_turns) as (
      id uuid, role text, content text, words text, tool text, external_id text, at timestamptz))
      with ordinality as i (id, role, content, words, tool, external_id, at, place)
  ), fresh as (
    select i.*, to_tsvector('english', i.words) as lexemes,
           row_number() over (order by i.place) as nth
    from incoming i
    where i.external_id is null or (i.copy = 1 and not exists (
      select from turn t where t.tenant = p_tenant and t.session = p_session
        and t.external_id = i.external_id))
  ), stored as (
    insert into turn (tenant, id, session, ord, role, content, tool, external_id, at, terms)
    select p_tenant, f.id, p_session, v_session.turns + f.nth - 1, f.role, f.content, f.tool,
           f.external_id, coalesce(f.at, clock_timestamp()), word_count(f.lexemes)
    from fresh f
    returning id, doc, terms, role, length(content) as chars
  ), posted as (
    insert into turn_posting (tenant, term, doc, tf, len)
    select p_tenant, term_no(w.lexeme), s.doc, least(cardinality(w.positions), 32767), s.terms
    from stored s join fresh f using (id) cross join lateral unnest(f.lexemes) w
    on conflict do nothing
  )
  select count(*), count(*) filter (where role = 'user'), coalesce(sum(chars), 0)
  into v_accepted, v_segments, v_chars from stored;
  if v_accepted > 0 then
    update session s
    set turns = s.turns + v_accepted, pending = s.pending + v_accepted,
        pending_segments = s.pending_segments + v_segments,
        pending_chars = s.pending_chars + v_chars, appended = clock_timestamp(),
        fresh_turns = s.fresh_turns + v_accepted, fresh_segments = s.fresh_segments + v_segments,
        fresh_chars = s.fresh_chars + v_chars,
        fresh_since = coalesce(s.fresh_since, clock_timestamp())
    where s.tenant = p_tenant and s.id = p_session;
    if not exists (select from dream_job d where d.tenant = p_tenant and d.scope = v_session.scope
                     and d.parked is null and (d.lease_until is null or d.again)) then
      v_due := dream_threshold(p_tenant, v_session.scope, p_limits);
    end if;
  end if;
  return jsonb_build_object(
    'accepted', v_accepted,
    'duplicates', jsonb_array_length(p_turns) - v_accepted,
    'scope', v_session.scope,
    'pending', v_session.pending + v_accepted,
    'pending_chars', v_session.pending_chars + v_chars,
    'due', v_due);
end $$;

-- One job a scope: a request while a worker has it is kept in `again`, also of a worker whose lease
-- ran out, for it may still end its run. A parked job wakes. `p_settled`: sessions that were silent
-- for so long have no open topic.
drop function dream_request(int, text, text, uuid, text, jsonb);
create function dream_request(p_tenant int, p_scope text, p_reason text, p_settled interval,
                              p_event uuid, p_subject text, p_headers jsonb)
returns text
language plpgsql as $$
declare
  v_running boolean;
begin
  perform enter(p_tenant);
  insert into dream_job as d (tenant, scope, reason, settled_before)
  values (p_tenant, p_scope, p_reason, clock_timestamp() - p_settled)
  on conflict (tenant, scope) do update
    set again = d.again or d.lease_until is not null,
        attempts = case when d.parked is null then d.attempts else 0 end,
        parked = null, parked_at = null, due = least(d.due, clock_timestamp()),
        asked = case when d.parked is null then d.asked else clock_timestamp() end,
        settled_before = greatest(d.settled_before, excluded.settled_before),
        reason = excluded.reason
  returning coalesce(lease_until >= clock_timestamp(), false) into v_running;
  perform announce(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return case when v_running then 'running' else 'queued' end;
end $$;

-- What a watcher of events is told of a run.
create function dream_told(p_tenant int, p_run uuid) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object('run', r.id, 'scope', r.scope, 'status', r.status, 'turns', r.turns,
                            'waiting', r.waiting, 'created', r.created,
                            'reinforced', r.reinforced, 'superseded', r.superseded)
  from dream_run r where r.tenant = p_tenant and r.id = p_run;
end;

-- Ends a run and says so. `again`: asked for meanwhile, or so much came that it is due at once; a
-- ticket goes out. Answers {state, told}.
drop function dream_finish(int, text, text, bigint, uuid, uuid, text, jsonb);
create function dream_finish(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                             p_run uuid, p_event uuid, p_subject text, p_headers jsonb,
                             p_told uuid, p_limits jsonb)
returns jsonb
language plpgsql as $$
declare
  v_why text;
  v_told jsonb;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then
    return jsonb_build_object('state', 'lost');
  end if;
  update dream_run r set status = 'done', ended = now(), waiting = r.turns
  where r.tenant = p_tenant and r.id = p_run;
  v_told := dream_told(p_tenant, p_run);
  perform announce(p_tenant, p_told, 'memory.' || p_tenant_name || '.digested', v_told, p_headers);
  select case when d.again then d.reason else dream_threshold(p_tenant, p_scope, p_limits) end
  into v_why from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
  if v_why is null then
    delete from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
    return jsonb_build_object('state', 'done', 'told', v_told);
  end if;
  update dream_job d
  set again = false, lease_until = null, epoch = 0, attempts = 0, due = clock_timestamp(),
      asked = clock_timestamp(), reason = v_why
  where d.tenant = p_tenant and d.scope = p_scope;
  perform announce(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return jsonb_build_object('state', 'again', 'told', v_told);
end $$;

-- Gives a failed job back after a pause, or parks it after the last attempt and leaves a dead letter
-- {id, subject, body, headers}. Answers {state, told}.
drop function dream_fail(int, text, bigint, uuid, text, int, interval);
create function dream_fail(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                           p_run uuid, p_error text, p_max_attempts int, p_pause interval,
                           p_letter jsonb, p_told uuid)
returns jsonb
language plpgsql as $$
declare
  v_parked text;
  v_told jsonb;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then
    return jsonb_build_object('state', 'lost');
  end if;
  update dream_run r set status = 'failed', ended = now(), error = p_error
  where r.tenant = p_tenant and r.id = p_run;
  v_told := dream_told(p_tenant, p_run);
  if v_told is not null then
    perform announce(p_tenant, p_told, 'memory.' || p_tenant_name || '.digested', v_told, '{}');
  end if;
  update dream_job d
  set lease_until = null, epoch = 0, due = clock_timestamp() + p_pause * power(2, d.attempts - 1),
      parked = case when d.attempts >= p_max_attempts then p_error end,
      parked_at = case when d.attempts >= p_max_attempts then clock_timestamp() end
  where d.tenant = p_tenant and d.scope = p_scope
  returning d.parked into v_parked;
  if v_parked is not null then
    perform announce(p_tenant, (p_letter ->> 'id')::uuid, p_letter ->> 'subject',
                     jsonb_build_object('scope', p_scope), p_letter -> 'headers');
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'state', case when v_parked is null then 'retry' else 'parked' end, 'told', v_told));
end $$;

-- Gives a job back that its worker did not finish, for it is asked to stop: due at once.
create function dream_release(p_tenant int, p_scope text, p_epoch bigint, p_event uuid,
                              p_subject text, p_headers jsonb)
returns boolean
language plpgsql as $$
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return false; end if;
  update dream_run r set status = 'lost', ended = now()
  where r.tenant = p_tenant and r.scope = p_scope and r.status = 'running';
  update dream_job d
  set lease_until = null, epoch = 0, attempts = greatest(d.attempts - 1, 0), due = clock_timestamp()
  where d.tenant = p_tenant and d.scope = p_scope;
  perform announce(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return true;
end $$;
