-- name: audit_add
-- Keeps a note of one call.
insert into audit (tenant, id, at, key, actor, service, action, changes, status, problem, subjects, trace_id, client)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
on conflict do nothing;

-- name: audit_tenant_exists
-- Whether the tenant was not deleted.
select exists (select from tenant where id = $1);

-- name: audit_page
-- Notes below $2, newest first: of $3 (who, or a key), with words in the action, about a subject, that
-- changed something or did not, from $7 on and before $8.
select id, at, tenant, key, actor, service, action, changes, status::int as status, problem, subjects, trace_id, client
from audit
where tenant = $1 and ($2::uuid is null or id < $2)
  and ($3::text is null or actor = $3 or key = $3)
  and ($4::text is null or strpos(lower(action), lower($4)) > 0)
  and ($5::text is null or subjects @> array[$5])
  and ($6::boolean is null or changes = $6)
  and ($7::timestamptz is null or at >= $7) and ($8::timestamptz is null or at < $8)
order by id desc limit $9;
