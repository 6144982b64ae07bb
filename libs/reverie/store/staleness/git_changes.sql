-- name: change_get
-- A stored change; `told` distinguishes its current body from later ones.
select id, project, branch, body, processed, md5(body::text) as fingerprint from git_event where tenant = $1 and id = $2;

-- name: commit_memories
-- What was ever written under the keys of commits in a scope, the newest last. `as_made`: it is active,
-- and only the system has changed it since.
select m.key, m.git, m.hash, m.status = 'active' and not exists (
    select from memory_version v
    where v.tenant = $1 and v.memory = m.id and v.actor not in ('reverie', 'dream', 'vault')) as as_made
from memory m
where m.tenant = $1 and m.scope = $2 and m.key = any($3::text[]) order by m.id;

-- name: changes_waiting
-- Changes of projects that the scopes $2 cover which are not applied yet, 1,000 at most.
select count(*)::int as waiting, min(e.received) as since from (
  select c.received from git_event c
  where c.tenant = $1 and c.processed is null and scope_matches($2, 'project/' || c.project)
  limit 1000) e;

-- name: stale_list
-- Memories with open marks, by id below the cursor.
select m.*, mark_evidence($1, m.id, $5) as evidence from memory_view($1) m
where m.id = any(array(
  select o.memory from stale_mark o join memory b on b.tenant = $1 and b.id = o.memory
  where o.tenant = $1 and o.cleared is null and ($3::uuid is null or o.memory < $3)
    and scope_matches($2, b.scope) and b.status in ('active', 'superseded')
  group by o.memory order by o.memory desc limit $4))
order by m.id desc;
