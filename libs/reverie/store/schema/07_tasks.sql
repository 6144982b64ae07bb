-- Tasks: memories of the kind `task` with a state, a claim, and tasks that they wait for.

-- The state of a task and who has claimed it until when. A task without a row is still to do.
create table task (
  tenant int not null,
  memory uuid not null,
  state text not null default 'todo' check (state in ('todo', 'doing', 'blocked', 'done')),
  claimed_by text,
  claimed_until timestamptz,
  updated timestamptz not null default now(),
  primary key (tenant, memory),
  check ((claimed_by is null) = (claimed_until is null))
) partition by hash (tenant);
create index task_done on task (tenant, updated) where state = 'done';
call partition_by_tenant('task');
call protect_tenant_table('task');

-- The row of a task as it was at a moment (`infinity`: now); before its first move it was to do.
create function task_row_as_of(p_tenant int, p_memory uuid, p_at timestamptz)
returns table (id uuid, scope text, status text, successor uuid, state text, claimed_by text,
               claimed_until timestamptz)
language sql stable
begin atomic
  select m.id, m.scope, m.status, m.superseded_by, coalesce(t.state, 'todo'), t.claimed_by,
         t.claimed_until
  from memory m left join task t on t.tenant = p_tenant and t.memory = m.id
  where m.tenant = p_tenant and m.id = p_memory and m.kind = 'task' and m.status <> 'deleted'
    and m.known_from <= p_at and m.created <= p_at
  union all
  select m.id, coalesce(v.state ->> 'scope', m.scope), v.status,
         (v.state ->> 'superseded_by')::uuid, coalesce(v.state -> 'task' ->> 'state', 'todo'),
         v.state -> 'task' ->> 'claimed_by', (v.state -> 'task' ->> 'claimed_until')::timestamptz
  from memory_version v join memory m on m.tenant = p_tenant and m.id = v.memory
  where v.tenant = p_tenant and v.memory = p_memory and v.known_from <= p_at and p_at < v.known_to
    and m.status <> 'deleted'
    and coalesce(v.state ->> 'kind', m.kind) = 'task';
end;

-- A task as it was shown at a moment (`infinity`: now). One that waits for others is blocked, one
-- whose claim expired is to do again. It waits for unfinished tasks: for what it depends on, or what
-- superseded that; a forgotten task holds nothing up.
create function task_as_of(p_tenant int, p_memory uuid, p_at timestamptz)
returns table (memory uuid, state text, claimed_by text, claimed_until timestamptz,
               depends_on uuid[], waits_in text[], claimable boolean)
language sql stable
begin atomic
  with recursive needed (id, scope, status, next, state) as (
    select k.id, k.scope, k.status, k.successor, k.state
    from edge e cross join lateral task_row_as_of(p_tenant, e.dst, p_at) k
    where e.tenant = p_tenant and e.src = p_memory and e.kind = 'depends_on'
      and e.known_from <= p_at and (e.known_to is null or p_at < e.known_to)
    union
    select k.id, k.scope, k.status, k.successor, k.state
    from needed n cross join lateral task_row_as_of(p_tenant, n.next, p_at) k
    where n.status = 'superseded'
  ), waited as (
    select coalesce(array_agg(n.id order by n.id), '{}') as ids,
           coalesce(array_agg(n.scope order by n.id), '{}') as scopes
    from needed n
    where n.status in ('active', 'archived') and n.id <> p_memory and n.state <> 'done'
  ), shown as (
    select k.id, k.status, w.ids, w.scopes,
           k.claimed_until > least(p_at, clock_timestamp()) as held, k.claimed_by, k.claimed_until,
           case when k.state = 'done' then 'done'
                when k.state = 'blocked' or w.ids <> '{}' then 'blocked'
                when k.claimed_until <= least(p_at, clock_timestamp()) then 'todo'
                else k.state end as state
    from task_row_as_of(p_tenant, p_memory, p_at) k cross join waited w
  )
  select s.id, s.state, case when s.held then s.claimed_by end,
         case when s.held then s.claimed_until end, s.ids, s.scopes,
         s.state in ('todo', 'doing') and s.held is not true and s.status = 'active'
  from shown s;
end;

-- The tasks from one that waits to one that it waits for, over others; null where it does not wait
-- for it. The successor of a superseded task takes its place; a forgotten task ends the path.
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

-- Refuses a memory that becomes a task, or an active task again, while its existing links would
-- make it wait for itself.
create function check_task_cycle() returns trigger
language plpgsql as $$
declare
  v_cycle uuid[];
