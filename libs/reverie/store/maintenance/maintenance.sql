-- name: fading_memories
-- Active memories of kinds $4 above id $3 that are older than $5 days, in scopes $2.
select * from memory_view($1) m
where m.tenant = $1 and scope_matches($2, m.scope) and m.id > $3 and m.kind = any($4::text[])
  and m.status = 'active' and not m.pinned and m.created < now() - make_interval(secs => $5 * 86400)
order by m.id limit $6;

-- name: promotable_memories
-- Active memories of kinds $3 above id $6 that were stated in $4 sessions, or whose commit contains a file
-- named in $5; once each, in the order of ids.
with evident as (
  select s.memory as id from session_utterance s where s.tenant = $1 and s.memory > $6
  group by s.memory
  having count(*) filter (where s.session <> '00000000-0000-0000-0000-000000000000') >= $4
  union
  select t.memory from memory_tag t where t.tenant = $1 and t.tag = 'agent-file' and t.memory > $6
  union
  select m.id from memory m
  where m.tenant = $1 and m.id > $6 and (m.git ->> 'commit' is not null or m.source = 'agent_file')
), candidate as materialized (
  select m.id, s.times, s.sessions, f.file
  from evident v join memory m on m.tenant = $1 and m.id = v.id
  cross join lateral (
    select coalesce(sum(s.times), 0)::int as times,
           (count(*) filter (where s.session <> '00000000-0000-0000-0000-000000000000'))::int as sessions
    from session_utterance s where s.tenant = $1 and s.memory = m.id) s
  left join lateral (
    select f as file from jsonb_array_elements_text(
      case when m.git ->> 'commit' is not null and jsonb_typeof(m.git -> 'files') = 'array'
           then m.git -> 'files' else '[]' end) f
    where lower(regexp_replace(f, '^.*/', '')) = any($5::text[]) order by f limit 1) f on true
  where scope_matches($2, m.scope) and m.status = 'active' and m.kind = any($3::text[])
    and not m.metadata ? 'derived'
    and split_part(m.scope, '/', 1) <> all('{agent,session}')
    and (s.sessions >= $4 or f.file is not null or m.source = 'agent_file'
         or exists (select from memory_tag t
                    where t.tenant = $1 and t.memory = m.id and t.tag = 'agent-file'))
    and not exists (select from edge e where e.tenant = $1 and e.src = m.id and e.kind = 'led_to'
                    and e.meta ? 'promotion')
  order by m.id limit $7
)
select m.*, c.times as said, c.sessions as said_in, c.file as agent_file
from candidate c join memory_view($1) m on m.id = c.id
where m.tenant = $1 order by m.id;

-- name: tier_candidates
-- Active memories above id $3 in scopes $2 that their use may put into another tier: those used in the
-- last $4 days, those that use has moved, and those of a session. With the days of use, and the days since
-- the last one or since the memory was written.
with used as materialized (
  select u.memory, count(distinct (u.at at time zone 'utc')::date)::int as days
  from memory_use_session u
  where u.tenant = $1 and u.at > now() - make_interval(days => $4) group by u.memory
)
select m.id, m.version, m.kind, m.scope, m.tier, coalesce(u.days, 0) as days_used,
       extract(epoch from now() - greatest(m.confirmed, m.created, s.last))::float8 / 86400 as days_idle
from (select d.memory as id from used d
      union select v.id from memory v where v.tenant = $1 and v.metadata ->> 'tier_by' = 'use'
      union select o.id from memory o
      where o.tenant = $1 and o.scope >= 'session/' and o.scope < 'session0') c
join memory m on m.tenant = $1 and m.id = c.id
left join used u on u.memory = m.id
left join memory_use s on s.tenant = $1 and s.memory = m.id
where m.id > $3 and m.status = 'active' and not m.pinned
  and m.kind not in ('file', 'entity') and scope_matches($2, m.scope)
  and m.metadata ->> 'tier_by' is distinct from 'hand'
order by m.id limit $5;

-- name: memory_uses_delete_old
-- Deletes records of memory use by sessions after $2 days; returns the number of rows.
with gone as (
  delete from memory_use_session
  where tenant = $1 and at < now() - make_interval(days => $2) returning 1
) select count(*) from gone;

-- name: maintenance_passes
-- The position of each pass.
select pass, above, rows_read from maintenance_pass where tenant = $1;

-- name: maintenance_pass_put
-- Saves the position $3 of pass $2, and how many more it processed; $5: it reached the end.
insert into maintenance_pass as p (tenant, pass, above, rows_read, ended)
values ($1, $2, $3, $4, case when $5 then clock_timestamp() end)
on conflict (tenant, pass) do update
set above = excluded.above,
    rows_read = case when p.above = '00000000-0000-0000-0000-000000000000' then 0 else p.rows_read end
             + excluded.rows_read,
    started = case when p.above = '00000000-0000-0000-0000-000000000000' then clock_timestamp()
                 else p.started end,
    ended = coalesce(excluded.ended, p.ended);

