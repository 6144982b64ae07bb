-- Tasks that wait for each other would wait for ever: what would close such a ring is refused.

-- The tasks from one that waits to one that it waits for, over others; null where it does not. What
-- took the place of a superseded task is waited for in its stead; a forgotten one holds nothing up.
create function task_path(p_tenant int, p_from uuid, p_to uuid) returns uuid[]
language sql stable
begin atomic
  with recursive walk (node, parent) as (
    select m.id, null::uuid from memory m
    where m.tenant = p_tenant and m.id = p_from and m.kind = 'task' and m.status <> 'deleted'
    union
    select m.id, w.node
    from walk w join memory o on o.tenant = p_tenant and o.id = w.node
    cross join lateral (
      select e.dst as id from edge e
      where e.tenant = p_tenant and e.src = w.node and e.kind = 'depends_on' and e.known_to is null
        and o.status <> 'superseded'
      union all
      select o.superseded_by where o.status = 'superseded'
    ) n
    join memory m on m.tenant = p_tenant and m.id = n.id and m.kind = 'task' and m.status <> 'deleted'
    where w.node <> p_to
  ), back (node, path) as (
    select p_to, array[p_to] where exists (select from walk where walk.node = p_to)
    union all
    select s.parent, s.parent || b.path
    from back b cross join lateral (
      select w.parent from walk w
      where w.node = b.node and w.parent <> all (b.path) order by w.parent limit 1
    ) s
    where b.node <> p_from
  )
  select b.path from back b where b.node = p_from;
end;

-- The ring that an open edge would close, its first node again at its end; null where it closes
-- none. Holds a lock until the transaction ends, so that of two edges that would close one together
-- the later sees the earlier.
create function edge_ring(p_tenant int, p_src uuid, p_kind text, p_dst uuid) returns uuid[]
language plpgsql as $$
declare
  v_path uuid[];
begin
  if p_kind not in ('led_to', 'supersedes', 'learned_in', 'part_of', 'depends_on') then
    return null;
  end if;
  -- Lock, then look: the statement after the lock has a snapshot that sees the other's edge.
  perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
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

-- An edge, or the greater weight on the one that stands. Answers {id}, or {problem: self} or
-- {problem: cycle, path}: from the effect over what it led to back to the cause and the effect; or
-- {problem: ring, path}: from a task over what it waits for to itself.
create or replace function link(p_tenant int, p_id uuid, p_src uuid, p_kind text, p_dst uuid,
                                p_weight real, p_meta jsonb)
returns jsonb
language plpgsql as $$
declare
  v_src uuid := p_src;
  v_dst uuid := p_dst;
  v_kind text := p_kind;
  v_ring uuid[];
  v_id uuid;
begin
  perform enter(p_tenant);
  if p_src = p_dst then
    return jsonb_build_object('problem', 'self');
  end if;
  if p_kind = 'caused_by' then
    v_src := p_dst; v_dst := p_src; v_kind := 'led_to';
  end if;
  v_ring := edge_ring(p_tenant, v_src, v_kind, v_dst);
  if v_ring is not null then
    return jsonb_build_object('path', v_ring, 'problem',
      case v_kind when 'depends_on' then 'ring' else 'cycle' end);
  end if;
  insert into edge as e (tenant, id, src, kind, dst, weight, meta)
  values (p_tenant, p_id, v_src, v_kind, v_dst, p_weight, p_meta)
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set weight = greatest(e.weight, excluded.weight)
  returning e.id into v_id;
  return jsonb_build_object('id', v_id);
end $$;

-- Edges of a file. An open one is refused where it would close a ring, with the path.
create or replace function carry_edge(p_tenant int, p_row jsonb, p_strategy text, p_reads text[],
                                      p_writes text[])
returns jsonb
language plpgsql as $$
declare
  v_edge edge := jsonb_populate_record(null::edge, p_row);
  v_old edge;
  v_ring uuid[];
begin
  perform from memory m where m.tenant = p_tenant and m.id = v_edge.src and m.status <> 'deleted'
    and covers(p_writes, m.scope);
  if not found then
    return jsonb_build_object('outcome', 'refused', 'reason', 'from: no memory ' || v_edge.src);
  end if;
  perform from memory m where m.tenant = p_tenant and m.id = v_edge.dst and m.status <> 'deleted'
    and covers(p_reads, m.scope);
  if not found then
    return jsonb_build_object('outcome', 'refused', 'reason', 'to: no memory ' || v_edge.dst);
  end if;
  select e.* into v_old from edge e
  where e.tenant = p_tenant and (e.id = v_edge.id or v_edge.known_to is null and e.known_to is null
    and e.src = v_edge.src and e.kind = v_edge.kind and e.dst = v_edge.dst) limit 1 for update;
  if v_old.id is not null then
    if p_strategy = 'skip' or v_old.known_to is not null or v_edge.weight = v_old.weight
       or p_strategy = 'merge' and v_edge.weight <= v_old.weight then
      return jsonb_build_object('outcome', 'skipped');
    end if;
    update edge e set weight = v_edge.weight where e.tenant = p_tenant and e.id = v_old.id;
    return jsonb_build_object('outcome', 'updated');
  end if;
  v_ring := case when v_edge.known_to is null
    then edge_ring(p_tenant, v_edge.src, v_edge.kind, v_edge.dst) end;
  if v_ring is not null then
    return jsonb_build_object('outcome', 'refused', 'reason', format('would close a %s over %s',
      case v_edge.kind when 'depends_on' then 'ring of tasks that wait for each other'
                       else 'causal cycle' end, array_to_string(v_ring, ', ')));
  end if;
  perform carry_row('edge', p_row);
  return jsonb_build_object('outcome', 'created');
end $$;

-- What becomes a task, or stands again as one, with links that it has already.
create function task_in_order() returns trigger language plpgsql as $$
declare
  v_ring uuid[];
begin
  perform pg_advisory_xact_lock(hashtext('reverie.causal'), new.tenant);
  select new.id || task_path(new.tenant, e.dst, new.id) into v_ring
  from edge e
  where e.tenant = new.tenant and e.src = new.id and e.kind = 'depends_on' and e.known_to is null
    and task_path(new.tenant, e.dst, new.id) is not null
  limit 1;
  if v_ring is not null then
    raise exception using errcode = 'check_violation', constraint = 'task_in_order',
      message = to_jsonb(v_ring)::text;
  end if;
  return null;
end $$;
create trigger task_in_order after update of kind, status on memory for each row
  when (new.kind = 'task' and new.status in ('active', 'archived')
        and (old.kind <> 'task' or old.status = 'deleted'))
  execute function task_in_order();
