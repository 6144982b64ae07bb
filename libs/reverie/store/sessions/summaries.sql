-- name: summary_outdated_lines
-- Outdated lines of summaries, by their sources. For imported summaries without known sources: the memories
-- that were deleted, replaced, archived or edited after they were written.
select l.scope, l.content from summary_lines($1, $2, null) l where not l.is_current
union all
select s.scope, m.content
from summary s cross join lateral (
  select k.content from memory k
  where k.tenant = $1 and k.scope = s.scope and k.status in ('superseded', 'archived', 'deleted')
    and k.updated >= s.updated
  union all
  select v.content from memory_version v join memory k on k.tenant = $1 and k.id = v.memory
  where v.tenant = $1 and k.scope = s.scope and v.known_to >= s.updated and v.content <> k.content) m
where s.tenant = $1 and scope_matches($2, s.scope) and not exists (
  select from summary_version v where v.tenant = $1 and v.scope = s.scope and v.version = s.version);

-- name: summary_input_memories
-- Active memories of a scope that a summary may draw on, the weightiest first.
select * from memory_view($1)
where id = any(array(
  select b.id from memory b
  where b.tenant = $1 and b.scope = $2 and b.status = 'active' and b.kind not in ('file', 'entity')
    and contradicted_by($1, b.id, b.scope, coalesce(b.confirmed, b.created)) is null
  order by b.pinned desc, b.confidence desc, least(b.valid_from, b.created) desc, b.id limit $3))
order by pinned desc, confidence desc, least(valid_from, created) desc, id;

-- name: summary_state
-- The sources of the newest version of a scope's summary, and the time up to which it includes changes; `now`
-- is the moment of reading.
select now() as now, v.seen, coalesce(v.complete, false) as complete,
       coalesce(v.memories, '{}') as memories, coalesce(v.versions, '{}') as versions
from (select) x left join (
  select w.* from summary_version w join summary s
    on s.tenant = $1 and s.scope = w.scope and s.version = w.version
  where w.tenant = $1 and w.scope = $2) v on true;

-- name: summary_changed_memories
-- Active memories of the scope $2: those of $3, those changed since $4, and those found by the run $5; at
-- most $6.
select * from memory_view($1)
where id = any(array(
  select b.id from memory b
  where b.tenant = $1 and b.id = any($3::uuid[]) and b.scope = $2 and b.status = 'active'
  union
  (select c.id from memory c
   where c.tenant = $1 and c.scope = $2 and c.status = 'active' and c.updated >= $4
     and c.kind not in ('file', 'entity')
   order by c.updated desc limit $6)
  union
  select d.memory from dream_decision d join memory e on e.tenant = $1 and e.id = d.memory
  where d.tenant = $1 and d.run = $5 and e.scope = $2 and e.status = 'active'
    and e.kind not in ('file', 'entity')))
  and contradicted_by($1, id, scope, coalesce(confirmed, created)) is null
order by id;

-- name: summary_list
-- The summaries of scopes that the grants $2 cover, of one scope $3 or all, by scope after $4.
select scope, version, content, tokens, updated from summary
where tenant = $1 and scope_matches($2, scope) and ($3::text is null or scope = $3)
  and ($4::text is null or scope > $4)
order by scope limit $5;

-- name: summary_versions
-- The versions of the summary of scope $3 that the grants $2 cover, newest first below $4.
select version, tokens, created as created_at, run from summary_version
where tenant = $1 and scope_matches($2, scope) and scope = $3 and ($4::int is null or version < $4)
order by version desc limit $5;

-- name: summary_sources
-- The lines of summaries with the original text of their memories: the newest of the scopes $2, or the
-- versions $3.
select * from summary_lines($1, $2, $3) order by scope, version, no;

-- name: summary_sentences
-- The sentences of a language model on the scopes $2, as far as all memories that they rest on stand as they
-- were; with the memories and their texts. An older sentence is not shown, and not deleted.
select n.scope, x.item ->> 'text' as content, array_agg(s.memory::uuid order by s.memory) as memories,
       array_agg(s.version::int order by s.memory) as versions,
       array_agg(m.content order by s.memory) as texts
from summary_narrative n
cross join lateral jsonb_array_elements(n.content) with ordinality x (item, no)
cross join lateral jsonb_each_text(x.item -> 'memories') s (memory, version)
left join memory m on m.tenant = $1 and m.id = s.memory::uuid
left join memory_version b
  on b.tenant = $1 and b.memory = s.memory::uuid and b.version = s.version::int
where n.tenant = $1 and scope_matches($2, n.scope)
group by n.scope, x.no, x.item
having bool_and(m.status is not distinct from 'active' and m.scope = n.scope
                and coalesce(b.content, m.content) = m.content
                and contradicted_by($1, m.id, m.scope, coalesce(m.confirmed, m.created)) is null)
order by n.scope, x.no;

-- name: narrative_state
-- What a language model wrote of scope $2, what it was shown since, and up to when it knows the changes; `now`
-- is the moment of reading.
select now() as now, n.content, n.shown, n.seen
from (select) x left join summary_narrative n on n.tenant = $1 and n.scope = $2;

-- name: narrative_changes
-- Memories of scope $2 for a language model to read, at most $6: those of $3 and those changed since $4 (null:
-- all), unless it was shown them in that version ($5); the weightiest first.
select b.id, b.version, b.kind, b.content from memory b
where b.tenant = $1 and b.scope = $2 and b.status = 'active'
  and b.kind not in ('file', 'entity', 'session')
  and (b.id = any($3::uuid[])
       or ($4::timestamptz is null or b.updated >= $4)
          and ($5::jsonb ->> b.id::text) is distinct from b.version::text)
  and contradicted_by($1, b.id, b.scope, coalesce(b.confirmed, b.created)) is null
order by b.pinned desc, b.confidence desc, b.updated desc, b.id limit $6;
