-- name: merge_target
-- The merge target at $4 (null: now) of a memory that the grants $3 cover; null if it was not merged.
select nullif(merge_target($1, m.id, $4), m.id) from memory m
where m.tenant = $1 and m.id = $2 and scope_matches($3, m.scope);

-- name: merge_targets
-- The merge targets of the merged memories of a list.
select m.id, merge_target($1, m.id, null) as into from memory m
where m.tenant = $1 and m.id = any($2::uuid[]) and m.merged_into is not null;

-- name: memory_get
-- One memory that the grants $3 cover and that was not forgotten.
select * from memory_view($1) where tenant = $1 and id = $2 and scope_matches($3, scope) and status <> 'deleted'
  and (kind not in ('file', 'entity') or node_is_visible($1, id, scope, $3));

-- name: memory_list
-- Newest first below cursor $3: filters are scope $4, kinds $5, status $6, tag $7, session $8, true at $10, key $11; each null for all.
select * from memory_view($1) m
where m.tenant = $1 and scope_matches($2, m.scope)
  and ($3::uuid is null or m.id < $3)
  and ($4::text is null or m.scope = $4)
  and (m.kind = any($5::text[]) or ($5::text[] is null and m.kind not in ('file', 'entity')))
  and (m.kind not in ('file', 'entity') or node_is_visible($1, m.id, m.scope, $2))
  and m.status = any($6::text[])
  and ($7::text is null or exists (select from memory_tag t
       where t.tenant = $1 and t.tag = $7 and t.memory = m.id))
  and ($8::uuid is null or m.session = $8)
  and ($10::timestamptz is null or coalesce(m.valid_from, '-infinity') <= $10
       and $10 < coalesce(m.valid_to, 'infinity'))
  and ($11::text is null or m.key = $11)
  and (m.status <> 'superseded' or not exists (select from memory x
       where x.tenant = $1 and x.id = m.id and x.merged_into is not null))
order by m.id desc limit $9;

-- name: memories_by_ids
-- The memories of a list of ids, as shown.
select * from memory_view($1) where tenant = $1 and id = any($2::uuid[]) and scope_matches($3, scope)
  and status <> 'deleted' and (kind not in ('file', 'entity') or node_is_visible($1, id, scope, $3));

-- name: memory_neighbours
-- Memories one edge away from $2 at $5 (null: now), strongest first.
select n.id, n.kind,
       case when n.kind in ('file', 'entity') then n.content else coalesce(n.key, left(n.content, 120)) end as label,
       e.kind as type, e.direction, e.weight
from (
  select dst as other, kind, 'out' as direction, weight from edge_as_of($1, $5) where src = $2
  union all
  select src, kind, 'in', weight from edge_as_of($1, $5) where dst = $2
) e cross join lateral (
  select k.* from memory_as_of($1, $5) k
  where k.id = e.other and k.status = any('{active,superseded}') and scope_matches($3, k.scope)
  limit 1) n
order by e.weight desc, n.id limit $4;

-- name: scope_names
-- The names of the scopes of a list $3, and of their parents, that the grants $2 cover.
select n.scope, n.name from scope_name n
where n.tenant = $1 and scope_matches($2, n.scope) and n.scope = any($3::text[]);

-- name: memory_by_short_id
-- The memories whose id ends as $2, or is between $3 and $4, and that existed at $6 (null: now): six are enough
-- to show an ambiguous id. With $7 the forgotten ones, too.
select id, case when status = 'deleted' then 'forgotten' else coalesce(key, left(content, 60)) end as label
from memory
where tenant = $1 and scope_matches($5, scope) and (status <> 'deleted' or $7)
  and ($6::timestamptz is null or created <= $6)
  and (short = right($2, 8) and right(replace(id::text, '-', ''), length($2)) = $2
       or id between $3 and $4)
  and (kind not in ('file', 'entity') or node_is_visible($1, id, scope, $5))
order by id desc limit 6;

-- name: fact_list
-- Active facts newest first below $3, of scope $4 and of keys like $5; null for all.
select * from memory_view($1) m
where m.tenant = $1 and scope_matches($2, m.scope) and m.status = 'active'
  and m.key like 'learn:%' and m.metadata ? 'fact'
  and ($3::uuid is null or m.id < $3)
  and ($4::text is null or m.scope = $4)
  and ($5::text is null or m.key like $5)
order by m.id desc limit $6;
