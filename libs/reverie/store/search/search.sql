-- name: edges_among
-- The open edges between memories of a list.
select id, src, dst, kind, weight from edge
where tenant = $1 and src = any($2::uuid[]) and dst = any($2::uuid[]) and known_to is null
order by src, dst, kind;

-- name: answer_memories
-- Readable memories of a list of ids. Their use and whether they are linked, which take most of the time of
-- `memory_view`, are left out.
select id, scope, kind, tier, status, key, version, content, summary, hash, confidence, pinned, session, agent,
       source, git, metadata, valid_from, valid_to, superseded_by, created, updated, enriched, tags, turns,
       staleness, stale_grade, stale_reason, confirmed
from memory_view($1) where tenant = $1 and id = any($2::uuid[]) and scope_matches($3, scope)
  and status <> 'deleted' and (kind not in ('file', 'entity') or node_is_visible($1, id, scope, $3));

-- name: search_words
-- BM25 (k1 1.2, b 0.75; Robertson & Zaragoza 2009) over the postings of $2; $5 documents of mean length $6.
-- Only documents of the scopes $3 count, so that a score says nothing of others.
-- Texts of 20 words or fewer count as 18 to 20 long, because each contains one statement. Documents are
-- checked from the best down, until $7 may be returned, among the best $10: so common words cost little. $9: extra
-- conditions (matches_filter), or null. Scores are returned in 32 bits, so that the planner's order of
-- addition does not decide between equal scores. Factors that are the same for all postings are computed
-- once: 1.2 * .25, 1.2 * .75 and 1 + 1.2.
with term as materialized (
  select t.no, 2.2::float8
    * ln(1 + (greatest($5::float8, d.df) - d.df + 0.5::float8) / (d.df + 0.5::float8)) as idf
  from (select distinct term_hash(l) as no
        from unnest(tsvector_to_array(to_tsvector('english', $2))) l) t
  cross join lateral (
    select count(*)::float8 as df from posting_entry p where p.tenant = $1 and p.term = t.no
      and ('*' = any($3) or exists (
        select from memory m
        where m.tenant = $1 and m.doc = p.entry >> 28 and scope_matches($3, m.scope)))) d
), scored as (
  select p.entry >> 28 as doc, sum(
      t.idf / (1::float8 + (0.3::float8
          + greatest((p.entry & 1048575)::float8, 18 + 0.1::float8 * (p.entry & 1048575))
            * (0.9::float8 / greatest($6::float8, 18 + 0.1::float8 * $6)))
        / ((p.entry >> 20) & 255)::float8)
    )::real as score
  from term t join posting_entry p on p.tenant = $1 and p.term = t.no
  group by p.entry >> 28 order by score desc, p.entry >> 28 limit $10::int
)
select s.doc, s.score
from scored s cross join lateral (
  select from memory m
  where m.tenant = $1 and m.doc = s.doc and m.status = any($4::text[]) and scope_matches($3, m.scope)
    and ($8::text[] is null or m.kind = any($8))
    and ($9::jsonb is null or matches_filter($1, m.id, m.tier, coalesce(m.valid_from, m.created), $9)) limit 1) m
order by s.score desc, s.doc limit $7;

-- name: search_turn_words
-- BM25 over turns of sessions that the grants $3 cover, of agent $4 (null: any), up to $8 (null: now). Only
-- turns that this reader may read count, so that a score says nothing of others.
with found as materialized (
  select p.term, p.doc, p.tf::float8 as tf, p.len::float8 as len
  from (select distinct term_hash(l) as no
        from unnest(tsvector_to_array(to_tsvector('english', $2))) l) t
  join turn_posting p on p.tenant = $1 and p.term = t.no
  where ('*' = any($3) and $4::text is null) or exists (
    select from turn t join session x on x.tenant = $1 and x.id = t.session
    where t.tenant = $1 and t.doc = p.doc and scope_matches($3, x.scope) and ($4 is null or x.agent = $4))
), term as (
  select f.term, 2.2::float8
    * ln(1 + (greatest($5::float8, count(*)) - count(*) + 0.5::float8) / (count(*) + 0.5::float8)) as idf
  from found f group by f.term
), scored as (
  select f.doc, sum(
      t.idf / (1::float8 + (0.3::float8
          + greatest(f.len, 18 + 0.1::float8 * f.len)
            * (0.9::float8 / greatest($6::float8, 18 + 0.1::float8 * $6))) / f.tf)
    ) as score
  from found f join term t on t.term = f.term
  group by f.doc order by score desc, f.doc
)
select t.id, t.session, t.ordinal, t.role, shown_turn_text($1, t.id, t.content) as content, t.at, t.scope,
       t.agent, s.score
