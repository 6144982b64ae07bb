-- name: memory_change
-- Changes a memory that stands; answers the new version or a problem.
select memory_change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: memory_versions
-- The versions of a memory below $4, newest first, each with who made it and why. The first was
-- made by who wrote the memory.
select h.version, h.content, h.status, h.kind, h.key, h.tags, h.known_from, h.known_to,
       coalesce(b.who, case when h.version = 1 then h.author end) as who,
       coalesce(b.why, case when h.version = 1 then 'remembered' end) as why
from (
  select m.version, m.content, m.status, m.kind, m.key, coalesce(m.who, m.agent) as author,
         array(select t.tag from memory_tag t where t.tenant = $1 and t.memory = m.id order by t.tag)
           as tags, m.known_from, null::timestamptz as known_to
  from memory m
  where m.tenant = $1 and m.id = $2 and scope_matches($3, m.scope) and m.status <> 'deleted'
  union all
  select v.version, v.content, v.status, v.state ->> 'kind', v.state ->> 'key', coalesce(m.who, m.agent),
         array(select jsonb_array_elements_text(coalesce(v.state -> 'tags', '[]'))),
         v.known_from, v.known_to
  from memory m join memory_version v on v.tenant = $1 and v.memory = m.id
  where m.tenant = $1 and m.id = $2 and scope_matches($3, m.scope) and m.status <> 'deleted'
) h left join memory_version b on b.tenant = $1 and b.memory = $2 and b.version = h.version - 1
where h.version < $4
order by h.version desc limit $5;

-- name: memory_version_get
-- One earlier version with all its columns.
select v.version, v.content, v.state from memory_version v
join memory m on m.tenant = $1 and m.id = v.memory
where v.tenant = $1 and v.memory = $2 and v.version = $4 and scope_matches($3, m.scope)
  and m.status <> 'deleted';
