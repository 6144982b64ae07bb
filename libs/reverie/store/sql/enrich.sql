-- name: enrich_read
-- The memory to enrich, and whether that was done for this version.
select id, version, enriched_version, scope, kind, content, session, agent, git, created,
       valid_from, coalesce(carried >= version, false) as carried,
       (select t.name from tenant t where t.id = $1) as tenant_name
from memory where tenant = $1 and id = $2 and status <> 'deleted';

-- name: derive
-- Writes what was derived from a memory at a version: memory, version, what was made, vectors, words, headers.
select derive($1, $2, $3, $4, $5, $6, $7);

-- name: vectors_walk
-- Puts $2 of a tenant's vectors, the oldest of those that are not there, into the index that is walked.
update vec_bge_small_en_v1_5 set walked = true
where tenant = $1 and chunk in (
  select v.chunk from vec_bge_small_en_v1_5 v where v.tenant = $1 and not v.walked
  order by v.chunk limit $2 for update skip locked)
returning chunk;

-- name: vectors_known
-- Vectors and weighted words that stand already for texts of these hashes.
select distinct on (c.hash) c.hash, v.v, s.v as words
from chunk c join vec_bge_small_en_v1_5 v on v.tenant = $1 and v.chunk = c.no
left join sparse_splade_tiny s on s.tenant = $1 and s.chunk = c.no
where c.tenant = $1 and c.hash = any($2::bytea[]) order by c.hash, s.v is null, c.no;

-- name: anchor_file
-- The node of a file in a project, made where it is missing.
select anchor_file($1, $2, $3, $4, $5, $6);

-- name: anchor_files
-- The nodes that a memory speaks of, made where they are missing: memory, project, scope, files, entities.
select anchor_all($1, $2, $3, $4, $5, $6);

-- name: edge_put
-- An open edge that cannot close a causal cycle: touches or relates_to.
insert into edge as e (tenant, id, src, kind, dst, weight, meta)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant, src, kind, dst) where known_to is null
  do update set weight = greatest(e.weight, excluded.weight), meta = e.meta || excluded.meta;

-- name: cause_candidates
-- Active memories of the scope that may have led to a memory or come of it: those that touch the
-- nodes $4 or are near in its session, but for those whose causal edge to it was told.
with near as (
  (select e.src as id from unnest($4::uuid[]) n (node)
   cross join lateral (
     select e.src from edge e
     where e.tenant = $1 and e.dst = n.node and e.kind = 'touches' and e.known_to is null
     order by e.src desc limit $6) e)
  union
  (select m.id from memory m
   where m.tenant = $1 and m.session = $5 and m.scope = $3 order by m.id desc limit $6)
)
select m.id, m.kind, m.content, coalesce(m.valid_from, m.created) as at, m.session,
       array(select jsonb_array_elements_text(m.git -> 'files')) as files
from near join memory m on m.tenant = $1 and m.id = near.id
where m.id <> $2 and m.scope = $3 and m.status = 'active'
  and m.kind <> all ('{file,entity,session}')
  and not exists (
    select from edge c where c.tenant = $1 and c.known_to is null
      and c.kind = any ('{led_to,supersedes,learned_in,part_of}') and not c.meta ? 'rule'
      and ((c.src = $2 and c.dst = m.id) or (c.src = m.id and c.dst = $2)))
order by m.id desc limit $6;