from scored s cross join lateral (
  select t.id, t.session, t.ordinal, t.role, t.content, t.at, x.scope, x.agent
  from turn t join session x on x.tenant = $1 and x.id = t.session
  where t.tenant = $1 and t.doc = s.doc and t.role <> 'tool'
    and scope_matches($3, x.scope) and ($4::text is null or x.agent = $4)
    and ($8::timestamptz is null or t.at <= $8) limit 1) t
order by s.score desc, s.doc limit $7;

-- name: search_vectors_exact
-- Nearest memories by cosine, every vector compared; a memory counts by its nearest chunk. Of the $8 nearest
-- chunks half are looked up, from the nearest on, if they may be returned. Vectors of an earlier text do not
-- count. The distance is computed below the sort: else whole vectors would be sorted.
select f.doc, max(f.score) as score
from (
  select m.doc, (1 - n.d)::float8 as score
  from (
    select v.chunk, (v.v <=> $2) + 0 as d from vec_bge_small_en_v1_5 v
    where v.tenant = $1 order by d, v.chunk limit $8::int
  ) n
  cross join lateral (select c.memory from chunk c where c.tenant = $1 and c.no = n.chunk limit 1) c
  cross join lateral (
    select m.doc from memory m
    where m.tenant = $1 and m.id = c.memory and m.status = any($4::text[]) and scope_matches($3, m.scope)
      and m.enriched_version >= m.version
      and ($6::text[] is null or m.kind = any($6))
      and ($7::jsonb is null or matches_filter($1, m.id, m.tier, coalesce(m.valid_from, m.created), $7))
    limit 1) m
  order by n.d, n.chunk limit $8::int / 2
) f
group by f.doc order by score desc, f.doc limit $5;

