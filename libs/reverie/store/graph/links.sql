-- name: link_ends
-- Memories that may be linked or shown in a refusal: those that the grants $3 cover.
select id, scope,
       case when kind = 'file' then content else coalesce(key, left(content, 80)) end as label
from memory
where tenant = $1 and id = any($2::uuid[]) and scope_matches($3, scope) and status <> 'deleted';

-- name: link_open
-- An open edge with the scopes of its ends, if the grants $3 cover both.
select e.id, e.src, e.kind, e.dst, s.scope as src_scope, d.scope as dst_scope
from edge e
join memory s on s.tenant = $1 and s.id = e.src
join memory d on d.tenant = $1 and d.id = e.dst
where e.tenant = $1 and e.id = $2 and e.known_to is null
  and scope_matches($3, s.scope) and scope_matches($3, d.scope)
  and s.status <> 'deleted' and d.status <> 'deleted';
