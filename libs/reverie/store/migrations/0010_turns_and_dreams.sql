-- Turns are appended once; a dream writes what it found and marks its turns in one transaction.

-- Answers {accepted, duplicates, scope, pending, pending_chars} or {problem: not_found}.
create function append_turns(p_tenant int, p_session uuid, p_turns jsonb) returns jsonb
language plpgsql as $$
declare
  v_session session;
  v_accepted int;
  v_chars bigint;
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
    returning id, doc, terms, length(content) as chars
  ), posted as (
    insert into turn_posting (tenant, term, doc, tf, len)
    select p_tenant, term_no(w.lexeme), s.doc, least(cardinality(w.positions), 32767), s.terms
    from stored s join fresh f using (id) cross join lateral unnest(f.lexemes) w
    on conflict do nothing
  )
  select count(*), coalesce(sum(chars), 0) into v_accepted, v_chars from stored;
  if v_accepted > 0 then
    update session s
    set turns = s.turns + v_accepted, pending = s.pending + v_accepted,
        pending_chars = s.pending_chars + v_chars, appended = clock_timestamp()
    where s.tenant = p_tenant and s.id = p_session;
  end if;
  return jsonb_build_object(
    'accepted', v_accepted,
    'duplicates', jsonb_array_length(p_turns) - v_accepted,
    'scope', v_session.scope,
    'pending', v_session.pending + v_accepted,
    'pending_chars', v_session.pending_chars + v_chars);
end $$;

-- One job a scope: a request while a worker has it is kept in `again`, also of a worker whose lease
-- ran out, for it may still end its run. A parked job wakes.
create function dream_request(p_tenant int, p_scope text, p_reason text, p_event uuid,
                              p_subject text, p_headers jsonb)
returns text
language plpgsql as $$
declare
  v_running boolean;
begin
  perform enter(p_tenant);
  insert into dream_job as d (tenant, scope, reason) values (p_tenant, p_scope, p_reason)
  on conflict (tenant, scope) do update
    set again = d.again or d.lease_until is not null,
        attempts = case when d.parked is null then d.attempts else 0 end,
        parked = null, due = least(d.due, clock_timestamp()), reason = excluded.reason
  returning coalesce(lease_until >= clock_timestamp(), false) into v_running;
  perform announce(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return case when v_running then 'running' else 'queued' end;
end $$;

-- Whether a worker still has the job. A job that was given back has epoch 0, which nobody holds.
create function dream_holds(p_tenant int, p_scope text, p_epoch bigint) returns boolean
language plpgsql as $$
begin
  perform enter(p_tenant);
  perform from dream_job d
  where d.tenant = p_tenant and d.scope = p_scope and d.epoch = p_epoch for update;
  return found;
end $$;

create function dream_renew(p_tenant int, p_scope text, p_epoch bigint, p_lease interval)
returns boolean
language plpgsql as $$
begin
  perform enter(p_tenant);
  update dream_job d set lease_until = clock_timestamp() + p_lease
  where d.tenant = p_tenant and d.scope = p_scope and d.epoch = p_epoch;
  return found;
end $$;

create function dream_start(p_tenant int, p_scope text, p_epoch bigint, p_run uuid, p_worker text)
returns boolean
language plpgsql as $$
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return false; end if;
  update dream_run r set status = 'lost', ended = now()
  where r.tenant = p_tenant and r.scope = p_scope and r.status = 'running';
  insert into dream_run (tenant, id, scope, epoch, worker)
  values (p_tenant, p_run, p_scope, p_epoch, p_worker);
  return true;
end $$;

-- Writes the memories of one session's turns and marks the turns, if the epoch still holds.
-- Answers the outcomes of the items, or null for a worker that lost its lease.
create function dream_commit(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                             p_run uuid, p_session uuid, p_items jsonb, p_turns uuid[],
                             p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_item jsonb;
  v_results jsonb := '[]';
  v_turns int;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return null; end if;
  perform lock_identities(p_tenant, p_items);
  for v_item in select * from jsonb_array_elements(p_items) loop
    v_results := v_results || remember(p_tenant, p_tenant_name, v_item, p_headers);
  end loop;
  with digested as (
    update turn t set run = p_run
    where t.tenant = p_tenant and t.session = p_session and t.id = any(p_turns) and t.run is null
    returning length(t.content) as chars
  )
  update session s
  set pending = s.pending - d.turns, pending_chars = s.pending_chars - d.chars
  from (select count(*) as turns, coalesce(sum(chars), 0) as chars from digested) d
  where s.tenant = p_tenant and s.id = p_session
  returning d.turns into v_turns;
  update dream_run r
  set turns = r.turns + coalesce(v_turns, 0),
      created = r.created + n.created, reinforced = r.reinforced + n.reinforced,
      superseded = r.superseded + n.superseded,
      sessions = case when p_session = any(r.sessions) then r.sessions
                      else r.sessions || p_session end
  from (select count(*) filter (where o ->> 'outcome' in ('created', 'superseded')) as created,
               count(*) filter (where o ->> 'outcome' = 'duplicate') as reinforced,
               count(*) filter (where o ->> 'outcome' = 'superseded') as superseded
        from jsonb_array_elements(v_results) o) n
  where r.tenant = p_tenant and r.id = p_run;
  return v_results;
end $$;

create function dream_summarise(p_tenant int, p_scope text, p_epoch bigint, p_content text,
                                p_tokens int)
returns boolean
language plpgsql as $$
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return false; end if;
  insert into summary as s (tenant, scope, content, tokens)
  values (p_tenant, p_scope, p_content, p_tokens)
  on conflict (tenant, scope) do update
    set content = excluded.content, tokens = excluded.tokens, version = s.version + 1,
        updated = now()
    where s.content <> excluded.content;
  return true;
end $$;

-- Ends a run. `again`: asked for meanwhile, the job is due at once and a ticket goes out.
create function dream_finish(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                             p_run uuid, p_event uuid, p_subject text, p_headers jsonb)
returns text
language plpgsql as $$
declare
  v_again boolean;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return 'lost'; end if;
  update dream_run r set status = 'done', ended = now()
  where r.tenant = p_tenant and r.id = p_run;
  select d.again into v_again from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
  if not v_again then
    delete from dream_job d where d.tenant = p_tenant and d.scope = p_scope;
    return 'done';
  end if;
  update dream_job d
  set again = false, lease_until = null, epoch = 0, attempts = 0, due = clock_timestamp()
  where d.tenant = p_tenant and d.scope = p_scope;
  perform announce(p_tenant, p_event, p_subject, jsonb_build_object('scope', p_scope), p_headers);
  return 'again';
end $$;

-- Gives a failed job back after a pause, or parks it after the last attempt.
create function dream_fail(p_tenant int, p_scope text, p_epoch bigint, p_run uuid, p_error text,
                           p_max_attempts int, p_pause interval)
returns text
language plpgsql as $$
declare
  v_parked text;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return 'lost'; end if;
  update dream_run r set status = 'failed', ended = now(), error = p_error
  where r.tenant = p_tenant and r.id = p_run;
  update dream_job d
  set lease_until = null, epoch = 0, due = clock_timestamp() + p_pause * power(2, d.attempts - 1),
      parked = case when d.attempts >= p_max_attempts then p_error end
  where d.tenant = p_tenant and d.scope = p_scope
  returning d.parked into v_parked;
  return case when v_parked is null then 'retry' else 'parked' end;
end $$;