-- name: search_sparse
-- Among given memories, those whose chunks have weighted words, by the best inner product.
select m.doc, max(-(v.v <#> $2))::float8 as score, count(*) > 1 as long
from unnest($3::bigint[]) s (doc)
cross join lateral (
  select m.id, m.doc from memory m
  where m.tenant = $1 and m.doc = s.doc and scope_matches($4, m.scope)
    and m.enriched_version >= m.version limit 1) m
join chunk c on c.tenant = $1 and c.memory = m.id
join sparse_splade_tiny v on v.tenant = $1 and v.chunk = c.no
group by m.doc order by score desc, m.doc;

-- name: search_vectors_index
-- The same through the HNSW index: approximate, for tenants with many vectors; what is not in the index
-- yet is compared. What may be answered is looked up chunk by chunk, so that a plan made for this tenant
-- walks the index. A plan for all tenants, most of them small, would compare all vectors.
select n.doc, max(n.score) as score from (
  (select m.doc, (1 - (v.v <=> $2))::float8 as score
   from vec_bge_small_en_v1_5 v
   cross join lateral (select c.memory from chunk c where c.tenant = $1 and c.no = v.chunk limit 1) c
   cross join lateral (
     select m.doc from memory m
     where m.tenant = $1 and m.id = c.memory and m.status = any($4::text[]) and scope_matches($3, m.scope)
      and m.enriched_version >= m.version
       and ($6::text[] is null or m.kind = any($6))
       and ($7::jsonb is null or matches_filter($1, m.id, m.tier, coalesce(m.valid_from, m.created), $7))
     limit 1) m
   where v.tenant = $1 and v.indexed
   order by v.v <=> $2 limit $5::int * 2)
  union all
  (select m.doc, (1 - n.d)::float8
   from (
     select v.chunk, (v.v <=> $2) + 0 as d from vec_bge_small_en_v1_5 v
     where v.tenant = $1 and not v.indexed order by d, v.chunk limit $5::int * 4
   ) n
   cross join lateral (select c.memory from chunk c where c.tenant = $1 and c.no = n.chunk limit 1) c
   cross join lateral (
     select m.doc from memory m
     where m.tenant = $1 and m.id = c.memory and m.status = any($4::text[]) and scope_matches($3, m.scope)
      and m.enriched_version >= m.version
       and ($6::text[] is null or m.kind = any($6))
       and ($7::jsonb is null or matches_filter($1, m.id, m.tier, coalesce(m.valid_from, m.created), $7))
     limit 1) m
   order by n.d, n.chunk limit $5::int * 2)
) n
group by n.doc order by score desc, n.doc limit $5;

-- name: edges_around
-- The strongest $4 open edges of each memory of a list to readable memories, without files. The two memories
-- before and after in a session are edges too, the second of half the weight.
with seed as materialized (
  select m.id, m.doc, m.session, m.created from unnest($2::bigint[]) s (doc)
  cross join lateral (
    select m.id, m.doc, m.session, m.created from memory m
    where m.tenant = $1 and m.doc = s.doc limit 1) m
)
select s.doc as near, e.doc as far, e.kind, e.weight
from seed s
cross join lateral (
  select m.doc, x.kind, x.weight
  from (
    select dst as other, kind, weight from edge
    where tenant = $1 and src = s.id and known_to is null and kind <> 'touches'
    union all
    select src, kind, weight from edge
    where tenant = $1 and dst = s.id and known_to is null and kind <> 'touches'
  ) x
  cross join lateral (
    select m.doc from memory m where m.tenant = $1 and m.id = x.other
      and m.status = any('{active,superseded}') and scope_matches($3, m.scope) limit 1) m
  order by x.weight desc, m.doc, x.kind limit $4
) e
union all
select s.doc, b.doc, 'follows', (1.0 / b.steps)::real
from seed s
cross join lateral (
  (select p.doc, row_number() over (order by p.created desc, p.id desc) as steps from memory p
   where p.tenant = $1 and p.session = s.session and (p.created, p.id) < (s.created, s.id)
     and p.status = any('{active,superseded}') and scope_matches($3, p.scope)
   order by p.created desc, p.id desc limit 2)
  union all
  (select n.doc, row_number() over (order by n.created, n.id) from memory n
   where n.tenant = $1 and n.session = s.session and (n.created, n.id) > (s.created, s.id)
     and n.status = any('{active,superseded}') and scope_matches($3, n.scope)
   order by n.created, n.id limit 2)
) b
where s.session is not null;

-- name: edges_of_named_nodes
-- From the files of the paths $3 (whose names in lower case are $4) and the entities of the keys $5 to the
-- newest $6 readable memories that touch each. A node counts less the more readable memories touch it; one
-- that over 50 touch does not count, and of 1000 touching memories those are looked at that may be read.
with node as materialized (
  (select a.node as id from anchor a
   where a.tenant = $1 and a.name = any($4::text[]) and exists (
     select from unnest($3::text[]) p (path)
     where a.path = p.path or right(a.path, length(p.path) + 1) = '/' || p.path
        or right(p.path, length(a.path) + 1) = '/' || a.path)
   order by a.node limit 20)
  union
  (select m.id from memory m
   where m.tenant = $1 and m.key = any($5::text[]) and m.kind = 'entity' and m.status = 'active'
     and scope_matches($2, m.scope)
   order by m.id limit 20)
)
select n.doc as near, t.doc as far, 'touches' as kind, (1 / sqrt(greatest(t.touching - 1, 1)))::real as weight
from node d
cross join lateral (select m.doc from memory m where m.tenant = $1 and m.id = d.id limit 1) n
cross join lateral (
  select m.doc, count(*) over () as touching,
         row_number() over (order by least(m.valid_from, m.created) desc, m.id desc) as place
  from (select e.src from edge e
        where e.tenant = $1 and e.dst = d.id and e.kind = 'touches' and e.known_to is null limit 1000) e
  cross join lateral (
    select m.id, m.doc, m.valid_from, m.created from memory m
    where m.tenant = $1 and m.id = e.src and m.status = any('{active,superseded}')
      and scope_matches($2, m.scope) limit 1) m
) t
where t.touching <= 50 and t.place <= $6
order by n.doc, t.place;

-- name: candidate_facts
-- The facts of readable memories (see recall_facts), and whether each passes a filter. Memories are looked up
-- one by one: other plans depend on statistics.
select f.packed, f.scope,
       m.status = any($5::text[]) and ($6::text[] is null or m.kind = any($6))
         and ($7::jsonb is null or matches_filter($1, f.id, f.tier, f.at, $7)) as passes
from unnest($3::bigint[]) g (doc)
cross join lateral (select * from recall_facts($1, $2) f where f.doc = g.doc limit 1) f
cross join lateral (select m.status, m.kind from memory m where m.tenant = $1 and m.id = f.id limit 1) m
where scope_matches($4, f.scope);
