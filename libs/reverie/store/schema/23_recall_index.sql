-- What a gateway needs to hold a tenant's recall index in memory: which memories changed.

-- A memory of which something changed that ranking reads: itself, its edges, stale marks, or
-- vectors; the nil uuid stands for all ranks. `xid` tells a gateway what its index does not know
-- yet. It holds ids only and is deleted after two hours: an older index is loaded again.
create table memory_change (
  tenant int not null,
  xid xid8 not null default pg_current_xact_id(),
  memory uuid not null,
  at timestamptz not null default now(),
  primary key (tenant, xid, memory)
) partition by hash (tenant);
call partition_by_tenant('memory_change');
call protect_tenant_table('memory_change');
call open_to_system('memory_change', 'select, delete');

-- Records the memories of a statement. The trigger's arguments are the columns that name them; without
-- any, the ranks as a whole changed. Of a tenant that is being deleted nothing is recorded. Each
-- statement stands here as it is, so that its plan is kept: each trigger has plans of its own.
create function record_memory_changes() returns trigger
language plpgsql as $$
begin
  if current_setting('reverie.deleting_tenant', true) = 'on' then
    return null;
  end if;
  if tg_nargs = 0 then
    insert into memory_change (tenant, memory)
    select distinct c.tenant, '00000000-0000-0000-0000-000000000000'::uuid from changed c
    on conflict do nothing;
  elsif tg_argv[0] = 'id' then
    insert into memory_change (tenant, memory)
    select c.tenant, c.id from changed c on conflict do nothing;
  elsif tg_argv[0] = 'src' then
    insert into memory_change (tenant, memory)
    select c.tenant, c.src from changed c union select c.tenant, c.dst from changed c
    on conflict do nothing;
  else
    insert into memory_change (tenant, memory)
    select distinct c.tenant, c.memory from changed c on conflict do nothing;
  end if;
  return null;
end $$;

-- Records the changes of a table, whose columns p_columns name memories.
create procedure record_changes_of(p_table regclass, variadic p_columns text[])
language plpgsql as $$
declare
  v_event text;
begin
  foreach v_event in array '{insert,update,delete}'::text[] loop
    execute format(
      'create trigger record_changes_%s after %s on %s referencing %s table as changed'
      ' for each statement execute function record_memory_changes(%s)',
      v_event, v_event, p_table, case v_event when 'delete' then 'old' else 'new' end,
      (select string_agg(quote_literal(c), ', ') from unnest(p_columns) c));
  end loop;
end $$;
call record_changes_of('memory', 'id');
call record_changes_of('edge', 'src', 'dst');
call record_changes_of('stale_mark', 'memory');
call record_changes_of('chunk', 'memory');
call record_changes_of('memory_rank', variadic '{}');

-- Records the neighbours of a memory that moves to another scope: an edge counts within its scope.
create function record_neighbours_of_moved() returns trigger
language plpgsql as $$
begin
  insert into memory_change (tenant, memory)
  select e.tenant, e.dst from edge e
  where e.tenant = new.tenant and e.src = new.id and e.known_to is null
  union
  select e.tenant, e.src from edge e
  where e.tenant = new.tenant and e.dst = new.id and e.known_to is null
  on conflict do nothing;
  return null;
end $$;
create trigger record_neighbours_of_moved after update of scope on memory for each row
  when (old.scope <> new.scope) execute function record_neighbours_of_moved();

-- The facts of memories that ranking reads, each in 108 bytes as Postgres sends its numbers; times
-- in microseconds since 2000, which has no number smaller than the one for none. `p_kinds` are the
-- kinds in the order of their codes.
create function recall_facts(p_tenant int, p_kinds text[])
returns table (doc bigint, id uuid, scope text, tier text, at timestamptz, packed bytea)
language sql stable
begin atomic
  select m.doc, m.id, m.scope, m.tier, coalesce(m.valid_from, m.created),
         int8send(m.doc) || uuid_send(m.id) || timestamptz_send(m.created)
         || coalesce(timestamptz_send(m.confirmed), int8send(-9223372036854775808))
         || coalesce(timestamptz_send(m.valid_from), int8send(-9223372036854775808))
         || coalesce(timestamptz_send(case when u.hour < date_trunc('hour', now())
                                           then u.last else u.last_at_hour_start end),
                     int8send(-9223372036854775808))
         || int8send(coalesce(s.doc, -1))
         || substr(m.hash, 1, 8)
         || coalesce(substr(uuid_send(m.session), 9), int8send(0))
         || float4send(m.confidence)
         || float4send(coalesce(case when u.hour < date_trunc('hour', now()) then u.boost
                                     else u.boost_at_hour_start end, 0))
         || float4send(coalesce(
              (select case when bool_or(k.score >= 1) then 1
                           else 1 - exp(sum(ln(nullif(1 - k.score::float8, 0)))) end
               from (select max(k.score) as score from stale_mark k
                     where k.tenant = p_tenant and k.memory = m.id and k.cleared is null
                     group by k.commit, k.path) k), 0)::real)
         || float4send(coalesce((select r.rank from memory_rank r
                                 where r.tenant = p_tenant and r.memory = m.id and r.scope = m.scope), 0))
         || int4send(m.terms)
         || int2send((array_position(p_kinds, m.kind) - 1)::int2)
         || int2send((array_position('{hot,warm,cold}'::text[], m.tier) - 1)::int2)
         || int2send((array_position('{active,superseded,archived,deleted}'::text[], m.status) - 1)::int2)
         || int2send((m.pinned::int + 2 * (m.enriched_version >= m.version)::int + 4 * coalesce(
              (select 1 from edge e
               cross join lateral (
                 select from memory o where o.tenant = p_tenant and o.id = e.dst and o.scope = m.scope limit 1) o
               where e.tenant = p_tenant and e.src = m.id and e.known_to is null
                 and e.kind not in ('touches', 'learned_in') limit 1),
              (select 1 from edge e
               cross join lateral (
                 select from memory o where o.tenant = p_tenant and o.id = e.src and o.scope = m.scope limit 1) o
               where e.tenant = p_tenant and e.dst = m.id and e.known_to is null
                 and e.kind not in ('touches', 'learned_in') limit 1),
              0))::int2)
  from memory m
  left join memory_use u on u.tenant = p_tenant and u.memory = m.id
  left join lateral (
    -- Most memories have no such edge, and two look-ups are cheaper than the function. As a column
    -- of a subquery the id is an index condition, which an expression is not.
    select s.doc
    from (select case
            when m.superseded_by is not null then m.superseded_by
            when exists (select from edge e where e.tenant = p_tenant and e.dst = m.id
                           and e.kind = 'contradicts' and e.known_to is null)
              or exists (select from edge e where e.tenant = p_tenant and e.src = m.id
                           and e.kind = 'contradicts' and e.known_to is null)
            then contradicted_by(p_tenant, m.id, m.scope, coalesce(m.confirmed, m.created))
          end as id offset 0) x
    cross join lateral (
      select s.doc from memory s where s.tenant = p_tenant and s.id = x.id limit 1) s
    limit 1) s on true
  where m.tenant = p_tenant;
end;
