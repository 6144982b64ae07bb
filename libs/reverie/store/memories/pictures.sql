-- name: picture_put
-- Stores a picture beside its memory; returns false where the memory has it already, and no row
-- where the memory is gone. The lock keeps an erasure from passing between the two.
with owner as (
  select m.id from memory m where m.tenant = $1 and m.id = $2 and m.status <> 'deleted' for share
), made as (
  insert into picture (tenant, memory, hash, media_type, data)
  select $1, o.id, $3, $4, $5 from owner o
  on conflict do nothing returning memory
)
select exists (select from made) from owner;

-- name: picture_list
-- The pictures of the memory $2 after the hash $4, if the grants $3 cover it; $5 at most.
select p.memory, p.hash, p.media_type, octet_length(p.data) as size, p.created from picture p
join memory m on m.tenant = $1 and m.id = p.memory
where p.tenant = $1 and p.memory = $2 and m.status <> 'deleted' and scope_matches($3, m.scope)
  and p.hash > $4::bytea
order by p.hash limit $5;

-- name: picture_data
-- A picture of the memory $2, if the grants $3 cover it.
select p.memory, p.hash, p.media_type, octet_length(p.data) as size, p.created, p.data from picture p
join memory m on m.tenant = $1 and m.id = p.memory
where p.tenant = $1 and p.memory = $2 and m.status <> 'deleted' and scope_matches($3, m.scope)
  and p.hash = $4;

-- name: picture_delete
-- Deletes a picture.
delete from picture where tenant = $1 and memory = $2 and hash = $3 returning memory;
