-- name: duplicate_subjects
-- Active memories whose enrichment is done, with the vector of their beginning and their files.
select m.id, m.version, m.scope, m.kind, m.key, m.content, m.pinned, m.created, m.valid_from,
       m.valid_to, coalesce(m.imported_version >= m.version, false) as carried,
       (select v.v
        from (select c.no from chunk c
              where c.tenant = $1 and c.memory = m.id and c.ordinal = 0 limit 1) c
        cross join lateral (
          select v.v from vec_bge_small_en_v1_5 v
          where v.tenant = $1 and v.chunk = c.no limit 1) v) as vector,
       array(select e.dst::text from edge e
             cross join lateral (
               select f.kind from memory f where f.tenant = $1 and f.id = e.dst limit 1) f
             where e.tenant = $1 and e.src = m.id and e.kind = 'touches' and e.known_to is null
               and f.kind = 'file') as files
from memory m
where m.tenant = $1 and m.id = any($2::uuid[]) and m.status = 'active'
  and m.kind not in ('file', 'entity') and m.enriched_version >= m.version
order by array_position($2::uuid[], m.id);

-- name: duplicate_candidates
-- For each of the memories $2 (vectors $3, scopes $4): active ones of its scope that may be duplicates:
-- nearest, same anchors, same rare words; $5 of each. If $6 is 1, the vector index is used and unindexed
-- vectors are compared; else all are compared. Candidates are looked up in order of similarity until there
-- are enough, whatever the planner's statistics.
select s.id as of, x.*
from unnest($2::uuid[], $3::halfvec[], $4::text[]) with ordinality s (id, v, scope, n)
cross join lateral (
  with near as materialized (
    select m.id
    from ((select v.chunk, v.v <=> s.v as far from vec_bge_small_en_v1_5 v
           where v.tenant = $1 and v.indexed and $6::int = 1 order by v.v <=> s.v limit 300)
          union all
          (select n.chunk, n.far from (
             select v.chunk, (v.v <=> s.v) + 0 as far from vec_bge_small_en_v1_5 v
             where v.tenant = $1 and (not v.indexed or $6::int = 0)) n
           order by n.far, n.chunk limit 300)
          order by far, chunk limit 300) v
    cross join lateral (
      select c.memory, c.ordinal from chunk c where c.tenant = $1 and c.no = v.chunk limit 1) c
    cross join lateral (
      -- By the id alone, here and below: an index by the scope would read all of it each time.
      select m.id, m.scope, m.status from memory m where m.tenant = $1 and m.id = c.memory
      limit 1) m
    where c.ordinal = 0 and m.scope = s.scope and m.status = 'active' and m.id <> all ($2[s.n:])
    order by v.far limit $5
  ), anchored as materialized (
    select o.id
    from (select o.src as id
          from edge e
          cross join lateral (
            select o.src from edge o
            where o.tenant = $1 and o.dst = e.dst and o.kind = 'touches' and o.known_to is null
              and o.src <> all ($2[s.n:])
            order by o.src desc limit 500) o
          where e.tenant = $1 and e.src = s.id and e.kind = 'touches' and e.known_to is null
          group by o.src order by count(*) desc, o.src desc) o
    cross join lateral (
      select m.scope, m.status from memory m where m.tenant = $1 and m.id = o.id limit 1) m
    where m.scope = s.scope and m.status = 'active'
    limit $5
  ), term as materialized (
    select d.docs
    from (select term_hash(w.lexeme) as no from memory t cross join lateral unnest(t.words) w
          where t.tenant = $1 and t.id = s.id limit 64) t
    cross join lateral (
      select array_agg(p.entry >> 28) as docs
      from (select p.entry from posting_entry p where p.tenant = $1 and p.term = t.no
            order by p.entry desc limit 200) p) d
  ), worded as materialized (
    select m.id
    from (select y.doc, sum(1::float8 / cardinality(t.docs)) as weight
          from term t cross join lateral unnest(t.docs) y (doc)
          group by y.doc order by weight desc, y.doc desc) y
    cross join lateral (
      select m.id, m.scope, m.status from memory m where m.tenant = $1 and m.doc = y.doc
      limit 1) m
    where m.scope = s.scope and m.status = 'active' and m.id <> all ($2[s.n:])
    limit $5
  )
  select m.id, m.version, m.scope, m.kind, m.key, m.content, m.pinned, m.created, m.valid_from,
         m.valid_to, coalesce(m.imported_version >= m.version, false) as carried,
         (select (1 - (v.v <=> s.v))::float8
          from (select c.no from chunk c
                where c.tenant = $1 and c.memory = m.id and c.ordinal = 0 limit 1) c
          cross join lateral (
            select v.v from vec_bge_small_en_v1_5 v
            where v.tenant = $1 and v.chunk = c.no limit 1) v) as cosine,
         array(select e.dst::text from edge e
               cross join lateral (
                 select f.kind from memory f where f.tenant = $1 and f.id = e.dst limit 1) f
               where e.tenant = $1 and e.src = m.id and e.kind = 'touches' and e.known_to is null
                 and f.kind = 'file') as files
  from (select id from near union select id from anchored union select id from worded) o
  cross join lateral (
    select m.* from memory m where m.tenant = $1 and m.id = o.id limit 1) m
  where m.kind not in ('file', 'entity') and m.enriched_version >= m.version
) x
order by s.n, x.cosine desc nulls last, x.id;
