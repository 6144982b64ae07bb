-- name: documents_lock
-- One writer of a collection at a time: places follow commits, and no two writers wait for each other.
select pg_advisory_xact_lock(hashtextextended(format('%s %s %s', $1::int, $2::text, $3::text), 0));

-- name: documents_expire
-- Deletes those of the keys $4 that have expired: what is written again comes last.
delete from document d
where d.tenant = $1 and d.scope = $2 and d.collection = $3 and d.key = any($4::text[])
  and d.expires <= now();

-- name: documents_put
-- Writes documents (keys $4, values $5, data $6, ends $7) of the scope $2 and collection $3, in order. With $8,
-- those that are there stay as they are. Returns the keys that were written.
insert into document as d (tenant, scope, collection, key, value, data, expires)
select $1, $2, $3, x.key, x.value, x.data, x.expires
from unnest($4::text[], $5::text[], $6::bytea[], $7::timestamptz[]) with ordinality
  x (key, value, data, expires, no)
order by x.no
on conflict (tenant, scope, collection, key) do update
  set value = excluded.value, data = excluded.data, expires = excluded.expires, updated = now()
  where not $8
returning d.key;

-- name: documents_list
-- Documents of the scope $2 and the collection $3: of the keys $4, or whose keys begin with $5. They come after
-- the position $6, by position; from the last to the first with $7. At most $8 of them, and beyond the first no
-- more than $9 bytes together. `is_cut`: there are more. A key has at most 1,000 characters, of which the last
-- possible one is 1114111: a prefix is a range of the index.
with of_keys as not materialized (
  select d.key, d.position, octet_length(d.value) + coalesce(octet_length(d.data), 0) as size
  from document d
  where d.tenant = $1 and d.scope = $2 and d.collection = $3
    and ($4::text[] is null or d.key = any($4))
    and d.key between $5 and $5 || repeat(chr(1114111), 1000)
    and (d.expires is null or d.expires > now())),
found as (
  -- Two orders: the index of positions gives each without sorting.
  (select k.*, k.position as place from of_keys k
   where not $7 and ($6::bigint is null or k.position > $6) order by k.position limit $8 + 1)
  union all
  (select k.*, -k.position from of_keys k
   where $7 and ($6::bigint is null or k.position < $6) order by k.position desc limit $8 + 1)),
counted as (
  select f.key, row_number() over w as no, sum(f.size) over w as bytes, count(*) over () as total
  from found f window w as (order by f.place)),
kept as (
  select c.* from counted c where c.no <= $8 and (c.no = 1 or c.bytes <= $9))
select d.key, d.position, d.value, d.data, d.created, d.updated, d.expires,
       max(k.no) over () < k.total as is_cut
from kept k
join document d on d.tenant = $1 and d.scope = $2 and d.collection = $3 and d.key = k.key
order by k.no;

-- name: documents_collections
-- The collections of the scope $2 whose names begin with $3, after $4, at most $5.
select d.collection, count(*)::int as documents, min(d.created) as created, max(d.updated) as updated
from document d
where d.tenant = $1 and d.scope = $2 and d.collection > $4
  and d.collection between $3 and $3 || repeat(chr(1114111), 1000)
  and (d.expires is null or d.expires > now())
group by d.collection order by d.collection limit $5;

-- name: documents_delete
-- Deletes documents of the scope $2: of the collection $3, and with $5 of those that begin with it. Of the keys $4,
-- or all. Returns how many there were.
with gone as (
  delete from document d
  where d.tenant = $1 and d.scope = $2
    and d.collection between $3 and case when $5 then $3 || repeat(chr(1114111), 1000) else $3 end
    and ($4::text[] is null or d.key = any($4))
  returning d.expires)
select count(*) from gone where expires is null or expires > now();