begin
  perform pg_advisory_xact_lock(hashtext('reverie.causal'), new.tenant);
  select new.id || task_path(new.tenant, e.dst, new.id) into v_cycle
  from edge e
  where e.tenant = new.tenant and e.src = new.id and e.kind = 'depends_on' and e.known_to is null
    and task_path(new.tenant, e.dst, new.id) is not null
  limit 1;
  if v_cycle is not null then
    raise exception using errcode = 'check_violation', constraint = 'check_task_cycle',
      message = to_jsonb(v_cycle)::text;
  end if;
  return null;
end $$;
create trigger check_task_cycle after update of kind, status on memory for each row
  when (new.kind = 'task' and new.status in ('active', 'archived')
        and (old.kind <> 'task' or old.status = 'deleted'))
  execute function check_task_cycle();

-- Claims (p_seconds given), releases (p_state null) or moves a task. Returns {version, event?},
-- without an event where only the end of a claim changed; or {problem:
-- not_found|forbidden|no_task|closed|held|waits|blocked|done, ...}, and then nothing was written.
create function task_move(
  p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[], p_writes text[], p_agent text,
  p_state text, p_seconds float8, p_actor text, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_lock record;
  v_memory memory;
  v_task task;
  v_holder text;
  v_state text;
  v_waits uuid[];
  v_until timestamptz := clock_timestamp() + make_interval(secs => p_seconds);
  v_event uuid := gen_random_uuid();
begin
  v_lock := lock_for_change(p_tenant, p_memory, p_reads, p_writes);
  if v_lock.problem is not null and v_lock.problem ->> 'problem' <> 'made' then
    return v_lock.problem;
  end if;
  v_memory := v_lock.memory;
  if v_memory.kind <> 'task' then
    return jsonb_build_object('problem', 'no_task', 'kind', v_memory.kind);
  end if;
  if v_memory.status <> 'active' then
    return jsonb_build_object('problem', 'closed', 'status', v_memory.status);
  end if;
  insert into task (tenant, memory) values (p_tenant, p_memory) on conflict do nothing;
  select t.* into v_task from task t where t.tenant = p_tenant and t.memory = p_memory;
  v_holder := case when v_task.claimed_until > clock_timestamp() then v_task.claimed_by end;
  if v_holder <> p_agent then
    return jsonb_build_object('problem', 'held', 'by', v_holder, 'until', v_task.claimed_until);
  end if;
  v_state := case when p_seconds is not null then 'doing'
                  when p_state is not null then p_state
                  when v_task.state = 'doing' then 'todo'
                  else v_task.state end;
  if p_seconds is not null and v_task.state in ('blocked', 'done') then
    return jsonb_build_object('problem', v_task.state);
  end if;
  if v_state in ('doing', 'done') and (p_seconds is not null or v_state <> v_task.state) then
    select array(select w.id from unnest(s.depends_on, s.waits_in) w (id, scope)
                 where scope_matches(p_reads, w.scope)) into v_waits
    from task_as_of(p_tenant, p_memory, 'infinity') s where s.depends_on <> '{}';
    if found then
      return jsonb_build_object('problem', 'waits', 'for', v_waits);
    end if;
  end if;
  if p_seconds is null and v_state = v_task.state and (v_state = 'doing' or v_task.claimed_by is null)
  then
    return jsonb_build_object('version', v_memory.version);
  end if;
  if p_seconds is null or v_holder is null then
    perform save_version(p_tenant, v_memory, p_actor, format(
      'task: %s to %s', v_task.state,
      case when p_seconds is null then v_state else v_state || ', claimed by ' || p_agent end));
  end if;
  update task t
  set state = v_state, updated = now(),
      claimed_by = case when p_seconds is not null then p_agent
                        when v_state = 'doing' then t.claimed_by end,
      claimed_until = case when p_seconds is not null and v_holder is not null
                             then greatest(t.claimed_until, v_until)
                           when p_seconds is not null then v_until
                           when v_state = 'doing' then t.claimed_until end
  where t.tenant = p_tenant and t.memory = p_memory;
  if p_seconds is not null and v_holder is not null then
    return jsonb_build_object('version', v_memory.version);
  end if;
  update memory m
  set version = m.version + 1,
      enriched_version = m.enriched_version + (m.enriched_version = m.version)::int
  where m.tenant = p_tenant and m.id = p_memory;
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'task', p_memory, v_memory.version + 1,
                               p_headers, v_event);
  return jsonb_build_object('version', v_memory.version + 1, 'event', v_event);
end $$;
