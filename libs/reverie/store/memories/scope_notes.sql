-- name: scope_note_memories
-- Active memories after (scope $4, id $5), in that order, as shown; anchors are none.
select * from memory_view($1) m
where m.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status = 'active'
  and m.kind not in ('file', 'entity')
  and ($4::text is null or (m.scope, m.id) > ($4, $5::uuid))
order by m.scope, m.id limit $6;

-- name: scope_note_edges
-- The open edges from memories of a list to active ones that are notes too.
select e.src, e.dst, e.kind from edge e join memory m on m.tenant = $1 and m.id = e.dst
where e.tenant = $1 and e.src = any($2::uuid[]) and e.known_to is null and m.status = 'active'
  and m.kind not in ('file', 'entity') and scope_matches($3, m.scope) and scope_matches($4, m.scope)
order by e.src, e.kind, e.dst;

-- name: scope_note_summary
-- The summary of a scope that the grants $3 cover.
select content from summary where tenant = $1 and scope = $2 and scope_matches($3, scope);

-- name: scope_note_forgotten_ids
-- Which of the short ids $3 belong to forgotten memories of a scope.
select short from memory
where tenant = $1 and scope = $2 and short = any($3::text[]) and status = 'deleted';
