-- name: restore_memory
-- Makes an archived or forgotten memory active again and returns its event, or returns the problem.
select restore_memory($1, $2, $3, $4, $5, $6, $7, $8, $9) || jsonb_build_object('event', $7::uuid);

-- name: forget_memories
-- Forgets the memories that pass a filter, and returns their events, or the problem.
select forget_memories($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: forgettable_memory
-- A memory of any status that the grants $3 cover, also one that was forgotten; not a node.
select m.id, m.scope, m.status, m.version, m.content from memory m
where m.tenant = $1 and m.id = $2 and scope_matches($3, m.scope) and m.kind not in ('file', 'entity');

-- name: forgotten_scopes
-- The scopes whose summaries may quote the memory $2 or those that were forgotten because of it.
select distinct scope from (
  select m.scope from memory m
  where m.tenant = $1 and m.id in (select forgotten_along($1, $2)) and m.content <> ''
  union all
  select v.scope from summary_version v
  where v.tenant = $1 and v.memories && array(select forgotten_along($1, $2))) x;

-- name: summary_content_put
-- Replaces the text of a scope's summary.
update summary set content = $3 where tenant = $1 and scope = $2;

-- name: erase_memory
-- Erases a forgotten memory, with quotations that the grants $3 (null: of its own scope) cover; the number of
-- rows by table.
select name, sum(gone)::bigint as gone from erase_memory($1, $2, $3) group by name having sum(gone) > 0
order by name;

-- name: memories_quoting
-- Memories that the grants $2 cover and that contain a statement of the text $3, the newest $4.
select id from memories_quoting($1, $2, $3, $4) id;
