-- name: rank_changes
-- The changes of edges reported so far.
select no from edge_change where tenant = $1;

-- name: rank_edges
-- The open edges between memories of one scope that were not deleted, in parts of one scope, one kind and at
-- most $2. Each has the numbers of its ends and its weight, 20 bytes, one after another; files and entities
-- are left out.
select n.scope, n.kind,
       string_agg(int8send(n.src) || int8send(n.dst) || float4send(n.weight), ''::bytea) as edges
from (
  select s.scope, e.kind, s.doc as src, d.doc as dst, e.weight,
         (row_number() over (partition by s.scope, e.kind order by s.doc, d.doc) - 1) / $2::int as part
  from edge e
  join memory s on s.tenant = $1 and s.id = e.src
  join memory d on d.tenant = $1 and d.id = e.dst and d.scope = s.scope
  where e.tenant = $1 and e.known_to is null and e.kind not in ('touches', 'contradicts')
    and s.status in ('active', 'superseded') and d.status in ('active', 'superseded')
    and s.kind not in ('file', 'entity') and d.kind not in ('file', 'entity')
) n
group by n.scope, n.kind, n.part
order by n.scope, n.kind, n.part;

-- name: ranks_stored
-- The numbers of memories and their ranks, 12 bytes, one after another. The rank is NaN if the memory is now
-- in another scope than at the ranking.
select string_agg(int8send(m.doc)
    || float4send(case when r.scope = m.scope then r.rank else 'NaN' end), ''::bytea order by m.doc)
from memory_rank r join memory m on m.tenant = $1 and m.id = r.memory
where r.tenant = $1;

-- name: ranks_put
-- Stores ranks by the numbers of memories.
insert into memory_rank as r (tenant, memory, scope, rank)
select $1, m.id, m.scope, n.rank
from unnest($2::bigint[], $3::real[]) n (doc, rank)
join memory m on m.tenant = $1 and m.doc = n.doc
order by m.id
on conflict (tenant, memory) do update set rank = excluded.rank, scope = excluded.scope, at = now();

-- name: ranks_delete
-- Ranks of memories without edges, by their numbers, and of deleted ones.
delete from memory_rank r where r.tenant = $1 and (
  r.memory in (select m.id from unnest($2::bigint[]) n (doc) join memory m on m.tenant = $1 and m.doc = n.doc)
  or not exists (select from memory m where m.tenant = $1 and m.id = r.memory));

-- name: rank_changes_delete
-- The changes that the stored ranks include.
delete from edge_change where tenant = $1 and no = any($2::bigint[]);
