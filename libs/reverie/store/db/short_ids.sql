-- name: session_by_short_id
-- Sessions that the grants $5 cover and agent $6 (null: any) had, by a part of the id or as $7.
select id, concat_ws(' ', agent, project, external_id) as label from session
where tenant = $1 and scope_matches($5, scope)
  and ($6::text is null or agent = $6 or starts_with(agent, $6 || '/sub/'))
  and (external_id = $7 or id between $3 and $4
       or right(replace(id::text, '-', ''), length($2)) = $2)
order by id desc limit 6;

-- name: dream_by_short_id
-- Runs over scopes that the grants $5 cover, by a part of the id.
select id, scope || ' ' || status as label from dream_run
where tenant = $1 and scope_matches($5, scope)
  and (id between $3 and $4 or right(replace(id::text, '-', ''), length($2)) = $2)
order by id desc limit 6;

-- name: trace_by_short_id
-- Traces that $5 and agent $6 may see, by a part of their id or of their request's.
select id, left(query, 60) as label from recall_trace
where tenant = $1 and scopes_match_all($5, scopes)
  and ($6::text is null or agent = $6 or starts_with(agent, $6 || '/'))
  and (id between $3 and $4
       or right(id::text, least(length($2), 12)) = right($2, 12)
         and right(replace(id::text, '-', ''), length($2)) = $2
       or trace between $3 and $4)
order by id desc limit 6;

-- name: review_by_short_id
-- Reviews of memories that the grants $5 cover, by a part of the id.
select r.id, r.verdict || ' ' || r.state as label
from review r join memory m on m.tenant = $1 and m.id = r.memory
where r.tenant = $1 and scope_matches($5, m.scope) and m.status <> 'deleted'
  and (r.id between $3 and $4 or right(replace(r.id::text, '-', ''), length($2)) = $2)
order by r.id desc limit 6;

-- name: link_by_short_id
-- Open edges both of whose ends the grants $5 cover, by a part of the id; of an end, what follows the
-- last dash is compared first, which most edges fail at an eighth of the price.
select e.id, e.kind as label
from edge e
join memory s on s.tenant = $1 and s.id = e.src
join memory d on d.tenant = $1 and d.id = e.dst
where e.tenant = $1 and e.known_to is null and scope_matches($5, s.scope) and scope_matches($5, d.scope)
  and s.status <> 'deleted' and d.status <> 'deleted'
  and (e.id between $3 and $4
       or right(e.id::text, least(length($2), 12)) = right($2, 12)
         and right(replace(e.id::text, '-', ''), length($2)) = $2)
order by e.id desc limit 6;

-- name: key_by_short_id
-- Keys with grants that the caller's grants $5 cover, by a part of the id.
select id, label from api_key
where tenant = $1 and scopes_match_all($5, reads)
  and (id between $3 and $4 or right(replace(id::text, '-', ''), length($2)) = $2)
order by id desc limit 6;
