-- The graph: edges between memories, and how central each memory is.

-- A typed edge; closing it sets `known_to`. `follows` is not stored: it is the order in a session.
create table edge (
  tenant int not null,
  id uuid not null,
  src uuid not null,
  kind text not null,
  dst uuid not null,
  weight real not null default 1,
  meta jsonb not null default '{}',
  known_from timestamptz not null default clock_timestamp(),
  known_to timestamptz,
  actor text,
  closed_by text,
  primary key (tenant, id),
  check (src <> dst)
) partition by hash (tenant);
create unique index edge_open on edge (tenant, src, kind, dst) where known_to is null;
-- It begins with dst: without statistics, the planner might take it for searches by src otherwise,
-- and read every open edge of the tenant.
create index edge_in on edge (dst, tenant, kind) where known_to is null;
-- Closed edges, for reading the graph as of a moment.
create index edge_out_closed on edge (tenant, src) where known_to is not null;
create index edge_in_closed on edge (tenant, dst) where known_to is not null;
call partition_by_tenant('edge');
call protect_tenant_table('edge');

-- How central a memory is in the graph of its scope, as a share of the highest there, and the scope
-- for which that was computed.
create table memory_rank (
  tenant int not null,
  memory uuid not null,
  scope text not null,
  rank real not null,
  at timestamptz not null default now(),
  primary key (tenant, memory)
) partition by hash (tenant);
create index memory_rank_scope on memory_rank (tenant, scope, rank desc);
call partition_by_tenant('memory_rank');
call protect_tenant_table('memory_rank');

-- Edges changed since the tenant's ranks were computed. Rows are only inserted and deleted, so that
-- writers never wait for one another here.
create sequence edge_change_no;
grant usage on sequence edge_change_no to reverie_app;
create table edge_change (
  tenant int not null,
  no bigint not null default nextval('edge_change_no'),
  edge uuid not null,
  primary key (tenant, no)
);
call protect_tenant_table('edge_change');
call open_to_system('edge_change', 'select');

-- Records new edges that change the ranks.
create function edges_added() returns trigger
language plpgsql as $$
begin
  insert into edge_change (tenant, edge)
  select a.tenant, a.id from added a
  where a.kind in ('led_to', 'supersedes', 'learned_in', 'part_of', 'relates_to', 'depends_on');
  return null;
end $$;
create trigger edges_added after insert on edge referencing new table as added
  for each statement execute function edges_added();

-- Records changed edges that change the ranks.
create function edges_changed() returns trigger
language plpgsql as $$
begin
  insert into edge_change (tenant, edge)
  select n.tenant, n.id
  from new_rows n join old_rows o on o.tenant = n.tenant and o.id = n.id
  where n.kind in ('led_to', 'supersedes', 'learned_in', 'part_of', 'relates_to', 'depends_on')
    and (n.src, n.dst, n.kind, n.weight, n.known_to) is distinct from
        (o.src, o.dst, o.kind, o.weight, o.known_to);
  return null;
end $$;
create trigger edges_changed after update on edge
  referencing old table as old_rows new table as new_rows
  for each statement execute function edges_changed();

-- Records a memory with open edges that leaves the ranked statuses or returns to them, or moves to
-- another scope.
create function rank_inputs_changed() returns trigger
language plpgsql as $$
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
create trigger rank_inputs_changed after update of status, scope on memory for each row
  when ((old.status in ('active', 'superseded')) <> (new.status in ('active', 'superseded'))
        or old.scope <> new.scope)
  execute function rank_inputs_changed();

-- Tenants whose edges changed since their ranks were computed, the longest waiting first.
create function ranks_due(p_limit int) returns table (tenant int, tenant_name text)
language sql stable security definer
begin atomic
  select c.tenant, t.name from edge_change c join tenant t on t.id = c.tenant
  group by c.tenant, t.name order by min(c.no) limit p_limit;
end;
call run_across_tenants('ranks_due(int)');

-- The nodes from a cause to an effect along open causal edges; null where none lead there. Each
-- edge is followed once, however many ways there are.
create function causal_path(p_tenant int, p_cause uuid, p_effect uuid) returns uuid[]
language sql stable
begin atomic
  with recursive walk (node, parent) as (
    select p_cause, null::uuid
    union
    select n.node, w.node
    from walk w cross join lateral (
      select e.dst as node from edge e
      where e.tenant = p_tenant and e.src = w.node and e.kind = 'led_to' and e.known_to is null
      union all
      select e.src from edge e
      where e.tenant = p_tenant and e.dst = w.node and e.known_to is null
        and e.kind = any (array['supersedes', 'learned_in', 'part_of'])
    ) n
    where w.node <> p_effect
  ), back (node, path) as (
    select p_effect, array[p_effect] where exists (select from walk where walk.node = p_effect)
    union all
    select s.parent, s.parent || b.path
    from back b cross join lateral (
      select w.parent from walk w
      where w.node = b.node and w.parent <> all (b.path) order by w.parent limit 1
    ) s
    where b.node <> p_cause
  )
  select b.path from back b where b.node = p_cause;
