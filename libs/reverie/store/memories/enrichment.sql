-- name: enrichment_memories
-- The memories to enrich, and whether that was done for this version.
select id, version, enriched_version, scope, kind, content, metadata, session, agent, git, created,
       valid_from, coalesce(imported_version >= version, false) as carried,
       (select t.name from tenant t where t.id = $1) as tenant_name
from memory where tenant = $1 and id = any($2::uuid[]) and status <> 'deleted';

-- name: text_embeddings
-- Existing vectors and weighted words for texts of these hashes.
select distinct on (c.hash) c.hash, v.v, s.v as words
from chunk c join vec_bge_small_en_v1_5 v on v.tenant = $1 and v.chunk = c.no
left join sparse_splade_tiny s on s.tenant = $1 and s.chunk = c.no
where c.tenant = $1 and c.hash = any($2::bytea[]) order by c.hash, s.v is null, c.no;

-- name: cause_candidates
-- For each of the memories $2 (scopes $3, sessions $4): active ones of its scope that may be its cause or
-- effect, $7 at most. They touch its nodes (the $5th memory touches the node $6), or are near in its session;
-- those with an explicit causal edge to it, and those later in the list, are left out.
with node as materialized (select * from unnest($5::int[], $6::uuid[]) p (n, node))
select a.id as of, x.*
from unnest($2::uuid[], $3::text[], $4::uuid[]) with ordinality a (id, scope, session, n)
cross join lateral (
  with near as (
    (select e.src as id from node p
     cross join lateral (
       select e.src from edge e
       where e.tenant = $1 and e.dst = p.node and e.kind = 'touches' and e.known_to is null
       order by e.src desc limit $7) e
     where p.n = a.n)
    union
    (select ($2::uuid[])[b.n] from node p join node b on b.node = p.node and b.n < p.n
     where p.n = a.n)
    union
    (select m.id from memory m
     where m.tenant = $1 and m.session = a.session and m.scope = a.scope
     order by m.id desc limit $7)
  )
  select m.id, m.kind, m.content, least(m.valid_from, m.created) as at, m.session,
         array(select jsonb_array_elements_text(m.git -> 'files')) as files
  from near join memory m on m.tenant = $1 and m.id = near.id
  where m.id <> all ($2[a.n:]) and m.scope = a.scope and m.status = 'active'
    and m.kind <> all ('{file,entity,session}')
    and not exists (
      select from edge c where c.tenant = $1 and c.known_to is null
        and c.kind = any ('{led_to,supersedes,learned_in,part_of}') and not c.meta ? 'rule'
        and ((c.src = a.id and c.dst = m.id) or (c.src = m.id and c.dst = a.id)))
  order by m.id desc limit $7) x
order by a.n, x.id desc;

-- name: enrichment_failed
-- Counts a failed attempt to enrich a memory; $3 names the error.
select note_work_failure($1, m.id, m.version, $3) from memory m where m.tenant = $1 and m.id = $2;
