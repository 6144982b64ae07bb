-- name: change_mark_processed
-- Marks a change as applied as it was read ($3), unless its body was replaced in the meantime.
update git_event set processed = now()
where tenant = $1 and id = $2 and processed is null and md5(body::text) = $3;

-- name: project_lock
-- Locks a project's anchors against concurrent updates.
select pg_advisory_xact_lock(hashtextextended('staleness ' || $2, $1::int));

-- name: anchors_by_name
-- Anchors of a project by the last component of their path, and of those that they had before.
select node, path, path as known_as from anchor
where tenant = $1 and project = $2 and name = any($3::text[])
union all
select b.node, a.path, b.path from file_rename b
join anchor a on a.tenant = $1 and a.node = b.node
where b.tenant = $1 and b.project = $2 and b.name = any($3::text[])
order by path, node, known_as;

-- name: anchors_of_memory
-- The anchors of a project that a memory touches.
select a.node, a.path from edge e join anchor a on a.tenant = $1 and a.node = e.dst
where e.tenant = $1 and e.src = $2 and e.kind = 'touches' and e.known_to is null
  and a.project = $3
order by a.path, a.node;

-- name: anchored_memories
-- Memories that touch the anchors $2 (or of them the one $4), with their file data and its time.
select m.id as memory, e.dst as node, m.scope, m.kind, m.key, e.meta, m.git, m.metadata -> 'promoted' as promoted,
       left(m.content, 4000) as content, coalesce(c.at, least(m.valid_from, m.created)) as known_at,
       m.checked
from edge e join memory m on m.tenant = $1 and m.id = e.src
left join git_commit c on c.tenant = $1 and c.project = $3 and c.sha = m.git ->> 'commit'
where e.tenant = $1 and e.dst = any($2::uuid[]) and e.kind = 'touches' and e.known_to is null
  and m.status = 'active' and ($4::uuid is null or m.id = $4)
order by m.id, e.dst;

-- name: file_steps
-- The changes since $4 of files whose last component is in $3, in the order they took effect.
-- Git stores whole seconds: a change took effect by the end of its second, and before it arrived.
select f.event, f.branch, f.main, f.known_at, f.facts,
       case when f.known_at = date_trunc('second', f.known_at)
            then greatest(f.known_at, least(f.known_at + interval '999999 us', g.received))
            else f.known_at end as latest
from git_file f join git_event g on g.tenant = $1 and g.id = f.event
where f.tenant = $1 and f.project = $2 and f.known_at > $4
  and (f.name = any($3::text[]) or f.old_name = any($3::text[]))
order by f.at, f.event, f.ordinal;

-- name: changes_by_commit
-- The changes of a project that led to commits.
select after, array_agg(id) as ids from git_event
where tenant = $1 and project = $2 and after = any($3::text[]) group by after order by after;

-- name: propagation_edges
-- Edges of $2 along which doubt spreads, at most $3 a memory; with the time at which the other end was known.
-- `offset 0` stops the planner from reordering: it goes from the edges to the memories by their ends, also
-- without statistics.
select s.id as near, e.other as far, e.kind, e.outward, e.weight, e.scope, e.known_at
from unnest($2::uuid[]) s (id)
cross join lateral (
  select x.other, x.kind, x.outward, x.weight, m.scope, m.known_at
  from (
    select o.dst as other, o.kind, true as outward, o.weight from edge o
    where o.tenant = $1 and o.src = s.id and o.known_to is null and o.kind = 'led_to'
    union all
    select n.src, n.kind, false, n.weight from (
      select i.src, i.kind, i.weight from edge i
      where i.tenant = $1 and i.dst = s.id and i.known_to is null offset 0
    ) n where n.kind = any ('{depends_on,part_of,learned_in}')
    offset 0
  ) x cross join lateral (
    select f.scope, f.status, f.kind,
           greatest(least(f.valid_from, f.created), f.checked) as known_at
    from memory f where f.tenant = $1 and f.id = x.other offset 0
  ) m
  where m.status = 'active' and m.kind not in ('file', 'entity')
  order by x.weight desc, x.other, x.kind limit $3
) e
order by near, far, e.kind;

-- name: file_rename_add
-- Earlier names of a file.
insert into file_rename (tenant, node, project, path, name)
select $1, $2, $3, p.path, p.name from unnest($4::text[], $5::text[]) p (path, name)
on conflict do nothing;

-- name: unlocated_memories
-- Memories of a project that the grants $3 and $4 cover, which touch files but have no lines, symbols or blob
-- of them.
select m.id as memory, left(m.content, 8000) as content, least(m.valid_from, m.created) as created_at,
       array_agg(coalesce(e.meta ->> 'named', a.path) order by a.path) as files
from anchor a
join edge e on e.tenant = $1 and e.dst = a.node and e.kind = 'touches' and e.known_to is null
join memory m on m.tenant = $1 and m.id = e.src
where a.tenant = $1 and a.project = $2 and m.status = 'active' and m.kind <> 'session'
  and scope_matches($3, m.scope) and scope_matches($4, m.scope) and ($5::uuid is null or m.id < $5)
  and not e.meta ?| '{lines,symbols,blob}'
group by m.id, m.content, m.valid_from, m.created
order by m.id desc limit $6;

-- name: memories_writable
-- Those of the memories $2 in a project that the grants $3 and $4 cover.
select id, version from memory
where tenant = $1 and id = any($2::uuid[]) and status = 'active' and scope_matches($3, scope)
  and scope_matches($4, scope) and split_part(scope, '/', 1) = 'project' and split_part(scope, '/', 2) = $5;

-- name: outbox_add
-- Events of one subject, for the outbox.
select enqueue_event($1, e.id, $2, e.payload, $4)
from jsonb_to_recordset($3) e (id uuid, payload jsonb);

-- name: edge_put
-- An open edge that cannot close a causal cycle: touches or relates_to.
insert into edge as e (tenant, id, src, kind, dst, weight, meta)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant, src, kind, dst) where known_to is null
  do update set weight = greatest(e.weight, excluded.weight), meta = e.meta || excluded.meta;