end;

-- Lets one transaction at a time write edges of a kind that must not close a cycle, until it ends:
-- of two edges that together would close one, the later sees the earlier. Lock first, because the
-- next statement has a snapshot in which a concurrent writer's edge is visible.
create function lock_acyclic_edges(p_tenant int, p_kind text) returns boolean
language plpgsql as $$
begin
  if p_kind not in ('led_to', 'supersedes', 'learned_in', 'part_of', 'depends_on') then
    return false;
  end if;
  perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
  return true;
end $$;

-- The cycle that an open edge would close, its first node again at its end; null where it closes
-- none.
create function edge_cycle(p_tenant int, p_src uuid, p_kind text, p_dst uuid) returns uuid[]
language plpgsql as $$
declare
  v_path uuid[];
begin
  if not lock_acyclic_edges(p_tenant, p_kind) then return null; end if;
  if p_kind = 'depends_on' then
    perform from memory m where m.tenant = p_tenant and m.id = p_src and m.kind = 'task';
    v_path := case when found then task_path(p_tenant, p_dst, p_src) end;
  elsif p_kind = 'led_to' then
    v_path := causal_path(p_tenant, p_dst, p_src);
  else
    v_path := causal_path(p_tenant, p_src, p_dst);
  end if;
  return case when v_path is not null then v_path || v_path[1] end;
end $$;

-- The memory that a memory is now, after any number of merges; its own id where it was not merged.
create function current_memory(p_tenant int, p_memory uuid) returns uuid
language sql stable
begin atomic
  with recursive chain (id, hops) as (
    select p_memory, 0
    union all
    select m.merged_into, c.hops + 1
    from chain c join memory m on m.tenant = p_tenant and m.id = c.id
    where m.merged_into is not null and c.hops < 1000
  )
  select c.id from chain c order by c.hops desc limit 1;
end;

-- Puts an open edge between what its ends are now, or raises the weight of the one that exists,
-- whose lower weight remains as a closed edge. Returns {id, from, to, change: created|raised|none},
-- or {problem: self}, or {problem: cycle, path} for causes, or {problem: ring, path} for tasks that
-- would wait for themselves.
create function link(
  p_tenant int, p_id uuid, p_src uuid, p_kind text, p_dst uuid, p_weight real, p_meta jsonb,
  p_actor text default null, p_at timestamptz default null
) returns jsonb
language plpgsql as $$
declare
  v_kind text := case p_kind when 'caused_by' then 'led_to' else p_kind end;
  v_src uuid;
  v_dst uuid;
  v_cycle uuid[];
  v_old edge;
  v_id uuid;
  v_ends jsonb;
begin
  perform set_tenant(p_tenant);
  perform lock_acyclic_edges(p_tenant, v_kind);
  v_src := current_memory(p_tenant, case p_kind when 'caused_by' then p_dst else p_src end);
  v_dst := current_memory(p_tenant, case p_kind when 'caused_by' then p_src else p_dst end);
  if v_src = v_dst then
    return jsonb_build_object('problem', 'self');
  end if;
  v_cycle := edge_cycle(p_tenant, v_src, v_kind, v_dst);
  if v_cycle is not null then
    return jsonb_build_object('path', v_cycle, 'problem',
      case v_kind when 'depends_on' then 'ring' else 'cycle' end);
  end if;
  v_ends := jsonb_build_object('from', case p_kind when 'caused_by' then v_dst else v_src end,
                               'to', case p_kind when 'caused_by' then v_src else v_dst end);
  for attempt in 1..5 loop
    select e.* into v_old from edge e
    where e.tenant = p_tenant and e.src = v_src and e.kind = v_kind and e.dst = v_dst
      and e.known_to is null
    for update;
    exit when found;
    insert into edge (tenant, id, src, kind, dst, weight, meta, actor, known_from)
    values (p_tenant, p_id, v_src, v_kind, v_dst, p_weight, p_meta, p_actor,
            coalesce(p_at, clock_timestamp()))
    on conflict (tenant, src, kind, dst) where known_to is null do nothing
    returning id into v_id;
    if v_id is not null then
      return v_ends || jsonb_build_object('id', v_id, 'change', 'created');
    end if;
  end loop;
  if v_old.id is null then
    raise exception using errcode = 'serialization_failure', message = 'edge raced';
  end if;
  if v_old.weight >= p_weight then
    return v_ends || jsonb_build_object('id', v_old.id, 'change', 'none');
  end if;
  update edge e
  set weight = p_weight, actor = p_actor, known_from = next_moment(p_at, v_old.known_from)
  where e.tenant = p_tenant and e.id = v_old.id
  returning e.known_from into v_old.known_to;
  v_id := v_old.id;
  v_old.id := gen_random_uuid();
  v_old.closed_by := p_actor;
  insert into edge select v_old.*;
  return v_ends || jsonb_build_object('id', v_id, 'change', 'raised');
