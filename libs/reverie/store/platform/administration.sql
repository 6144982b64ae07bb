-- name: admin_keys
-- Keys of a tenant by id, after $2; never their text or hash.
select id, label, role, reads, writes, project, agent, user_name as "user", created, expires_at, revoked,
       limits,
       case when previous_expires_at > now() then previous_expires_at end as previous_expires_at
from api_key where tenant = $1 and ($2::uuid is null or id > $2) order by id limit $3;

-- name: admin_key_add
-- A new key of a tenant.
insert into api_key
  (tenant, id, hash, label, role, reads, writes, project, agent, user_name, expires_at, limits)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: admin_key_get
-- A key by its id, locked; never its text or hash.
select id, label, role, reads, writes, project, agent, user_name as "user", created, expires_at, revoked,
       limits,
       case when previous_expires_at > now() then previous_expires_at end as previous_expires_at
from api_key where tenant = $1 and id = $2 for update;

-- name: admin_key_change
-- Gives a key another label, end or limits.
update api_key set label = $3, expires_at = $4, limits = $5 where tenant = $1 and id = $2;

-- name: admin_key_rotate
-- Gives a key another text; the one before works for $4 seconds more.
update api_key set old_hash = hash, previous_expires_at = now() + make_interval(secs => $4), hash = $3
where tenant = $1 and id = $2;

-- name: admin_key_set_text
-- Gives a key the text that is shown; changes nothing if it already has that one.
update api_key set hash = $3 where tenant = $1 and id = $2 and hash <> $3;

-- name: admin_key_revoke
-- Ends a key; keeps the first time.
update api_key set revoked = coalesce(revoked, now()) where tenant = $1 and id = $2 returning id;

-- name: admin_scopes
-- Scopes that the grants $2 cover, after $3, with their memory counts by kind and by status. Memories are read
-- once, and rights are looked at once a scope: there are many memories and few scopes.
with counted as materialized (
  select m.scope, m.kind, m.status, count(*) as n from memory m
  where m.tenant = $1 and ($3::text is null or m.scope > $3) group by m.scope, m.kind, m.status
), sessions as materialized (
  select s.scope, count(*) as n from session s where s.tenant = $1 group by s.scope
), known as (
  select c.scope from counted c union select s.scope from sessions s
  union select y.scope from summary y where y.tenant = $1
  union select d.scope from dream_job d where d.tenant = $1
), page as (
  select k.scope from known k
  where scope_matches($2, k.scope) and ($3::text is null or k.scope > $3)
  order by k.scope limit $4
)
select p.scope,
  (select n.name from scope_name n where n.tenant = $1 and n.scope = p.scope) as name,
  coalesce((select jsonb_object_agg(k.kind, k.n) from (
    select c.kind, sum(c.n) as n from counted c where c.scope = p.scope group by c.kind) k), '{}') as kinds,
  coalesce((select jsonb_object_agg(k.status, k.n) from (
    select c.status, sum(c.n) as n from counted c where c.scope = p.scope group by c.status) k), '{}') as statuses,
  coalesce((select s.n from sessions s where s.scope = p.scope), 0) as sessions
from page p order by p.scope;

-- name: admin_projects
-- Projects whose scopes the grants $2 cover, by name after $3, with their counts. Changes of other branches than
-- the default one count for grants that cover all scopes of the project.
with known as (
  select split_part(m.scope, '/', 2) as project, m.scope, count(*) as memories, 0::bigint as sessions
  from memory m where m.tenant = $1 and m.scope like 'project/%' and scope_matches($2, m.scope)
  group by m.scope
  union all
  select split_part(s.scope, '/', 2), s.scope, 0, count(*)
  from session s where s.tenant = $1 and s.scope like 'project/%' and scope_matches($2, s.scope)
  group by s.scope
)
select k.project,
       (select n.name from scope_name n
        where n.tenant = $1 and n.scope = 'project/' || k.project) as name,
       count(distinct k.scope) as scopes, sum(k.memories)::bigint as memories,
       sum(k.sessions)::bigint as sessions,
       (select count(*) from git_event g
        where g.tenant = $1 and g.project = k.project
          and (scope_matches($2, 'project/' || k.project || '/*') or is_default_branch(g.branch, g.body))) as changes
from known k where $3::text is null or k.project > $3
group by k.project order by k.project limit $4;

-- name: scope_delete_batch
-- Deletes a batch of the data in scopes; no rows at the end.
select name, sum(gone)::bigint as gone from scope_delete_batch($1, $2, $3, $4)
group by name having sum(gone) > 0 order by name;

-- name: existing_memory_ids
-- Which of the ids are memories.
select id from memory where tenant = $1 and id = any($2::uuid[]);

-- name: tenant_tables
-- The tables that hold rows of a tenant; its keys last.
select name from tenant_tables() where $1::int is not null order by name = 'api_key', name;

-- name: tenant_keys_revoke
-- Ends all keys of a tenant but one, which may write nothing but what is given.
update api_key set
  revoked = case when id = $2 then revoked else coalesce(revoked, now()) end,
  writes = case when id = $2 then $3 else writes end
where tenant = $1;

-- name: tenant_end
-- Disables a tenant; returns the number of the transaction.
select tenant_delete($1)::text;

-- name: older_transactions_ended
-- Whether every transaction up to that one has ended.
select pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8;
