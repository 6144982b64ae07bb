-- name: postings_all
-- All postings of a tenant, up to $2, as Postgres sends numbers: of each term its number, how many
-- postings it has, and these, (doc, tf, len) each; of which table, since which start of the server,
-- and the oldest transaction under way.
select pg_postmaster_start_time() || ' ' || 'posting_entry'::regclass::oid as source,
       pg_snapshot_xmin(pg_current_snapshot())::text as since,
       string_agg(int8send(t.term), ''::bytea) as terms,
       string_agg(int4send(t.many), ''::bytea) as counts,
       string_agg(t.postings, ''::bytea) as postings
from (
  select p.term, count(*)::int as many,
         string_agg(int8send(p.doc) || int2send(p.tf) || int4send(p.len), ''::bytea) as postings
  from (select term, doc, tf, len from posting where tenant = $1 order by term limit $2) p
  group by p.term
) t;

-- name: posting_changes
-- The terms of the question $2, and the memories with changed words, $5 at most, by transactions from $3 on;
-- of these the postings of the terms. `same`: whether the table is $4, on a server that was not restarted.
-- Rows restored from a backup may have a future transaction number. The bounds of an entry are computed in
-- `fresh`: under row-level security a shift is not leakproof and would prevent the use of the index. All
-- postings of a term would then be read for each document.
with term as materialized (
  select distinct term_hash(l) as no from unnest(tsvector_to_array(to_tsvector('english', $2))) l
), fresh as materialized (
  select m.doc, m.doc << 28 as least, (m.doc << 28) | 268435455 as most
  from memory m where m.tenant = $1 and m.words_xid >= $3::text::xid8
    and m.words_xid < pg_snapshot_xmax(pg_current_snapshot()) limit $5::int
), held as materialized (
  select p.term, f.doc, (p.entry >> 20) & 255 as tf, p.entry & 1048575 as len
  from fresh f cross join term t cross join lateral (
    select p.term, p.entry from posting_entry p
    where p.tenant = $1 and p.term = t.no and p.entry between f.least and f.most offset 0) p
)
select pg_postmaster_start_time() || ' ' || 'posting_entry'::regclass::oid = $4 as same,
       array(select no from term) as terms, array(select doc from fresh) as fresh,
       array(select array[h.term, h.doc, h.tf, h.len] from held h) as held;
