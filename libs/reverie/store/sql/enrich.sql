-- name: enrich_lock
-- The memory to enrich at exactly this version, locked; no row if it changed since.
select id, version, scope, kind, content, hash, session, agent, git from memory
where tenant = $1 and id = $2 and version = $3 and status <> 'deleted' for update;

-- name: enrich_read
-- The memory to enrich, and whether that was done for this version.
select id, version, enriched_version, scope, kind, content, session, agent, git, created,
       valid_from, coalesce(carried >= version, false) as carried,
       (select t.name from tenant t where t.id = $1) as tenant_name
from memory where tenant = $1 and id = $2 and status <> 'deleted';

-- name: enrich_done
-- Marks the version $3 whose derived rows stand, and leaves the event that says so.
with done as (
  update memory set enriched_version = greatest(enriched_version, $3)
  where tenant = $1 and id = $2 returning id
)
select announce($1, $4, $5, $6, $7) from done;

-- name: chunk_drop
-- Removes a memory's chunks with their vectors.
with gone as (delete from chunk where tenant = $1 and memory = $2 returning no)
delete from vec_bge_small_en_v1_5 v using gone where v.tenant = $1 and v.chunk = gone.no;

-- name: chunk_add
-- Adds one chunk with its vector, and its weighted words $8 where there are any.
with c as (
  insert into chunk (tenant, memory, ord, start, stop, hash) values ($1, $2, $3, $4, $5, $6)
  returning no
), s as (
  insert into sparse_splade_tiny (tenant, chunk, v)
  select $1, c.no, $8::sparsevec from c where $8::sparsevec is not null
)
insert into vec_bge_small_en_v1_5 (tenant, chunk, v) select $1, c.no, $7 from c;

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
-- The nodes of files in a project, made where they are missing, in the order given.
select f.path as named, anchor_file($1, $2, f.path, f.name, f.id, f.hash) as node
from unnest($3::text[], $4::text[], $5::uuid[], $6::bytea[]) as f (path, name, id, hash);

-- name: edge_put
-- An open edge that cannot close a causal cycle: touches or relates_to.
insert into edge as e (tenant, id, src, kind, dst, weight, meta)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant, src, kind, dst) where known_to is null
  do update set weight = greatest(e.weight, excluded.weight), meta = e.meta || excluded.meta;

-- name: anchor_entities
-- The nodes of entities in a scope, made where they are missing, in the order given.
select n.label as named, anchor_entity($1, $2, n.label, n.sort, n.id, n.hash) as node
from unnest($3::text[], $4::text[], $5::uuid[], $6::bytea[]) as n (label, sort, id, hash);

-- name: touches_standing
-- The nodes that a memory touches by those of these names that it gave them: a file keeps its node when it moves.
select e.meta ->> 'named' as named, e.dst as node from edge e
where e.tenant = $1 and e.src = $2 and e.kind = 'touches' and e.known_to is null
  and e.meta ->> 'named' = any($3::text[]);

-- name: touches_close
-- Closes the derived edges of a memory to nodes that it no longer names.
update edge set known_to = now()
where tenant = $1 and src = $2 and kind = 'touches' and known_to is null and meta ? 'named'
  and dst <> all ($3::uuid[]);

-- name: relatives
-- Active memories of the same scope that touch the same nodes, by what they share: a node counts less
-- the more memories touch it (1 for two, a half for five), one that over 50 touch counts nothing.
select s.id, s.shared
from (select o.src as id, sum(1 / sqrt(greatest(n.touched - 1, 1)))::float8 as shared
      from edge e
      cross join lateral (
        select count(*) as touched from (
          select from edge x where x.tenant = $1 and x.dst = e.dst and x.kind = 'touches'
            and x.known_to is null limit 51) few
      ) n
      cross join lateral (
        select o.src from edge o
        where o.tenant = $1 and o.dst = e.dst and o.kind = 'touches' and o.known_to is null
          and o.src <> e.src and n.touched <= 50
        limit 51) o
      where e.tenant = $1 and e.src = $2 and e.kind = 'touches' and e.known_to is null
      group by o.src order by shared desc, o.src desc) s
cross join lateral (
  select from memory m
  where m.tenant = $1 and m.id = s.id and m.status = 'active' and m.scope = $3 limit 1) m
order by s.shared desc, s.id desc limit $4;

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

-- name: causes_close
-- Closes the causes that were inferred from a memory and no longer are: all but the pairs $3, $4. Those
-- that a language model told only where it was heard again ($5).
update edge set known_to = now()
where tenant = $1 and kind = 'led_to' and known_to is null and meta ->> 'from' = $2::uuid::text
  and (src = $2 or dst = $2)
  and ($5 or not starts_with(coalesce(meta ->> 'rule', ''), 'llm '))
  and (src, dst) not in (select s, d from unnest($3::uuid[], $4::uuid[]) p (s, d));

-- name: cause_put
-- An inferred edge, through the function that refuses a cycle.
select link($1, $2, $3, $4, $5, $6, $7);

-- name: session_node
-- The node of a memory's session, if it was made.
select id from memory
where tenant = $1 and kind = 'session' and key = 'session:' || $2::uuid::text
  and status = 'active' and id <> $3
order by id limit 1;
