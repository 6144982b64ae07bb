-- All that crosses tenants, in one place: key look-up, outbox relay, dream claim, the clock.
-- Each function is owned by reverie_system, which sees just these tables.

create policy across on api_key for select to reverie_system using (true);
create policy across on tenant to reverie_system using (true);
create policy across on outbox to reverie_system using (true);
create policy across on dream_job to reverie_system using (true);
create policy across on idempotency to reverie_system using (true);
create policy across on memory for select to reverie_system using (true);
create policy across on session for select to reverie_system using (true);
create policy across on git_event for select to reverie_system using (true);
grant select on api_key, memory, session, git_event to reverie_system;
grant select, update on tenant to reverie_system;
grant select, update, delete on outbox, dream_job, idempotency to reverie_system;

create function find_key(p_hash bytea)
returns table (tenant int, tenant_name text, id uuid, role text, reads text[], writes text[],
               project text, agent text)
language sql stable security definer
begin atomic
  select k.tenant, t.name, k.id, k.role, k.reads, k.writes, k.project, k.agent
  from api_key k join tenant t on t.id = k.tenant
  where k.hash = p_hash and k.revoked is null and (k.expires is null or k.expires > now());
end;

-- Names of the tenants, for whoever makes tenants and keys; not granted to the services.
create function tenant_names() returns table (id int, name text)
language sql stable security definer
begin atomic
  select t.id, t.name from tenant t;
end;

-- Locks up to p_limit rows that their writer has not published within p_grace.
create function outbox_claim(p_limit int, p_grace interval)
returns setof outbox
language sql volatile security definer
begin atomic
  select o.* from outbox o where o.at < clock_timestamp() - p_grace
  order by o.at limit p_limit for update skip locked;
end;

create function outbox_done(p_ids uuid[]) returns void
language sql volatile security definer
begin atomic
  delete from outbox where id = any(p_ids);
end;

create function outbox_age() returns table (waiting bigint, oldest_seconds float8)
language sql stable security definer
begin atomic
  select count(*), coalesce(extract(epoch from clock_timestamp() - min(at)), 0)::float8 from outbox;
end;

create sequence dream_epoch;
grant usage on sequence dream_epoch to reverie_system;

-- The fairest due job: of the tenant that was served longest ago. Starts a new epoch, which no
-- job of any scope ever had.
create function dream_claim(p_worker text, p_lease interval)
returns table (tenant int, tenant_name text, scope text, epoch bigint, attempts int)
language plpgsql volatile security definer as $$
declare
  j dream_job;
begin
  select d.* into j from dream_job d join tenant t on t.id = d.tenant
  where d.parked is null and d.due <= clock_timestamp()
    and (d.lease_until is null or d.lease_until < clock_timestamp())
  order by t.served_at, d.due, d.tenant, d.scope
  limit 1 for update of d skip locked;
  if not found then return; end if;
  update tenant t set served_at = clock_timestamp() where t.id = j.tenant;
  return query
    update dream_job d
    set epoch = nextval('dream_epoch'), worker = p_worker, attempts = d.attempts + 1, again = false,
        lease_until = clock_timestamp() + p_lease
    where d.tenant = j.tenant and d.scope = j.scope
    returning d.tenant, (select t.name from tenant t where t.id = d.tenant),
              d.scope, d.epoch, d.attempts;
end $$;

-- Jobs whose ticket may be lost: due for a while, and nobody works on them.
create function dreams_overdue(p_age interval, p_limit int)
returns table (tenant int, tenant_name text, scope text)
language sql stable security definer
begin atomic
  select d.tenant, t.name, d.scope from dream_job d join tenant t on t.id = d.tenant
  where d.parked is null and d.due < clock_timestamp() - p_age
    and (d.lease_until is null or d.lease_until < clock_timestamp() - p_age)
  order by d.due limit p_limit;
end;

create function dream_queue() returns table (queued bigint, running bigint, parked bigint, oldest_seconds float8)
language sql stable security definer
begin atomic
  select count(*) filter (where parked is null and (lease_until is null or lease_until < clock_timestamp())),
         count(*) filter (where lease_until >= clock_timestamp()),
         count(*) filter (where parked is not null),
         coalesce(extract(epoch from clock_timestamp()
           - min(due) filter (where parked is null)), 0)::float8
  from dream_job;
end;

-- Memories whose slow path has not caught up: their event may be lost. Any of them in turn, by
-- chance: were the oldest first, as many as p_limit that always fail would keep out all others.
create function memories_unenriched(p_age interval, p_limit int)
returns table (tenant int, tenant_name text, id uuid, version int)
language sql stable security definer
begin atomic
  select m.tenant, t.name, m.id, m.version from memory m join tenant t on t.id = m.tenant
  where m.enriched_version < m.version and m.updated < clock_timestamp() - p_age
    and m.status in ('active', 'superseded')
  order by random() limit p_limit;
end;

create function work_behind() returns table (memories bigint, changes bigint)
language sql stable security definer
begin atomic
  select (select count(*) from memory m where m.enriched_version < m.version
            and m.status in ('active', 'superseded')),
         (select count(*) from git_event g where g.processed is null);
end;

create function changes_unprocessed(p_age interval, p_limit int)
returns table (tenant int, tenant_name text, id uuid)
language sql stable security definer
begin atomic
  select g.tenant, t.name, g.id from git_event g join tenant t on t.id = g.tenant
  where g.processed is null and g.received < clock_timestamp() - p_age
  order by g.received limit p_limit;
end;

-- Scopes of sessions that fell silent with turns that nobody digested or asked to digest.
create function scopes_idle(p_age interval, p_limit int)
returns table (tenant int, tenant_name text, scope text)
language sql stable security definer
begin atomic
  select distinct s.tenant, t.name, s.scope from session s join tenant t on t.id = s.tenant
  where s.pending > 0 and s.appended < clock_timestamp() - p_age
    and not exists (select from dream_job d where d.tenant = s.tenant and d.scope = s.scope)
  limit p_limit;
end;

create function idempotency_sweep(p_age interval) returns bigint
language plpgsql volatile security definer as $$
declare n bigint;
begin
  delete from idempotency where at < clock_timestamp() - p_age;
  get diagnostics n = row_count;
  return n;
end $$;

do $$
declare
  f regprocedure;
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  for f in
    select p.oid from pg_proc p
    where p.pronamespace = current_schema()::regnamespace and p.prosecdef
  loop
    execute format('alter function %s set search_path = %I, public, pg_temp', f, current_schema());
    execute format('alter function %s owner to reverie_system', f);
    execute format('revoke all on function %s from public', f);
    execute format('grant execute on function %s to reverie_app', f);
  end loop;
  revoke all on function tenant_names() from reverie_app;
  execute format('grant execute on function tenant_names() to %I', current_user);
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
