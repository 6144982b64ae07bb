-- Maintenance of a tenant's memories: leases, progress of each pass, archiving of nodes, topics.

-- Where each maintenance pass continues: the next page begins above this memory.
create table maintenance_pass (
  tenant int not null,
  pass text not null,
  above uuid not null,
  rows_read bigint not null default 0,
  started timestamptz not null default now(),
  ended timestamptz,
  primary key (tenant, pass)
);
call protect_tenant_table('maintenance_pass', p_readable => false);

-- Puts memories into other tiers, as they were read: [{id, version, tier, reason}]. Those that changed
-- since, are pinned or were put into their tier by hand stay. Returns the ids of those that moved.
create function move_tiers(p_tenant int, p_tenant_name text, p_moves jsonb, p_headers jsonb)
returns setof uuid
language plpgsql as $$
declare
  v_move jsonb;
  v_old memory;
begin
  perform set_tenant(p_tenant);
  for v_move in select e from jsonb_array_elements(p_moves) e order by e ->> 'id' loop
    select m.* into v_old from memory m
    where m.tenant = p_tenant and m.id = (v_move ->> 'id')::uuid
      and m.version = (v_move ->> 'version')::int and m.status = 'active' and not m.pinned
      and m.metadata ->> 'tier_by' is distinct from 'hand'
    for update;
    continue when not found;
    perform save_version(p_tenant, v_old, 'dream', v_move ->> 'reason');
    update memory m
    set tier = v_move ->> 'tier', metadata = m.metadata || '{"tier_by": "use"}',
        version = m.version + 1,
        enriched_version = m.enriched_version + (m.enriched_version = m.version)::int
    where m.tenant = p_tenant and m.id = v_old.id;
    perform enqueue_memory_event(p_tenant, p_tenant_name, 'edited', v_old.id, v_old.version + 1,
                                 p_headers);
    return next v_old.id;
  end loop;
end $$;

-- Claims the tenant that was maintained longest ago, if that is p_every ago and no worker has it;
-- unfinished ones come after the others. `tries` counts starts without an end.
create function maintenance_claim(p_every interval, p_lease interval)
returns table (tenant int, tenant_name text, epoch bigint, tries int)
language sql volatile security definer
begin atomic
  update tenant t
  set maintenance_lease_until = clock_timestamp() + p_lease, maintenance_epoch = t.maintenance_epoch + 1,
      maintenance_attempts = t.maintenance_attempts + 1
  where t.id = (select d.id from tenant d
                where d.maintained_at < clock_timestamp() - p_every
                  and (d.maintenance_lease_until is null or d.maintenance_lease_until < clock_timestamp())
                order by d.maintenance_lease_until is not null, d.maintained_at, d.id
                limit 1 for update skip locked)
  returning t.id, t.name, t.maintenance_epoch, t.maintenance_attempts;
end;
call run_across_tenants('maintenance_claim(interval, interval)');

-- Extends the lease; false where another worker has it.
create function maintenance_renew(p_tenant int, p_epoch bigint, p_lease interval) returns boolean
language sql volatile security definer
begin atomic
  with renewed as (
    update tenant t set maintenance_lease_until = clock_timestamp() + p_lease
    where t.id = p_tenant and t.maintenance_epoch = p_epoch and t.maintenance_lease_until is not null
    returning 1)
  select exists (select from renewed);
end;
call run_across_tenants('maintenance_renew(int, bigint, interval)');

-- Ends the lease: the tenant is done for this time, or continues after p_again.
create function maintenance_release(p_tenant int, p_epoch bigint, p_again interval) returns boolean
language sql volatile security definer
begin atomic
  with ended as (
    update tenant t
    set maintained_at = case when p_again is null then clock_timestamp() else t.maintained_at end,
        maintenance_lease_until = clock_timestamp() + p_again, maintenance_attempts = 0
    where t.id = p_tenant and t.maintenance_epoch = p_epoch and t.maintenance_lease_until is not null
    returning 1)
  select exists (select from ended);
end;
call run_across_tenants('maintenance_release(int, bigint, interval)');

-- Whether some tenant is due and has no worker.
create function maintenance_is_due(p_every interval) returns boolean
language sql stable security definer
begin atomic
  select exists (select from tenant d
                 where d.maintained_at < clock_timestamp() - p_every
                   and (d.maintenance_lease_until is null or d.maintenance_lease_until < clock_timestamp()));
