-- name: index_snapshot
-- The snapshot of this transaction, and the hour up to which it counts uses. `source` names this table and this
-- start of the server. After a crash of one server process, transaction numbers may be used again: only the
-- reset of statistics shows that, so it is part of `source`.
-- A replica does not name the transactions in progress, so all from the oldest on count as unseen.
select concat_ws(' ', pg_postmaster_start_time(), (select stats_reset from pg_stat_wal),
                 'memory_change'::regclass::oid) as source,
       case when pg_is_in_recovery() then format('%1$s:%1$s:', pg_snapshot_xmin(pg_current_snapshot()))
            else pg_current_snapshot()::text end as snapshot,
       date_trunc('hour', now()) as hour,
       (select count(*) from memory where tenant = $1) as memories,
       (select count(*) from vec_bge_small_en_v1_5 where tenant = $1) as vectors;

-- name: index_facts
-- The facts of all memories, 108 bytes each, and their scopes.
select string_agg(f.packed, ''::bytea order by f.doc) as facts,
       array_agg(f.scope order by f.doc) as scopes
from recall_facts($1, $2) f;

-- name: index_words
-- The words of all memories: of each the memory's number, the term's, and how often it occurs.
select string_agg(int8send(m.doc) || int4send(term_hash(w.lexeme)::int)
                  || int2send(cardinality(w.positions)::int2), ''::bytea) as words
from memory m cross join lateral unnest(m.words) w where m.tenant = $1 and m.terms > 0;

-- name: index_passages
-- The passages of all memories: the memory's number, the vector, and the learned sparse words with their
-- lengths in bytes.
select string_agg(int8send(m.doc), ''::bytea order by c.no) as docs,
       string_agg(halfvec_send(v.v), ''::bytea order by c.no) as vectors,
       string_agg(int4send(coalesce(octet_length(sparsevec_send(s.v)), 0)), ''::bytea order by c.no) as sizes,
       string_agg(coalesce(sparsevec_send(s.v), ''::bytea), ''::bytea order by c.no) as sparse
from chunk c
join memory m on m.tenant = $1 and m.id = c.memory
join vec_bge_small_en_v1_5 v on v.tenant = $1 and v.chunk = c.no
left join sparse_splade_tiny s on s.tenant = $1 and s.chunk = c.no
where c.tenant = $1;

-- name: index_edges
-- All open edges between memories, without those to files: their ends, weight, and kind by its place in $2.
select string_agg(int8send(a.doc) || int8send(b.doc) || float4send(e.weight)
                  || int2send((array_position($2::text[], e.kind) - 1)::int2), ''::bytea) as edges
from edge e
join memory a on a.tenant = $1 and a.id = e.src
join memory b on b.tenant = $1 and b.id = e.dst
where e.tenant = $1 and e.known_to is null and e.kind <> 'touches';

-- name: index_changes
-- The terms of the question $2, and the memories that changed since the snapshot $3, $4 at most. A memory that
-- another contradicts depends on it too. Rows restored from a backup may have a future transaction number.
with changed as materialized (
  select distinct c.memory from memory_change c
  where c.tenant = $1 and c.xid >= pg_snapshot_xmin($3::text::pg_snapshot)
    and c.xid < pg_snapshot_xmax(pg_current_snapshot())
    and not pg_visible_in_snapshot(c.xid, $3::text::pg_snapshot)
  limit $4::int
)
select concat_ws(' ', pg_postmaster_start_time(), (select stats_reset from pg_stat_wal),
                 'memory_change'::regclass::oid) as source,
       case when pg_is_in_recovery() then format('%1$s:%1$s:', pg_snapshot_xmin(pg_current_snapshot()))
            else pg_current_snapshot()::text end as snapshot,
       date_trunc('hour', now()) as hour,
       array(select distinct term_hash(l)::int
             from unnest(tsvector_to_array(to_tsvector('english', $2))) l) as terms,
       array(select memory from changed union
             select x.other from changed k cross join lateral (
               select e.src as other from edge e where e.tenant = $1 and e.dst = k.memory
                 and e.kind = 'contradicts' and e.known_to is null
               union all
               select e.dst from edge e where e.tenant = $1 and e.src = k.memory
                 and e.kind = 'contradicts' and e.known_to is null) x) as changed;

-- name: index_entries
-- What the index holds of the memories $2: see the statements above for each column.
with own as materialized (
  select m.id, m.doc, m.words, m.terms from memory m where m.tenant = $1 and m.id = any($2::uuid[])
), facts as materialized (
  select f.* from own o cross join lateral (
    select f.doc, f.scope, f.packed from recall_facts($1, $3) f where f.doc = o.doc limit 1) f
), passage as materialized (
  select o.doc, c.no, v.v as vector, coalesce(sparsevec_send(s.v), ''::bytea) as sparse
  from own o
  cross join lateral (select c.no from chunk c where c.tenant = $1 and c.memory = o.id offset 0) c
  cross join lateral (
    select v.v from vec_bge_small_en_v1_5 v where v.tenant = $1 and v.chunk = c.no limit 1) v
  left join lateral (
    select s.v from sparse_splade_tiny s where s.tenant = $1 and s.chunk = c.no limit 1) s on true
), near as materialized (
  select o.doc, e.id, e.src, e.dst, e.kind, e.weight from own o cross join lateral (
    select * from edge e where e.tenant = $1 and e.src = o.id and e.known_to is null
    union
    select * from edge e where e.tenant = $1 and e.dst = o.id and e.known_to is null) e
  where e.kind <> 'touches'
)
select (select string_agg(f.packed, ''::bytea order by f.doc) from facts f) as facts,
       (select array_agg(f.scope order by f.doc) from facts f) as scopes,
       (select array_agg(o.id) from own o) as present,
       (select string_agg(int8send(o.doc) || int4send(term_hash(w.lexeme)::int)
                          || int2send(cardinality(w.positions)::int2), ''::bytea)
        from own o cross join lateral unnest(o.words) w where o.terms > 0) as words,
       (select string_agg(int8send(p.doc), ''::bytea order by p.no) from passage p) as docs,
       (select string_agg(halfvec_send(p.vector), ''::bytea order by p.no) from passage p) as vectors,
       (select string_agg(int4send(octet_length(p.sparse)), ''::bytea order by p.no) from passage p) as sizes,
       (select string_agg(p.sparse, ''::bytea order by p.no) from passage p) as sparse,
       (select string_agg(int8send(a.doc) || int8send(b.doc) || float4send(e.weight)
                          || int2send((array_position($4::text[], e.kind) - 1)::int2), ''::bytea)
        from (select distinct n.id, n.src, n.dst, n.kind, n.weight from near n) e
        cross join lateral (select m.doc from memory m where m.tenant = $1 and m.id = e.src limit 1) a
        cross join lateral (select m.doc from memory m where m.tenant = $1 and m.id = e.dst limit 1) b) as edges;

-- name: index_uses
-- The uses of memories since the hour $2, as they count now.
select m.doc, case when u.hour < date_trunc('hour', now()) then u.last else u.last_at_hour_start end as last,
       case when u.hour < date_trunc('hour', now()) then u.boost else u.boost_at_hour_start end as boost
from memory_use u join memory m on m.tenant = $1 and m.id = u.memory
where u.tenant = $1 and u.hour >= $2;

-- name: index_ranks
-- The ranks of all memories that have one: their numbers and ranks, 12 bytes each.
select string_agg(int8send(m.doc) || float4send(r.rank), ''::bytea)
from memory_rank r join memory m on m.tenant = $1 and m.id = r.memory and m.scope = r.scope
where r.tenant = $1;
