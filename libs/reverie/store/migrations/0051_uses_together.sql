-- The uses of several readers in one transaction: a commit for each recall cost more than the rest of it.
drop function use_memories(int, text, uuid[], text[], real, real, int);

-- Counts the use of each memory by the reader beside it, once; boosts them, and less their strongest
-- neighbours, those once a reader. A session that is gone uses nothing. Answers how many uses were new.
create function use_memories(p_tenant int, p_by text[], p_memories uuid[], p_reads text[],
                             p_boost real, p_near real, p_fan_out int)
returns int
language plpgsql as $$
declare
  v_by text[];
  v_fresh uuid[];
begin
  perform enter(p_tenant);
  with first as (
    insert into memory_use_session (tenant, used_by, memory)
    select p_tenant, g.by, m.id
    from unnest(p_by, p_memories) g (by, memory)
    join memory m on m.tenant = p_tenant and m.id = g.memory
    where covers(p_reads, m.scope) and m.status <> 'deleted'
      and (not starts_with(g.by, 'session ') or exists (
        select from session s where s.tenant = p_tenant and s.id = substr(g.by, 9)::uuid))
    order by m.id, g.by
    on conflict do nothing
    returning used_by, memory
  ) select array_agg(used_by), array_agg(memory) into v_by, v_fresh from first;
  if v_fresh is null then return 0; end if;
  insert into memory_use as u (tenant, memory, count, last, boost)
  select p_tenant, b.memory, sum(b.used), max(b.at), sum(b.boost)
  from (
    select x.by, x.memory, max(x.used) as used, max(x.at) as at, max(x.boost) as boost
    from (
      select f.by, f.memory, 1 as used, now() as at, p_boost as boost
      from unnest(v_by, v_fresh) f (by, memory)
      union all
      select f.by, n.other, 0, null, p_near
      from unnest(v_by, v_fresh) f (by, memory) cross join lateral (
        select e.other from (
          select dst as other, weight from edge
          where tenant = p_tenant and src = f.memory and known_to is null and kind <> 'touches'
          union all
          select src, weight from edge
          where tenant = p_tenant and dst = f.memory and known_to is null and kind <> 'touches'
        ) e join memory m on m.tenant = p_tenant and m.id = e.other
        where m.status = 'active' and covers(p_reads, m.scope)
        order by e.weight desc, e.other limit p_fan_out
      ) n
    ) x
    group by x.by, x.memory
  ) b
  group by b.memory order by b.memory
  on conflict (tenant, memory) do update set
    count = u.count + excluded.count,
    last = coalesce(excluded.last, u.last),
    boost = least(1, u.boost + excluded.boost),
    last_then = case when u.hour < excluded.hour then u.last else u.last_then end,
    boost_then = case when u.hour < excluded.hour then u.boost else u.boost_then end,
    hour = excluded.hour;
  return cardinality(v_fresh);
end $$;
