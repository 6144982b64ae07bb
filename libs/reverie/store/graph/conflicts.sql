-- name: conflict_candidates
-- Active memories of scope $2 that share rare words with the text $3, if the grants $4 cover the scope; $5
-- at most, those with the rarest words first. Frequent words count until there are 500 entries. Each is
-- read by its number alone, and its scope is looked at afterwards: read by the scope, all memories of it
-- would be gone through for each candidate.
with term as materialized (
  select d.docs
  from (select distinct term_hash(l) as no
        from unnest(tsvector_to_array(to_tsvector('english', $3))) l limit 64) t
  cross join lateral (
    select array_agg(p.entry >> 28) as docs
    from (select p.entry from posting_entry p where p.tenant = $1 and p.term = t.no
          order by p.entry desc limit 200) p) d
), rare as materialized (
  select t.docs
  from (select t.docs, sum(cardinality(t.docs)) over (
                 order by cardinality(t.docs) rows unbounded preceding) as up_to from term t) t
  where t.up_to - cardinality(t.docs) < 500
)
select m.id, m.kind, m.key, m.content, m.pinned, m.valid_from, m.valid_to
from (select y.doc, sum(1::float8 / cardinality(t.docs)) as weight
      from rare t cross join lateral unnest(t.docs) y (doc)
      group by y.doc order by weight desc, y.doc desc limit 64) y
cross join lateral (
  select m.* from memory m where m.tenant = $1 and m.doc = y.doc limit 1) m
where m.scope = $2 and m.status = 'active' and m.kind not in ('file', 'entity')
  and scope_matches($4, m.scope)
limit $5;
