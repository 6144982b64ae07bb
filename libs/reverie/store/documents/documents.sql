-- name: documents_put
-- Writes documents (keys $4, values $5, data $6, ends $7) of the scope $2 and collection $3, in order. With $8,
-- those that are there stay as they are. Returns the keys that were written.
insert into document as d (tenant, scope, collection, key, value, data, expires)
select $1, $2, $3, x.key, x.value, x.data, x.expires
from unnest($4::text[], $5::text[], $6::bytea[], $7::timestamptz[]) with ordinality
  x (key, value, data, expires, no)
order by x.no
on conflict (tenant, scope, collection, key) do update
  set value = excluded.value, data = excluded.data, expires = excluded.expires, updated = now(),
      created = case when d.expires <= now() then now() else d.created end
  where not $8 or d.expires <= now()
returning d.key;

-- name: documents_list
-- Documents of the scope $2 and the collection $3: of the keys $4, or whose keys begin with $5. They come after
-- the position $6, at most $8, by position; from the last to the first with $7.
select d.key, d.position, d.value, d.data, d.created, d.updated, d.expires
from document d
where d.tenant = $1 and d.scope = $2 and d.collection = $3
  and ($4::text[] is null or d.key = any($4)) and starts_with(d.key, $5)
  and ($6::bigint is null or case when $7 then d.position < $6 else d.position > $6 end)
  and (d.expires is null or d.expires > now())
order by case when $7 then -d.position else d.position end limit $8;

-- name: documents_collections
-- The collections of the scope $2 whose names begin with $3, after $4, at most $5.
select d.collection, count(*)::int as documents, min(d.created) as created, max(d.updated) as updated
from document d
where d.tenant = $1 and d.scope = $2 and starts_with(d.collection, $3) and d.collection > $4
  and (d.expires is null or d.expires > now())
group by d.collection order by d.collection limit $5;

-- name: documents_delete
-- Deletes documents of the scope $2: of the collection $3, and with $5 of those that begin with it. Of the keys $4,
-- or all. Returns how many there were.
with gone as (
  delete from document d
  where d.tenant = $1 and d.scope = $2
    and case when $5 then starts_with(d.collection, $3) else d.collection = $3 end
    and ($4::text[] is null or d.key = any($4))
  returning d.expires)
select count(*) from gone where expires is null or expires > now();
