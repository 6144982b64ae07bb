-- The outbox of events, answers kept for idempotency keys, and work that failed.

-- Events written in the transaction that caused them. The writer publishes and deletes them after
-- its commit; a relay does so for those that a crash left behind.
create table outbox (
  tenant int not null,
  id uuid not null,
  subject text not null,
  payload jsonb not null,
  headers jsonb not null,
  at timestamptz not null default clock_timestamp(),
  primary key (tenant, id)
);
create index outbox_at on outbox (at);
call protect_tenant_table('outbox', p_readable => false);
call open_to_system('outbox', 'select, insert, update, delete');

-- Requests with an idempotency key: their answer once they are done (`status` is set), and in
-- `effect`, by place in the request, what they wrote. A request whose answer was lost after the
-- commit finds its effect when it is sent again.
create table idempotency (
  tenant int not null,
  key text not null,
  route text not null,
  body_hash bytea not null,
  status int,
  body bytea,
  headers jsonb,
  at timestamptz not null default now(),
  effect jsonb,
  primary key (tenant, key)
);
create index idempotency_at on idempotency (at);
call protect_tenant_table('idempotency', p_readable => false);
call open_to_system('idempotency', 'select, update, delete');

-- Adds an event to the outbox, within the caller's transaction.
create function enqueue_event(
  p_tenant int, p_id uuid, p_subject text, p_payload jsonb, p_headers jsonb
) returns void
language sql volatile
begin atomic
  insert into outbox (tenant, id, subject, payload, headers)
  values (p_tenant, p_id, p_subject, p_payload || jsonb_build_object('v', 1, 'tenant', p_tenant),
          p_headers);
end;

-- Adds the event of a memory at a version to the outbox. That of a memory to be enriched has a subject
-- of its own where the headers say that it came in bulk.
create function enqueue_memory_event(
  p_tenant int, p_tenant_name text, p_name text, p_memory uuid, p_version int, p_headers jsonb,
  p_event uuid default gen_random_uuid()
) returns void
language sql volatile
begin atomic
  select enqueue_event(p_tenant, p_event, 'memory.' || p_tenant_name
                         || case when p_name = 'remembered' and p_headers ? 'Reverie-Bulk'
                                 then '.bulk.' else '.' end || p_name,
                       jsonb_build_object('id', p_memory, 'version', p_version), p_headers);
end;

-- Deletes events that their writer published. The commit does not wait for the disk: an event that
-- reappears after a crash is published again.
create function outbox_delete(p_tenant int, p_ids uuid[]) returns void
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  perform set_config('synchronous_commit', 'off', true);
  delete from outbox where tenant = p_tenant and id = any (p_ids);
end $$;

-- Locks up to p_limit events that their writer has not published within p_grace.
create function outbox_claim(p_limit int, p_grace interval) returns setof outbox
language sql volatile security definer
begin atomic
  select o.* from outbox o where o.at < clock_timestamp() - p_grace
  order by o.at limit p_limit for update skip locked;
end;
call run_across_tenants('outbox_claim(int, interval)');

-- Deletes events that the relay published, of any tenant.
create function outbox_done(p_ids uuid[]) returns void
language sql volatile security definer
begin atomic
  delete from outbox where id = any(p_ids);
end;
call run_across_tenants('outbox_done(uuid[])');

-- The number of events in the outbox, and the age of the oldest.
create function outbox_age() returns table (waiting bigint, oldest_seconds float8)
language sql stable security definer
begin atomic
  select count(*), coalesce(extract(epoch from clock_timestamp() - min(at)), 0)::float8 from outbox;
end;
call run_across_tenants('outbox_age()');

-- Deletes the kept answers of some requests, but not the record of what they wrote: a request that
-- is sent again still writes nothing twice.
create function idempotency_forget_answers(p_tenant int, p_keys text[]) returns void
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  delete from idempotency x
  where x.tenant = p_tenant and x.key = any(p_keys) and x.status is not null and x.effect is null;
  -- As old as if the process that answered it had died: the next request answers it again.
  update idempotency x
  set status = null, body = null, headers = null, at = least(x.at, now() - interval '1 hour')
  where x.tenant = p_tenant and x.key = any(p_keys) and x.status is not null;
end $$;

-- Deletes the kept answers to session starts, which quote memories without naming them.
create function forget_session_starts(p_tenant int) returns void
language sql volatile
return idempotency_forget_answers(p_tenant, array(
  select x.key from idempotency x
  where x.tenant = p_tenant and x.status is not null and x.route like '%/v1/sessions/start%'));

-- Work in the background that failed: a memory (of that version) that could not be enriched, or a git
-- change that could not be applied. After max_work_attempts() it is left alone, and counted.
create table work_failure (
  tenant int not null,
  work uuid not null,
  version int not null default 1,
  attempts int not null default 1,
  error text not null,
  failed timestamptz not null default clock_timestamp(),
  primary key (tenant, work)
);
call protect_tenant_table('work_failure');
call open_to_system('work_failure', 'select');

create function max_work_attempts() returns int
language sql immutable
return 5;

-- Whether a memory of that version, or a change, failed too often to be tried again.
create function has_work_failed(p_tenant int, p_work uuid, p_version int default 1) returns boolean
language sql stable
begin atomic
  select exists (select from work_failure f
                 where f.tenant = p_tenant and f.work = p_work and f.version = p_version
                   and f.attempts >= max_work_attempts());
end;

-- Counts a failed attempt, with the name of the error.
create function note_work_failure(p_tenant int, p_work uuid, p_version int, p_error text)
returns void
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  insert into work_failure as f (tenant, work, version, error)
  values (p_tenant, p_work, p_version, p_error)
  on conflict (tenant, work) do update
    set attempts = case when f.version = excluded.version then f.attempts + 1 else 1 end,
        version = excluded.version, error = excluded.error, failed = excluded.failed;
end $$;
