-- name: vectors_index
-- Adds $2 of a tenant's vectors to the HNSW index: the oldest that it lacks.
update vec_bge_small_en_v1_5 set indexed = true
where tenant = $1 and chunk in (
  select v.chunk from vec_bge_small_en_v1_5 v where v.tenant = $1 and not v.indexed
  order by v.chunk limit $2 for update skip locked)
returning chunk;

-- name: model_active
-- The embedding model of a tenant's vector search; no row: the default model.
select t.model as name, (t.models -> t.model ->> 'dims')::int as dims
from tenant t where t.id = $1 and t.model is not null;

-- name: model_list
-- The recorded embedding models of a tenant, and which of them is in use.
select o.name, (o.details ->> 'dims')::int as dims, o.name = t.model as active
from tenant t, jsonb_each(t.models) o (name, details) where t.id = $1 order by o.name;

-- name: model_probe
-- That model's vector of the probe text.
select t.models -> t.model -> 'probe' as probe from tenant t where t.id = $1 and t.model is not null;

-- name: enrichment_backlog
-- The memories of scopes $2 that wait for enrichment, $3 at most, and since when the oldest does.
select count(*) as waiting, min(w.updated) as since
from (select m.updated from memory m
      where m.tenant = $1 and m.enriched_version < m.version
        and m.status in ('active', 'superseded') and scope_matches($2, m.scope)
      order by m.id limit $3) w;

-- name: model_add
-- Records a model that is to be filled; an existing record stays unchanged.
update tenant t set models = jsonb_build_object($2::text, $3::jsonb) || t.models where t.id = $1;

-- name: model_switch_lock
-- Waits for writes that use the present model, and holds up further ones.
select pg_advisory_xact_lock(hashtext('reverie.model'), $1);

-- name: model_switch
-- Makes $2 the model of a tenant that was never moved to another.
update tenant t set model = $2 where t.id = $1 and t.model is null and t.models ? $2;

-- name: model_texts
-- The beginnings of the newest memories: $2 of them, $3 characters of each.
select left(m.content, $3) as text from memory m
where m.tenant = $1 and m.status = 'active' and m.kind not in ('file', 'entity')
order by m.id desc limit $2;

-- name: reembed_missing_chunks
-- Chunks that a model has no vector of, with the texts that they are cut from.
select c.no, c.start, c.stop, m.content, m.metadata
from chunk c join memory m on m.tenant = $1 and m.id = c.memory
where c.tenant = $1 and c.no > $2 and not exists (
  select from vec_bge_small_en_v1_5 v where v.tenant = $1 and v.chunk = c.no)
order by c.no limit $3;

-- name: reembed_count
-- The number of chunks, and of those with vectors of a model.
select (select count(*) from chunk c where c.tenant = $1) as chunks,
       (select count(*) from vec_bge_small_en_v1_5 v where v.tenant = $1) as done;

-- name: reembed_put
-- Stores the vector of a chunk that still exists, and records that its memory changed.
with put as (
  insert into vec_bge_small_en_v1_5 (tenant, chunk, v)
  select $1, c.no, $3 from chunk c where c.tenant = $1 and c.no = $2 for key share
  on conflict do nothing
  returning chunk
)
insert into memory_change (tenant, memory)
select $1, c.memory from put join chunk c on c.tenant = $1 and c.no = put.chunk
on conflict do nothing;
