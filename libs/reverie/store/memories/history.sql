-- name: edges_around_as_of
-- As edges_around, of what was known at $5.
select s.doc as near, e.doc as far, e.kind, e.weight
from memory s
cross join lateral (
  select m.doc, x.kind, x.weight
  from (
    select dst as other, kind, weight from edge_as_of($1, $5) where src = s.id and kind <> 'touches'
    union all
    select src, kind, weight from edge_as_of($1, $5) where dst = s.id and kind <> 'touches'
  ) x join memory_as_of($1, $5) m on m.id = x.other
  where m.status = any('{active,superseded}') and scope_matches($3, m.scope)
  order by x.weight desc, m.doc, x.kind limit $4
) e
where s.tenant = $1 and s.doc = any($2::bigint[])
order by e.weight desc, near, far, e.kind;

-- name: search_words_as_of
-- BM25 (as search_words) over what was known at $3: an exact scan of rows and versions. $8: what else is
-- asked of it (as matches_filter, but files), or null.
with known as materialized (
  select k.doc, k.words, $8::jsonb is null or (
      ($8->'tiers' is null or $8->'tiers' ? k.tier)
      and ($8->'tags' is null
           or k.tags @> array(select jsonb_array_elements_text($8->'tags')))
      and ($8->>'since' is null
           or coalesce(k.valid_from, k.created) >= ($8->>'since')::timestamptz)
      and ($8->>'until' is null or coalesce(k.valid_from, k.created) < ($8->>'until')::timestamptz)
      and ($8->>'valid_at' is null
           or (coalesce(k.valid_from, '-infinity') <= ($8->>'valid_at')::timestamptz
               and ($8->>'valid_at')::timestamptz < coalesce(k.valid_to, 'infinity')))) as fits
  from memory_as_of($1, $3) k
  where k.tenant = $1 and scope_matches($4, k.scope) and k.status = any($5::text[])
    and (k.kind = any($6::text[]) or ($6::text[] is null and k.kind not in ('file', 'entity')))
), hit as (
  select k.doc, k.fits, w.lexeme, cardinality(w.positions)::float8 as tf, word_count(k.words)::float8 as len
  from known k cross join lateral unnest(k.words) w
  where w.lexeme = any(tsvector_to_array(to_tsvector('english', $2)))
), corpus as (
  select count(*)::float8 as documents, greatest(avg(word_count(k.words)), 1)::float8 as mean from known k
), term as (
  select h.lexeme, ln(1 + (c.documents - count(*) + 0.5::float8) / (count(*) + 0.5::float8)) as idf
  from hit h cross join corpus c group by h.lexeme, c.documents
)
select h.doc, sum(t.idf * h.tf * 2.2::float8
         / (h.tf + 1.2::float8 * (0.25::float8 + 0.75::float8
           * greatest(h.len, 18 + 0.1::float8 * h.len) / greatest(c.mean, 18 + 0.1::float8 * c.mean)))) as score
from hit h join term t using (lexeme) cross join corpus c
where h.fits
group by h.doc order by score desc, h.doc limit $7;

-- name: memories_as_of
-- The memories of a list of ids as they were known at $4.
select * from memory_as_of($1, $4) where tenant = $1 and id = any($2::uuid[]) and scope_matches($3, scope)
  and status <> 'deleted' and (kind not in ('file', 'entity') or node_is_visible($1, id, scope, $3));

-- name: candidates_as_of
-- The memories of a list of numbers as they were known at $4, and the numbers of what replaced them.
select k.*, s.doc as successor
from memory_as_of($1, $4) k left join memory s on s.tenant = $1 and s.id = k.superseded_by
where k.tenant = $1 and k.doc = any($2::bigint[]) and scope_matches($3, k.scope) and k.status <> 'deleted'
  and (k.kind not in ('file', 'entity') or node_is_visible($1, k.id, k.scope, $3));

-- name: edges_as_of
-- The edges between memories of a list that were open at $3.
select id, src, dst, kind, weight from edge_as_of($1, $3)
where src = any($2::uuid[]) and dst = any($2::uuid[])
order by src, dst, kind;

-- name: provenance_turns
-- The source turns of a memory, from sessions of agent $4 (null: any).
select t.id, t.session, t.ordinal, t.role, shown_turn_text($1, t.id, t.content) as content, t.at
from memory_turn o join memory m on m.tenant = $1 and m.id = o.memory
join turn t on t.tenant = $1 and t.id = o.turn
join session s on s.tenant = $1 and s.id = t.session
where o.tenant = $1 and o.memory = $2 and scope_matches($3, m.scope) and scope_matches($3, s.scope)
  and ($4::text is null or s.agent = $4)
order by t.session, t.ordinal limit 200;

-- name: provenance_session
-- The session a memory was learned in.
select s.id, s.agent, s.external_id, s.project, s.branch, s.started, s.ended
from memory m join session s on s.tenant = $1 and s.id = m.session
where m.tenant = $1 and m.id = $2 and scope_matches($3, m.scope) and scope_matches($3, s.scope);

-- name: provenance_chain
-- The memories that a memory replaced, step by step, the latest first.
with recursive chain (id, step) as (
  select $2::uuid, 0
  union all
  select e.dst, c.step + 1 from chain c
  join edge e on e.tenant = $1 and e.src = c.id and e.kind = 'supersedes' and e.known_to is null
  where c.step < 100
)
select m.id, m.version, m.content, m.created, m.agent, c.step
from chain c join memory m on m.tenant = $1 and m.id = c.id
where c.step > 0 and scope_matches($3, m.scope) and m.status <> 'deleted'
order by c.step, m.id;
