-- name: statement_timeout_set
-- Ends what follows in this transaction after so many milliseconds.
select set_config('statement_timeout', $2, true) where $1::int is not null;

-- name: graph_neighbours
-- One edge on from each memory of $2 at $6 (null: now), the strongest $4, to what the grants $3 cover
-- and was of status $5; the memories before and after in the session are one edge away.
select s.id as near, e.other as far
from unnest($2::uuid[]) s (id)
cross join lateral (
  select x.other, max(x.weight) as weight
  from (
    select o.dst as other, o.weight from edge_as_of($1, $6) o where o.src = s.id
    union all
    select i.src, i.weight from edge_as_of($1, $6) i where i.dst = s.id
    union all
    select b.id, 0.5 from memory me cross join lateral (
      (select p.id from memory p cross join lateral (
         select from memory_as_of($1, $6) k
         where k.id = p.id and k.status = any($5::text[]) and k.merged_into is null
           and scope_matches($3, k.scope) limit 1) k
       where p.tenant = $1 and p.session = me.session and (p.created, p.id) < (me.created, me.id)
       order by p.created desc, p.id desc limit 1)
      union all
      (select n.id from memory n cross join lateral (
         select from memory_as_of($1, $6) k
         where k.id = n.id and k.status = any($5::text[]) and k.merged_into is null
           and scope_matches($3, k.scope) limit 1) k
       where n.tenant = $1 and n.session = me.session and (n.created, n.id) > (me.created, me.id)
       order by n.created, n.id limit 1)
    ) b
    where me.tenant = $1 and me.id = s.id
  ) x cross join lateral (
    select from memory_as_of($1, $6) m
    where m.id = x.other and m.status = any($5::text[]) and scope_matches($3, m.scope) limit 1
  ) m
  group by x.other order by weight desc, x.other limit $4
) e
order by e.weight desc, near, far;

-- name: graph_nodes
-- The memories of a picture as they were known at $4 (null: now).
select id, kind, scope, status, key, created as created_at,
       case when kind in ('file', 'entity') then content else coalesce(key, left(content, 120)) end as label
from memory_as_of($1, $4) where id = any($2::uuid[]) and scope_matches($3, scope) and status <> 'deleted'
  and (kind not in ('file', 'entity') or node_is_visible($1, id, scope, $3));

-- name: graph_edges
-- The edges among the memories of $2 that were open at $4 (null: now); at most $3.
select id, src as source, dst as target, kind as type, weight, meta as metadata, known_from, known_to,
       actor from edge_as_of($1, $4)
where src = any($2::uuid[]) and dst = any($2::uuid[])
order by src, dst, kind limit $3;

-- name: graph_follows
-- The session order among the memories of $2 at $5 (null: now): which memory follows which.
select m.id as source, b.id as target, 'follows' as type, m.created as known_from
from memory m cross join lateral (
  select p.id from memory p cross join lateral (
    select from memory_as_of($1, $5) k
    where k.id = p.id and k.status = any($4::text[]) and k.merged_into is null
      and scope_matches($3, k.scope) limit 1) k
  where p.tenant = $1 and p.session = m.session and (p.created, p.id) < (m.created, m.id)
  order by p.created desc, p.id desc limit 1
) b
where m.tenant = $1 and m.id = any($2::uuid[]) and b.id = any($2::uuid[])
order by source;

-- name: graph_counts
-- Nodes by kind and status that the grants $2 and the patterns $3 (null: all) cover.
select kind, status, count(*)::int as many
from memory m
where tenant = $1 and status <> 'deleted' and merged_into is null and scope_matches($2, scope)
  and ($3::text[] is null or scope_matches($3, scope))
  and (m.kind not in ('file', 'entity') or node_is_visible($1, m.id, m.scope, $2))
group by kind, status order by kind, status;

-- name: graph_follow_count
-- The number of memories that follow another in their session.
select coalesce(sum(n.many - 1), 0)::int from (
  select count(*) as many from memory m
  where m.tenant = $1 and m.session is not null and m.status <> 'deleted' and m.merged_into is null
    and scope_matches($2, m.scope)
    and ($3::text[] is null or scope_matches($3, m.scope))
  group by m.session
) n;

