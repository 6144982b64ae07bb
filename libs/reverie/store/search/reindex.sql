-- name: reindex_position_get
-- The position at which a part of the rebuild was interrupted.
select after from reindex_progress where tenant = $1 and part = $2;

-- name: reindex_position_put
-- Saves the position of a part of the rebuild.
insert into reindex_progress (tenant, part, after) values ($1, $2, $3)
on conflict (tenant, part) do update set after = excluded.after;

-- name: reindex_position_delete
-- Deletes the position of a part of the rebuild.
delete from reindex_progress where tenant = $1 and part = $2;

-- name: reindex_memories
-- The memories after an id, in order, with the source texts of their words.
select m.id, m.key, m.content, m.metadata, array(select t.tag from memory_tag t
         where t.tenant = $1 and t.memory = m.id order by t.tag) as tags
from memory m
where m.tenant = $1 and m.id > $2 and m.status <> 'deleted' and m.merged_into is null and m.kind not in ('file', 'entity')
order by m.id limit $3;

-- name: reindex_memory_count
-- The number of memories in a rebuild.
select count(*) from memory
where tenant = $1 and status <> 'deleted' and merged_into is null and kind not in ('file', 'entity');

-- name: reindex_turn_list
-- The turns after an id, in order.
select id, role, content from turn where tenant = $1 and id > $2 order by id limit $3;

-- name: reindex_turn_count
-- The number of turns in a rebuild.
select count(*) from turn where tenant = $1;

-- name: reindex_sweep_postings
-- Deletes postings that belong to no word of an existing memory.
delete from posting p where p.tenant = $1 and not exists (
  select from (
    select m.doc, term_hash(w.lexeme) as term from memory m cross join lateral unnest(m.words) w
    where m.tenant = $1 and m.status <> 'deleted' and m.merged_into is null offset 0) said
  where said.doc = p.doc and said.term = p.term);

-- name: reindex_sweep_turns
-- Deletes postings of deleted turns.
delete from turn_posting p where p.tenant = $1 and not exists (
  select from turn t where t.tenant = $1 and t.doc = p.doc);

-- name: reindex_sweep_vectors
-- Deletes vectors whose chunk, or whose memory, was deleted. The table name is replaced by that of the
-- tenant's model.
delete from vec_bge_small_en_v1_5 v where v.tenant = $1 and not exists (
  select from chunk c join memory m on m.tenant = $1 and m.id = c.memory and m.status <> 'deleted' and m.merged_into is null
  where c.tenant = $1 and c.no = v.chunk);

-- name: reindex_sweep_chunks
-- Deletes chunks whose memory was deleted.
delete from chunk c where c.tenant = $1 and not exists (
  select from memory m where m.tenant = $1 and m.id = c.memory and m.status <> 'deleted' and m.merged_into is null);

-- name: reindex_anchors
-- Creates the anchors that file nodes lack.
insert into anchor (tenant, node, project, path, name)
select m.tenant, m.id, split_part(m.scope, '/', 2), m.content,
       lower(regexp_replace(m.content, '^.*/', ''))
from memory m
where m.tenant = $1 and m.kind = 'file' and m.status = 'active' and m.scope like 'project/%'
  and m.key = 'file:' || m.content
on conflict do nothing;
