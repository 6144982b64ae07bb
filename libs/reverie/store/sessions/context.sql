-- name: context_memories
-- Pinned memories, those of the kinds $3 that are shown at session start unless they are cold, hot ones of
-- any kind, commands (by a tag of $6) and the $5 that the graph leans on most; $4 of each at most, the newest. What a later one contradicts is left
-- out, unless it is pinned.
with leaned as materialized (
  select r.memory from memory_rank r join memory t on t.tenant = $1 and t.id = r.memory and t.scope = r.scope
  where r.tenant = $1 and scope_matches($2, r.scope) and t.status = 'active'
    and t.kind not in ('file', 'entity', 'session')
  order by r.rank desc, r.memory limit $5
)
select s.*, s.id = any(array(select l.memory from leaned l)) as leaned
from memory_view($1) s
where s.id = any(array(
  select l.memory from leaned l
  union
  (select p.id from memory p
   where p.tenant = $1 and p.pinned and p.status = 'active' and scope_matches($2, p.scope)
   order by least(p.valid_from, p.created) desc, p.id desc limit $4)
  union
  select x.id from unnest($3::text[]) k (kind) cross join lateral (
    select b.id from memory b
    where b.tenant = $1 and b.kind = k.kind and b.status = 'active' and scope_matches($2, b.scope)
      and b.tier <> 'cold' and not exists (select from task t
                      where t.tenant = $1 and t.memory = b.id and t.state = 'done')
    order by least(b.valid_from, b.created) desc, b.id desc limit $4) x
  union
  (select h.id from memory h
   where h.tenant = $1 and h.tier = 'hot' and h.status = 'active' and scope_matches($2, h.scope)
     and h.kind in ('bug', 'spec', 'skill', 'session', 'reference', 'historical')
   order by h.id desc limit $4)
  union
  (select g.memory from memory_tag g join memory c on c.tenant = $1 and c.id = g.memory
   where g.tenant = $1 and g.tag = any($6::text[]) and c.status = 'active' and scope_matches($2, c.scope)
   order by g.memory desc limit $4)))
  and (s.pinned or contradicted_by($1, s.id, s.scope, coalesce(s.confirmed, s.created)) is null)
order by pinned desc, least(valid_from, created) desc, id desc;

-- name: context_stale_memories
-- Memories that a commit made doubtful, the most doubtful first.
select * from memory_view($1)
where id = any(array(
  select s.memory from stale_mark s join memory b on b.tenant = $1 and b.id = s.memory
  where s.tenant = $1 and s.cleared is null and scope_matches($2, b.scope) and b.status = 'active'
  group by s.memory order by max(s.score) desc, s.memory desc limit $3))
order by staleness desc, id desc;

-- name: context_stale_causes
-- The files whose changes make the memories of $2 doubtful, most doubtful first: the age in seconds, and the
-- number of memories of each kind.
select c.path, min(c.ago) as ago, jsonb_object_agg(c.kind, c.many) as kinds
from (
  select s.path, m.kind, count(distinct m.id) as many, max(s.score) as score,
         extract(epoch from now() - max(s.committed_at))::float8 as ago
  from stale_mark s join memory m on m.tenant = $1 and m.id = s.memory
  where s.tenant = $1 and s.cleared is null and s.memory = any($2::uuid[]) and s.score >= 0.4
    and is_own_doubt($1, s.origin, m.scope)
  group by s.path, m.kind
) c
group by c.path order by max(c.score) desc, min(c.ago), c.path limit $3;

-- name: context_sessions
-- The latest sessions that a dream condensed to more than a title (is_title_only).
select * from memory_view($1)
where id = any(array(
  select b.id from memory b
  where b.tenant = $1 and scope_matches($2, b.scope) and b.status = 'active' and b.kind = 'session'
    and b.content !~ '^\s*Session: [^\n]*\s*$'
  order by least(b.valid_from, b.created) desc, b.id desc limit $3))
order by least(valid_from, created) desc, id desc;

-- name: context_done_tasks
-- Tasks done since the last finished session of the scopes $2 began, or in the last week if there is none.
select * from memory_view($1)
where id = any(array(
  select k.memory from task k join memory m on m.tenant = $1 and m.id = k.memory
  where k.tenant = $1 and k.state = 'done' and m.status = 'active' and scope_matches($2, m.scope)
    and k.updated >= coalesce((
      select s.started from session s
      where s.tenant = $1 and s.ended is not null and scope_matches($2, s.scope)
      order by s.id desc limit 1), now() - interval '7 days')
  order by k.updated desc, k.memory limit $3))
order by updated desc, id desc;

-- name: context_file_memories
-- Memories that the grants $2 cover and that touch a file of a name of $3 or right in a folder of $4,
-- of one project $5 or of all; those by name first, pinned first, newest first; $6 at most. What a later one
-- contradicts is left out.
with near as materialized (
  (select a.node, a.path, true as named from anchor a
   where a.tenant = $1 and a.name = any($3::text[]) and ($5::text is null or a.project = $5)
   order by a.node limit 200)
  union all
  (select a.node, a.path, false from unnest($4::text[]) f (folder) join anchor a
     on a.path >= f.folder || '/' and a.path < f.folder || '0'
     and strpos(substr(a.path, length(f.folder) + 2), '/') = 0
   where a.tenant = $1 and a.name <> all($3::text[]) and ($5::text is null or a.project = $5)
   order by a.node limit 200)
)
select f.id, f.path
from (
  select m.id, n.path, m.scope, coalesce(m.confirmed, m.created) as stated,
         row_number() over (order by n.named desc, m.pinned desc, least(m.valid_from, m.created) desc,
                            m.id desc, n.path) as place
  from near n
  join edge e on e.tenant = $1 and e.dst = n.node and e.kind = 'touches' and e.known_to is null
  join memory m on m.tenant = $1 and m.id = e.src
  where m.status = 'active' and scope_matches($2, m.scope)
  order by place limit $6
) f
-- Most memories have no such edge, and two look-ups are cheaper than the function.
where case when exists (select from edge e where e.tenant = $1 and e.dst = f.id
                          and e.kind = 'contradicts' and e.known_to is null)
             or exists (select from edge e where e.tenant = $1 and e.src = f.id
                          and e.kind = 'contradicts' and e.known_to is null)
           then contradicted_by($1, f.id, f.scope, f.stated) is null else true end
order by f.place;

-- name: recent_changed_files
-- The files that the latest $4 git changes of the project $2 touched, on its default branch and the branch $3,
-- newest first; $5 at most.
select f.facts ->> 'commit' as commit, f.facts ->> 'path' as path, f.facts ->> 'old_path' as old_path,
       f.facts ->> 'status' as status
from (select g.id from git_event g where g.tenant = $1 and g.project = $2
      order by g.received desc limit $4) e
join git_file f on f.tenant = $1 and f.event = e.id
where f.main or f.branch = $3
order by f.known_at desc, f.facts ->> 'commit', f.ordinal limit $5;

-- name: task_states
-- The states of the tasks in a list of memories.
select s.memory, s.state
from unnest($2::uuid[]) m (id) cross join lateral task_as_of($1, m.id, 'infinity') s;