-- name: graph_all_edges
-- All open edges between nodes that the grants $2 and the patterns $3 (null: all) cover.
with node as materialized (
  select m.id from memory m
  where m.tenant = $1 and m.status <> 'deleted' and m.merged_into is null
    and scope_matches($2, m.scope)
    and ($3::text[] is null or scope_matches($3, m.scope))
    and (m.kind not in ('file', 'entity') or node_is_visible($1, m.id, m.scope, $2))
)
select e.src, e.dst, e.kind
from edge e join node s on s.id = e.src join node d on d.id = e.dst
where e.tenant = $1 and e.known_to is null;

-- name: impact_anchors
-- Files by the last component of their path, now or before they got another name, of one project $3
-- or of all; `path` is what they are called now.
select a.node, a.path, a.path as named from anchor a
where a.tenant = $1 and a.name = $2 and ($3::text is null or a.project = $3)
union
select a.node, a.path, b.path from file_rename b
join anchor a on a.tenant = $1 and a.node = b.node
where b.tenant = $1 and b.name = $2 and ($3::text is null or b.project = $3)
order by path, node, named;

-- name: impact_entities
-- The entities of names $2 that the grants $3 cover, of one project $4 or of all.
select id as node, content as path from memory
where tenant = $1 and kind = 'entity' and status = 'active' and key = any($2::text[])
  and scope_matches($3, scope) and node_is_visible($1, id, scope, $3) and ($4::text is null or scope = 'project/' || $4)
order by content, id;

-- name: impact_touched
-- Those of the nodes $2 that memories touch which the grants $3 cover.
select n.node from unnest($2::uuid[]) n (node)
where exists (
  select from edge e join memory m on m.tenant = $1 and m.id = e.src
  where e.tenant = $1 and e.dst = n.node and e.kind = 'touches' and e.known_to is null
    and m.status in ('active', 'superseded') and scope_matches($3, m.scope));

-- name: impact_touching
-- The first $4 memories that touch the nodes of $2, that the grants $3 cover.
select t.src as id, t.dst as node
from (
  select distinct on (e.src) e.src, e.dst from edge e
  where e.tenant = $1 and e.dst = any($2::uuid[]) and e.kind = 'touches' and e.known_to is null
  order by e.src, e.dst
) t join memory m on m.tenant = $1 and m.id = t.src
where m.status in ('active', 'superseded') and scope_matches($3, m.scope)
order by t.src limit $4;

-- name: impact_propagation_edges
-- Edges of $2 along which doubt may spread, at most $4 a memory, to what the grants $3 cover.
select s.id as near, e.other as far, e.kind, e.outward, e.weight
from unnest($2::uuid[]) s (id)
cross join lateral (
  select x.other, x.kind, x.outward, x.weight
  from (
    select o.dst as other, o.kind, true as outward, o.weight from edge o
    where o.tenant = $1 and o.src = s.id and o.known_to is null and o.kind = 'led_to'
    union all
    select i.src, i.kind, false, i.weight from edge i
    where i.tenant = $1 and i.dst = s.id and i.known_to is null
      and i.kind = any ('{depends_on,part_of,learned_in}')
  ) x join memory m on m.tenant = $1 and m.id = x.other
  where m.status in ('active', 'superseded') and scope_matches($3, m.scope)
    and m.kind not in ('file', 'entity')
  order by x.weight desc, x.other, x.kind limit $4
) e
order by near, far, e.kind;

-- name: impact_memories
-- Memories of a result, with the evidence against each.
select m.id, m.kind, m.scope, m.key, m.content, m.staleness, m.stale_grade,
       mark_evidence($1, m.id, $3) as evidence
from memory_view($1) m
where m.tenant = $1 and m.id = any($2::uuid[]) and scope_matches($3, m.scope) and m.status <> 'deleted';
