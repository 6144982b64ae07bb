-- name: search_vectors_candidates
-- As above, for the chunks $6 of the memories $9, the nearest when the table $8 was read, and all new ones:
-- `fresh` of them, by transactions from $7 on. A chunk never changes its memory. Rows restored from a backup
-- may have a future transaction number. At least one row is returned, which states whether the table still
-- exists, on a server that was not restarted.
with s as materialized (
  select pg_postmaster_start_time() || ' ' || 'vec_bge_small_en_v1_5'::regclass::oid = $8 as same
), fresh as materialized (
  select v.chunk from vec_bge_small_en_v1_5 v where v.tenant = $1 and v.inserted_xid >= $7::text::xid8
    and v.inserted_xid < pg_snapshot_xmax(pg_current_snapshot())
)
select f.id, f.score, s.same, (select count(*) from fresh) as fresh
from s left join (
  select m.id, max(v.score) as score
  from (select * from unnest($6::bigint[], $9::uuid[]) u (chunk, memory) union
        select f.chunk, c.memory from fresh f join chunk c on c.tenant = $1 and c.no = f.chunk) n
  cross join lateral (
    select (1 - (v.v <=> $2))::float8 as score from vec_bge_small_en_v1_5 v
    where v.tenant = $1 and v.chunk = n.chunk limit 1) v
  cross join lateral (
    select m.id from memory m
    where m.tenant = $1 and m.id = n.memory and m.status = any($4::text[]) and scope_matches($3, m.scope)
    limit 1) m
  group by m.id order by score desc, m.id limit $5
) f on s.same
order by f.score desc, f.id;

-- name: vectors_all
-- All vectors of a tenant, up to $2: their chunks, the memories of these, and themselves, each as
-- Postgres sends them, one after another; which table they are of, since which start of the server, and
-- the oldest transaction under way.
select pg_postmaster_start_time() || ' ' || 'vec_bge_small_en_v1_5'::regclass::oid as source,
       pg_snapshot_xmin(pg_current_snapshot())::text as since,
       string_agg(int8send(v.chunk), ''::bytea) as chunks,
       string_agg(uuid_send(v.memory), ''::bytea) as memories,
       string_agg(halfvec_send(v.v), ''::bytea) as vectors
from (select v.chunk, v.v, c.memory from vec_bge_small_en_v1_5 v
      join chunk c on c.tenant = $1 and c.no = v.chunk where v.tenant = $1 limit $2) v;
