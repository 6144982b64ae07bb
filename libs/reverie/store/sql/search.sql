-- name: corpus
-- How many memories a tenant has, and their mean length in words: what BM25 needs.
select count(*)::float8 as documents, coalesce(avg(terms), 1)::float8 as mean_length
from memory where tenant = $1 and terms > 0;

-- name: turn_corpus
-- The same for turns.
select count(*)::float8 as documents, coalesce(avg(terms), 1)::float8 as mean_length
from turn where tenant = $1 and terms > 0;

-- name: search_words
-- BM25 (k1 1.2, b 0.75; Robertson & Zaragoza 2009) over the postings of $2; $5 documents of mean length $6.
with hit as (
  select p.doc, p.tf, p.len, count(*) over (partition by p.term) as df
  from posting p
  where p.tenant = $1 and p.term = any(array(
    select term_no(l) from unnest(tsvector_to_array(to_tsvector('english', $2))) l))
), scored as (
  select h.doc, sum(
      ln(1 + (greatest($5::float8, h.df::float8) - h.df::float8 + 0.5::float8)
             / (h.df::float8 + 0.5::float8))
      * h.tf::float8 * 2.2::float8
      / (h.tf::float8 + 1.2::float8 * (0.25::float8 + 0.75::float8 * h.len::float8 / $6::float8))
    ) as score
  from hit h group by h.doc
)
select m.id, s.score
from scored s join memory m on m.tenant = $1 and m.doc = s.doc
where m.status = any($4::text[]) and covers($3, m.scope)
  and ($8::text[] is null or m.kind = any($8))
order by s.score desc, m.id limit $7;

-- name: search_turn_words
-- BM25 over turns of sessions that the grants $3 cover and that agent $4 (null: any) had.
with hit as (
  select p.doc, p.tf, p.len, count(*) over (partition by p.term) as df
  from turn_posting p
  where p.tenant = $1 and p.term = any(array(
    select term_no(l) from unnest(tsvector_to_array(to_tsvector('english', $2))) l))
), scored as (
  select h.doc, sum(
      ln(1 + (greatest($5::float8, h.df::float8) - h.df::float8 + 0.5::float8)
             / (h.df::float8 + 0.5::float8))
      * h.tf::float8 * 2.2::float8
      / (h.tf::float8 + 1.2::float8 * (0.25::float8 + 0.75::float8 * h.len::float8 / $6::float8))
    ) as score
  from hit h group by h.doc
)
select t.id, t.session, t.ord, t.role, t.content, t.at, x.scope, x.agent, s.score
from scored s
join turn t on t.tenant = $1 and t.doc = s.doc
join session x on x.tenant = $1 and x.id = t.session
where covers($3, x.scope) and ($4::text is null or x.agent = $4) and t.role <> 'tool'
order by s.score desc, t.id limit $7;

-- name: vector_count
-- How many vectors a tenant has, counted up to $2: decides between exact and approximate.
select count(*) from (
  select from vec_bge_small_en_v1_5 where tenant = $1 limit $2
) v;

-- name: search_vectors_exact
-- Nearest memories by cosine, every vector compared; a memory counts by its nearest chunk.
select m.id, (1 - min((v.v <=> $2) + 0))::float8 as score
from vec_bge_small_en_v1_5 v
join chunk c on c.tenant = $1 and c.no = v.chunk
join memory m on m.tenant = $1 and m.id = c.memory
where v.tenant = $1 and m.status = any($4::text[]) and covers($3, m.scope)
  and ($6::text[] is null or m.kind = any($6))
group by m.id order by score desc, m.id limit $5;

-- name: iterate_index_scans
-- Lets a filtered HNSW scan go on until it has enough rows.
select set_config('hnsw.iterative_scan', 'relaxed_order', true) where $1::int is not null;

-- name: search_vectors_index
-- The same through the HNSW index: approximate, for tenants with many vectors.
select n.id, max(n.score) as score from (
  select m.id, (1 - (v.v <=> $2))::float8 as score
  from vec_bge_small_en_v1_5 v
  join chunk c on c.tenant = $1 and c.no = v.chunk
  join memory m on m.tenant = $1 and m.id = c.memory
  where v.tenant = $1 and m.status = any($4::text[]) and covers($3, m.scope)
    and ($6::text[] is null or m.kind = any($6))
  order by v.v <=> $2 limit $5::int * 2
) n
group by n.id order by score desc, n.id limit $5;
