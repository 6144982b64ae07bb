-- name: enrich_lock
-- The memory to enrich at exactly this version, locked; no row if it changed since.
select id, version, scope, kind, content, hash, session, agent, git from memory
where tenant = $1 and id = $2 and version = $3 and status <> 'deleted' for update;

-- name: enrich_read
-- The memory to enrich, and whether that was done for this version.
select id, version, enriched_version, scope, kind, content, session, agent, git, created,
       valid_from
from memory where tenant = $1 and id = $2 and status <> 'deleted';

-- name: enrich_done
-- Marks the version whose derived rows stand.
update memory set enriched_version = greatest(enriched_version, $3) where tenant = $1 and id = $2;

-- name: chunk_drop_vectors
-- Removes the vectors of a memory's chunks.
delete from vec_bge_small_en_v1_5 v using chunk c
where v.tenant = $1 and c.tenant = $1 and c.memory = $2 and v.chunk = c.no;

-- name: chunk_drop
-- Removes a memory's chunks.
delete from chunk where tenant = $1 and memory = $2;

-- name: chunk_add
-- Adds one chunk with its vector.
with c as (
  insert into chunk (tenant, memory, ord, start, stop, hash) values ($1, $2, $3, $4, $5, $6)
  returning no
)
insert into vec_bge_small_en_v1_5 (tenant, chunk, v) select $1, c.no, $7 from c;

-- name: vectors_known
-- Vectors that stand already for texts of these hashes.
select distinct on (c.hash) c.hash, v.v
from chunk c join vec_bge_small_en_v1_5 v on v.tenant = $1 and v.chunk = c.no
where c.tenant = $1 and c.hash = any($2::bytea[]) order by c.hash, c.no;

-- name: anchor_file
-- The node of a file in a project, made where it is missing.
select anchor_file($1, $2, $3, $4, $5, $6);

-- name: edge_put
-- An open edge that cannot close a causal cycle: touches or relates_to.
insert into edge as e (tenant, id, src, kind, dst, weight, meta)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant, src, kind, dst) where known_to is null
  do update set weight = greatest(e.weight, excluded.weight), meta = e.meta || excluded.meta;

-- name: relatives
-- Active memories of the same scope that touch the same files, by how many they share.
select o.src as id, count(*)::int as shared
from edge e join edge o on o.tenant = $1 and o.dst = e.dst and o.kind = 'touches'
  and o.known_to is null and o.src <> e.src
join memory m on m.tenant = $1 and m.id = o.src and m.status = 'active' and m.scope = $3
where e.tenant = $1 and e.src = $2 and e.kind = 'touches' and e.known_to is null
group by o.src order by shared desc, o.src desc limit $4;
