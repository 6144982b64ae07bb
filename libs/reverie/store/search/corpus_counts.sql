-- name: corpus
-- The number of a tenant's memories of the scopes $2, and their mean length in words: the input of BM25.
select count(*)::float8 as documents, coalesce(avg(terms), 1)::float8 as mean_length
from memory where tenant = $1 and terms > 0 and scope_matches($2, scope);

-- name: turn_corpus
-- The same for turns of sessions that the grants $2 cover, of agent $3 (null: any).
select count(*)::float8 as documents, coalesce(avg(t.terms), 1)::float8 as mean_length
from session x join turn t on t.tenant = $1 and t.session = x.id
where x.tenant = $1 and t.terms > 0 and scope_matches($2, x.scope) and ($3::text is null or x.agent = $3);

-- name: vector_count
-- The number of a tenant's vectors, counted up to $2, and of those in its partition's index by the last
-- statistics. They decide between exact and approximate search.
select count(*) as own, coalesce((
  select c.reltuples from pg_index i join pg_class c on c.oid = i.indexrelid
  join pg_am a on a.oid = c.relam
  where a.amname = 'hnsw' and i.indrelid = (
    select v.tableoid from vec_bge_small_en_v1_5 v where v.tenant = $1 order by v.chunk limit 1)
  limit 1), 0)::float8 as around
from (select from vec_bge_small_en_v1_5 where tenant = $1 limit $2) v;
