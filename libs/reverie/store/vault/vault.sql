-- name: vault_put
-- Writes an entry; no row if it is not at the expected version ($10; 0: it must be new).
insert into vault as v (tenant, scope, key, value, sealed, secret, key_id, actor, covers)
select $1, $2, $3, $4, $5, $6, $7, $8, $9
where coalesce($10::bigint, 0) = 0
   or exists (select from vault o where o.tenant = $1 and o.scope = $2 and o.key = $3)
on conflict (tenant, scope, key) do update
  set value = excluded.value, sealed = excluded.sealed, secret = excluded.secret,
      key_id = excluded.key_id, actor = excluded.actor, covers = excluded.covers,
      version = v.version + 1, updated = now()
  where $10::bigint is null or v.version = $10
returning version;

-- name: vault_get
-- One entry that the key may read.
select v.scope, v.key, v.value, v.sealed, v.secret, v.key_id, v.version, v.actor, v.created, v.updated
from vault v
where v.tenant = $1 and v.scope = $2 and v.key = $3 and scope_matches($4, v.scope);

-- name: vault_list
-- Names and metadata in the order of scope and key, after the place ($4, $5).
select v.scope, v.key, v.secret, v.key_id, v.version, v.actor, v.created, v.updated
from vault v
where v.tenant = $1 and scope_matches($2, v.scope) and ($3::text is null or v.scope = $3)
  and (v.scope, v.key) > ($4, $5)
order by v.scope, v.key limit $6;

-- name: vault_delete
-- Deletes an entry, and retires it if it is a secret; returns its version if it existed.
with deleted as (
  delete from vault v
  where v.tenant = $1 and v.scope = $2 and v.key = $3 and scope_matches($4, v.scope)
  returning v.*),
retired as (
  insert into vault_retired (tenant, scope, key, salt, version, sealed, key_id, covers)
  select d.tenant, d.scope, d.key, d.salt, d.version, d.sealed, d.key_id, d.covers
  from deleted d where d.secret)
select version from deleted;

-- name: vault_secrets
-- Every sealed value of the tenant, for taking it out of texts or (`restore`) putting it back; those of
-- webhooks too.
select v.scope, v.key, v.sealed, v.key_id, v.covers, v.salt, false as restore
from vault v where v.tenant = $1 and v.secret
union all
select 'project/' || h.project, 'webhook ' || h.kind, h.sealed, h.key_id,
       array['project/' || h.project || '/*'], ''::bytea, false
from webhook h where h.tenant = $1
union all
select r.scope, r.key, r.sealed, r.key_id, r.covers, r.salt, true
from vault_retired r where r.tenant = $1 and r.restore;

-- name: vault_frequent_keys
-- Keys of memories that the caller may read, written more than $3 times: counters in disguise. Of
-- all, or of those in $4 and $5; after the key $8 in $7, of $6 versions.
select m.scope, m.key,
       (count(*) + coalesce(sum(m.version - 1) filter (where m.status = 'active'), 0))::bigint as versions
from memory m
where m.tenant = $1 and m.key is not null and scope_matches($2, m.scope)
  and m.key not like 'file:%' and m.key not like 'session:%' and m.status <> 'deleted'
  and ($4::text[] is null or (m.scope, m.key) in (select * from unnest($4::text[], $5::text[])))
group by m.scope, m.key
having count(*) + coalesce(sum(m.version - 1) filter (where m.status = 'active'), 0) > $3
  and ($6::bigint is null
       or (-count(*) - coalesce(sum(m.version - 1) filter (where m.status = 'active'), 0),
           m.scope, m.key) > (-$6::bigint, $7::text, $8::text))
order by versions desc, m.scope, m.key limit $9;

-- name: vault_state_memories
-- Active memories that may be a number or a JSON object or array, the newest first, older than $3.
select m.id, m.scope, m.key, m.version, m.content
from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and m.status = 'active' and m.kind not in ('file', 'entity')
  and (m.content ~ '^\s*[{[].*[]}]\s*$' or length(m.content) < 200 and m.content ~ '\d\s?%?\s*$')
  and ($3::uuid is null or m.id < $3)
order by m.id desc limit $4;