end $$;

-- Puts the edges of an item from the memory that it became. Raises RV001 with the problem of one.
create function link_item_edges(p_tenant int, p_memory uuid, p_item jsonb) returns void
language plpgsql as $$
declare
  v_edge jsonb;
  v_linked jsonb;
begin
  for v_edge in select * from jsonb_array_elements(coalesce(p_item -> 'edges', '[]')) loop
    v_linked := link(p_tenant, (v_edge ->> 'id')::uuid, p_memory, v_edge ->> 'type',
                     (v_edge ->> 'to')::uuid, (v_edge ->> 'weight')::real, v_edge -> 'metadata',
                     p_item ->> 'actor');
    if v_linked ? 'problem' then
      raise exception using errcode = 'RV001', message = v_linked::text;
    end if;
  end loop;
end $$;

-- Puts an edge that a user asked for, with its event {id, version, from, to, type} where that
-- changed anything. Returns what link() does and `payload`. The ends are locked, so that they cannot
-- be merged meanwhile; where they were since the caller resolved them, it must try again.
create function link_put(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_linked jsonb;
begin
  perform set_tenant(p_tenant);
  perform from memory m
  where m.tenant = p_tenant and m.id in ((p_item ->> 'from')::uuid, (p_item ->> 'to')::uuid)
  order by m.id for share;
  perform from memory m
  where m.tenant = p_tenant and m.id in ((p_item ->> 'from')::uuid, (p_item ->> 'to')::uuid)
    and m.merged_into is not null;
  if found then
    raise exception using errcode = 'serialization_failure', message = 'merged meanwhile';
  end if;
  v_linked := link(p_tenant, (p_item ->> 'id')::uuid, (p_item ->> 'from')::uuid, p_item ->> 'type',
                   (p_item ->> 'to')::uuid, (p_item ->> 'weight')::real, p_item -> 'metadata',
                   p_item ->> 'actor');
  if v_linked ? 'problem' then return v_linked; end if;
  v_linked := v_linked || jsonb_build_object('payload', jsonb_build_object(
    'id', v_linked -> 'id', 'version', 1, 'from', v_linked -> 'from', 'to', v_linked -> 'to',
    'type', p_item -> 'type'));
  if v_linked ->> 'change' <> 'none' then
    perform enqueue_event(p_tenant, (p_item ->> 'event')::uuid,
                          'memory.' || p_tenant_name || '.linked', v_linked -> 'payload', p_headers);
  end if;
  return v_linked;
end $$;

-- Closes an open edge, with its event; false where it was closed in the meantime.
create function link_close(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb)
returns boolean
language plpgsql as $$
begin
  update edge e set known_to = next_moment(null, e.known_from), closed_by = p_item ->> 'actor'
  where e.tenant = p_tenant and e.id = (p_item ->> 'id')::uuid and e.known_to is null;
  if not found then return false; end if;
  perform enqueue_event(p_tenant, (p_item ->> 'event')::uuid, 'memory.' || p_tenant_name || '.unlinked',
                        p_item -> 'payload', p_headers);
  return true;
end $$;

-- Moves the open edges of a merged memory to the one that remains. Each is closed, and opened there
-- unless it would be a loop or a causal cycle; of two equal edges the greater weight remains.
create function move_edges(p_tenant int, p_from uuid, p_to uuid) returns void
language plpgsql as $$
declare
  e edge;
  v_causal boolean;
  v_now timestamptz;
begin
  perform from edge o
  where o.tenant = p_tenant and o.known_to is null and o.kind = 'relates_to'
    and (o.src in (p_from, p_to) or o.dst in (p_from, p_to))
  order by o.src, o.dst for update;
  foreach v_causal in array '{false,true}'::boolean[] loop
    if v_causal then perform lock_acyclic_edges(p_tenant, 'led_to'); end if;
    for e in
      select o.* from edge o
      where o.tenant = p_tenant and o.known_to is null and (o.src = p_from or o.dst = p_from)
        and v_causal = (o.kind in ('led_to', 'supersedes', 'learned_in', 'part_of', 'depends_on'))
      order by o.src, o.dst, o.kind
    loop
      v_now := next_moment(null, e.known_from);
      update edge o set known_to = v_now
      where o.tenant = p_tenant and o.id = e.id and o.known_to is null;
      continue when not found or p_to in (e.src, e.dst);
      perform link(p_tenant, gen_random_uuid(),
                   case when e.src = p_from then p_to else e.src end, e.kind,
                   case when e.dst = p_from then p_to else e.dst end, e.weight,
                   e.meta || jsonb_build_object('moved_from', p_from), e.actor, v_now);
    end loop;
  end loop;
end $$;
