-- Links by hand, walks through time, and how much the graph leans on each memory.

alter table edge add column who text, add column closed_by text;

-- What stood once, for walks as of a moment; open edges have their own indexes.
create index edge_out_closed on edge (tenant, src) where known_to is not null;
create index edge_in_closed on edge (tenant, dst) where known_to is not null;

-- How much the graph leans on a memory, and the scope that it was ranked in.
create table memory_rank (
  tenant int not null,
  memory uuid not null,
  scope text not null,
  rank real not null,
  at timestamptz not null default now(),
  primary key (tenant, memory)
) partition by hash (tenant);
create index memory_rank_top on memory_rank (tenant, rank desc, memory);
create index memory_rank_scope on memory_rank (tenant, scope, rank desc);
call split_by_tenant('memory_rank');
call protect('memory_rank');

-- The changes of edges since a tenant's ranks were computed. Rows are only added and removed:
-- writers never wait for one another here.
create sequence edge_change_no;
create table edge_change (
  tenant int not null,
  no bigint not null default nextval('edge_change_no'),
  edge uuid not null,
  primary key (tenant, no)
);
call protect('edge_change');
grant usage on sequence edge_change_no to reverie_app;

create function edges_added() returns trigger language plpgsql as $$
begin
  insert into edge_change (tenant, edge)
  select a.tenant, a.id from added a
  where a.kind in ('led_to', 'supersedes', 'learned_in', 'part_of', 'relates_to', 'depends_on');
  return null;
end $$;

create function edges_changed() returns trigger language plpgsql as $$
begin
  insert into edge_change (tenant, edge)
  select n.tenant, n.id
  from now_so n join was_so o on o.tenant = n.tenant and o.id = n.id
  where n.kind in ('led_to', 'supersedes', 'learned_in', 'part_of', 'relates_to', 'depends_on')
    and (n.src, n.dst, n.kind, n.weight, n.known_to) is distinct from
        (o.src, o.dst, o.kind, o.weight, o.known_to);
  return null;
end $$;

create trigger edges_added after insert on edge referencing new table as added
  for each statement execute function edges_added();
create trigger edges_changed after update on edge
  referencing old table as was_so new table as now_so
  for each statement execute function edges_changed();

-- An edge told by hand, with its event. Answers as link() does, with `created`; a link that stands
-- already keeps who told it and makes no event.
create function link_put(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_id uuid := p_item ->> 'id';
  v_linked jsonb := link(p_tenant, v_id, (p_item ->> 'from')::uuid, p_item ->> 'type',
                         (p_item ->> 'to')::uuid, (p_item ->> 'weight')::real,
                         p_item -> 'metadata');
begin
  if v_linked ? 'problem' or v_linked ->> 'id' <> p_item ->> 'id' then
    return v_linked || jsonb_build_object('created', false);
  end if;
  update edge e set who = p_item ->> 'who' where e.tenant = p_tenant and e.id = v_id;
  perform announce(p_tenant, (p_item ->> 'event')::uuid, 'memory.' || p_tenant_name || '.linked',
                   p_item -> 'told', p_headers);
  return v_linked || jsonb_build_object('created', true);
end $$;

-- Closes an open edge, with its event; false where it was closed meanwhile.
create function link_close(p_tenant int, p_tenant_name text, p_item jsonb, p_headers jsonb)
returns boolean
language plpgsql as $$
begin
  update edge e set known_to = greatest(now(), e.known_from), closed_by = p_item ->> 'who'
  where e.tenant = p_tenant and e.id = (p_item ->> 'id')::uuid and e.known_to is null;
  if not found then return false; end if;
  perform announce(p_tenant, (p_item ->> 'event')::uuid, 'memory.' || p_tenant_name || '.unlinked',
                   p_item -> 'told', p_headers);
  return true;
end $$;

create policy across on edge_change for select to reverie_system using (true);
grant select on edge_change to reverie_system;

-- Tenants whose edges changed since their ranks were computed, the longest waiting first.
create function ranks_due(p_limit int) returns table (tenant int, tenant_name text)
language sql stable security definer
begin atomic
  select c.tenant, t.name from edge_change c join tenant t on t.id = c.tenant
  group by c.tenant, t.name order by min(c.no) limit p_limit;
end;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function ranks_due(int) set search_path = %I, public, pg_temp',
                 current_schema());
  alter function ranks_due(int) owner to reverie_system;
  revoke all on function ranks_due(int) from public;
  grant execute on function ranks_due(int) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