-- name: maintenance_long_memories
-- Active memories above id $3 in scopes $2 with at least $4 characters and without a summary; no sessions, and
-- no records, which have parts of their own.
select m.id, m.scope, m.kind, m.version, m.content from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and m.id > $3 and m.status = 'active'
  and m.kind not in ('file', 'entity', 'session', 'skill') and m.summary is null
  and length(m.content) >= $4 and not m.metadata ? 'record'
order by m.id limit $5;

-- name: maintenance_anchors
-- Anchors above id $3 in scopes $2, put away or not.
select m.id from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and m.id > $3 and m.kind in ('file', 'entity')
  and m.status in ('active', 'archived')
order by m.id limit $4;

-- name: maintenance_idle_anchors
-- Anchors above id $3 in scopes $2, and whether nothing touches them since $4 days.
select m.id, m.status = 'active' and m.updated < now() - make_interval(secs => $4 * 86400)
       and not exists (select from edge e where e.tenant = $1 and e.dst = m.id
                         and e.known_to is null)
       and not exists (select from edge e where e.tenant = $1 and e.src = m.id
                         and e.known_to is null) as idle
from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and m.id > $3 and m.kind in ('file', 'entity')
  and m.status in ('active', 'archived')
order by m.id limit $5;

-- name: maintenance_memories
-- Active memories above id $3 in scopes $2, no anchors.
select m.id from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and m.id > $3 and m.kind not in ('file', 'entity')
  and m.status = 'active'
order by m.id limit $4;

-- name: topic_scopes
-- Projects in scopes $2 with files or entities, each by the first of those; above $3, at most $4.
select p.scope, p.first from (
  select m.scope, min(m.id::text)::uuid as first from memory m
  where m.tenant = $1 and scope_matches($2, m.scope) and m.kind in ('file', 'entity')
    and m.scope ~ '^project/[^/]+$'
  group by m.scope
) p where p.first > $3 order by p.first limit $4;

-- name: topic_centres
-- Files and entities of scope $2 that at least $3 of its active memories of at least $4 sessions touch,
-- with those memories; what over $5 memories touch is left out.
select a.content as name, t.memories
from memory a
cross join lateral (
  select array_agg(distinct m.id) as memories
  from edge e join memory m on m.tenant = $1 and m.id = e.src
  left join session_utterance s on s.tenant = $1 and s.memory = m.id
    and s.session <> '00000000-0000-0000-0000-000000000000'
  where e.tenant = $1 and e.dst = a.id and e.kind = 'touches' and e.known_to is null
    and m.scope = $2 and m.status = 'active' and m.kind not in ('file', 'entity', 'session')
  having count(distinct m.id) >= $3 and count(distinct coalesce(s.session, m.session)) >= $4
) t
where a.tenant = $1 and a.scope = $2 and a.kind in ('file', 'entity') and a.status = 'active'
  and (select count(*) from (
         select from edge x where x.tenant = $1 and x.dst = a.id and x.kind = 'touches'
           and x.known_to is null limit $5 + 1) few) between $3 and $5
order by a.id;

-- name: maintenance_state_memories
-- Active memories above id $3 in scopes $2 that may be a number or a JSON object or array.
select m.id, m.kind, m.content from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and m.id > $3 and m.kind not in ('file', 'entity')
  and m.status = 'active'
  and (m.content ~ '^\s*[{[].*[]}]\s*$' or length(m.content) < 200 and m.content ~ '\d\s?%?\s*$')
order by m.id limit $4;

-- name: maintenance_frequent_keys
-- Active memories in scopes $2 whose key was written more than $3 times: probably counters.
select min(m.id::text) filter (where m.status = 'active')::uuid as id, m.key,
       (count(*) + coalesce(sum(m.version - 1) filter (where m.status = 'active'), 0))::bigint as versions
from memory m
where m.tenant = $1 and m.key is not null and scope_matches($2, m.scope)
  and m.key not like 'file:%' and m.key not like 'session:%' and m.status <> 'deleted'
group by m.scope, m.key
having count(*) + coalesce(sum(m.version - 1) filter (where m.status = 'active'), 0) > $3
   and bool_or(m.status = 'active')
order by versions desc, m.scope, m.key limit $4;

-- name: reflection_scope
-- The scope of $2 with the most active memories since it was last reflected on, $3 at least; what was
-- derived does not count.
select m.scope from memory m
left join maintenance_pass p on p.tenant = $1 and p.pass = 'reflect ' || m.scope
where m.tenant = $1 and scope_matches($2, m.scope) and m.status = 'active' and not m.metadata ? 'derived'
  and m.kind not in ('file', 'entity', 'session', 'task')
  and m.id > coalesce(p.above, '00000000-0000-0000-0000-000000000000')
group by m.scope having count(*) >= $3
order by count(*) desc, m.scope limit 1;

-- name: reflection_input
-- The newest active memories of scope $2 that were not derived.
select m.id, m.kind, m.content from memory m
where m.tenant = $1 and m.scope = $2 and m.status = 'active' and not m.metadata ? 'derived'
  and m.kind not in ('file', 'entity', 'session', 'task')
order by m.id desc limit $3;