end;
call run_across_tenants('maintenance_is_due(interval)');

-- Writes the record of a maintenance run, page by page, so that a worker that died is on record
-- too: the first write of the next one marks that run as lost. Without a lease (epoch 0) it is
-- written once, at the end.
create function maintenance_record(
  p_tenant int, p_run uuid, p_epoch bigint, p_scope text, p_worker text, p_started timestamptz,
  p_status text, p_error text, p_record jsonb, p_counts jsonb
) returns void
language plpgsql as $$
declare
  v_ended timestamptz := case when p_status <> 'running' then clock_timestamp() end;
begin
  perform set_tenant(p_tenant);
  update dream_run r set status = p_status, ended = v_ended, error = p_error
  where r.tenant = p_tenant and r.id = p_run;
  if not found then
    update dream_run r set status = 'lost', ended = clock_timestamp()
    where r.tenant = p_tenant and r.scope = p_scope and r.status = 'running'
      and r.reason = 'maintenance' and r.epoch < p_epoch;
    insert into dream_run (tenant, id, scope, epoch, worker, status, started, ended, reason, error)
    values (p_tenant, p_run, p_scope, p_epoch, p_worker, p_status, p_started, v_ended, 'maintenance',
            p_error);
  end if;
  perform add_run_record(p_tenant, p_scope, p_run, null, '[]', p_record);
  update dream_run r set outcomes = p_counts where r.tenant = p_tenant and r.id = p_run;
end $$;

-- Archives those of some nodes that nothing touches and that are older than p_days, and restores
-- archived ones that something touches. Returns what it did.
create function archive_idle_anchors(p_tenant int, p_nodes uuid[], p_days float8)
returns table (node uuid, outcome text)
language plpgsql as $$
declare
  m memory;
  v_touched boolean;
begin
  perform set_tenant(p_tenant);
  for m in
    select x.* from memory x
    where x.tenant = p_tenant and x.id = any(p_nodes) and x.status in ('active', 'archived')
    order by x.id for update skip locked
  loop
    v_touched := exists (select from edge e where e.tenant = p_tenant and e.dst = m.id
                           and e.known_to is null)
              or exists (select from edge e where e.tenant = p_tenant and e.src = m.id
                           and e.known_to is null);
    if v_touched and m.status = 'archived' then
      perform restore_node(p_tenant, m.id);
      return query select m.id, 'restored';
    elsif not v_touched and m.status = 'active'
          and m.updated < clock_timestamp() - make_interval(secs => p_days * 86400) then
      perform archive_node(p_tenant, m, 'nothing touches it');
      return query select m.id, 'archived';
    end if;
  end loop;
end $$;

-- Makes memories part of a topic, and takes out those that no longer belong to it; whether that
-- changed anything. What was linked by hand remains.
create function topic_members(p_tenant int, p_node uuid, p_scope text, p_members uuid[])
returns boolean
language plpgsql as $$
declare
  v_closed int;
  v_linked int;
begin
  update edge e set known_to = next_moment(null, e.known_from)
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

-- Makes these the topics of a project scope: entity nodes of the key topic:<slug>, which the
-- memories about one thing are part_of. Former topics lose their members and are archived, unless
-- something was linked to them by hand. Returns what changed.
create function topics_put(p_tenant int, p_scope text, p_topics jsonb)
returns table (node uuid, name text, members int)
language plpgsql as $$
declare
  v_topic jsonb;
  v_members uuid[];
  v_nodes uuid[] := '{}';
  m memory;
begin
  perform set_tenant(p_tenant);
  perform pg_advisory_xact_lock(hashtext('reverie.topics'), p_tenant);
  for v_topic in select t from jsonb_array_elements(p_topics) t loop
    node := ensure_entity_node(p_tenant, p_scope, v_topic ->> 'key', v_topic ->> 'name', 'topic',
                               (v_topic ->> 'id')::uuid, decode(v_topic ->> 'hash', 'hex'));
    continue when node is null;
    v_nodes := v_nodes || node;
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
      and x.key like 'topic:%' and x.id <> all (v_nodes)
    order by x.id for update
  loop
    perform topic_members(p_tenant, m.id, p_scope, '{}');
    continue when exists (select from edge e where e.tenant = p_tenant and m.id in (e.src, e.dst)
                            and e.known_to is null);
    perform archive_node(p_tenant, m, 'no topic any more');
    node := m.id;
    name := m.content;
    members := 0;
    return next;
  end loop;
end $$;
