-- name: change_add
-- Stores a change once and announces it.
select change_add($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: change_get
-- A stored change.
select id, project, branch, body, processed, opened from git_event where tenant = $1 and id = $2;

-- name: change_done
-- A change was applied, unless it was opened again since it was read.
update git_event set processed = now()
where tenant = $1 and id = $2 and opened = $3 and processed is null;

-- name: changes_reopen
-- Opens changes again that may have come before a memory's anchors; answers their events.
select event, change from changes_reopen($1, $2, $3, $4, $5);

-- name: changes_unprocessed
-- Changes whose event may be lost.
select * from changes_unprocessed(make_interval(secs => $1), $2);

-- name: anchors_named
-- Anchors of a project by the last component of their path.
select node, path from anchor where tenant = $1 and project = $2 and name = any($3::text[])
order by path;

-- name: anchored_memories
-- Memories that touch a list of anchors, with when they were learned and the lines they know.
select m.id, e.dst as node, coalesce(m.valid_from, m.created) as known_at, e.meta -> 'lines' as lines
from edge e join memory m on m.tenant = $1 and m.id = e.src
where e.tenant = $1 and e.dst = any($2::uuid[]) and e.kind = 'touches' and e.known_to is null
  and m.status in ('active', 'superseded')
order by m.id;

-- name: marks_add
-- Marks with their evidence; the same commit and path mark a memory once. Answers who
-- is newly marked, and at which version.
insert into stale_mark (tenant, memory, commit, path, grade, score, change, subject, committed_at, event)
select $1, k.memory, k.commit, k.path, k.grade, k.score, k.change, k.subject, k.committed_at, $3
from jsonb_to_recordset($2) k (memory uuid, commit text, path text, grade text, score real,
                               change text, subject text, committed_at timestamptz)
on conflict do nothing
returning memory, (select m.version from memory m where m.tenant = $1 and m.id = stale_mark.memory);

-- name: anchor_move
-- A renamed file: its node keeps its edges under the new path, unless that path or its key is taken.
with moved as (
  update anchor a set path = $4, name = $5
  where a.tenant = $1 and a.project = $2 and a.path = $3
    and not exists (select from anchor b
      where b.tenant = $1 and b.project = $2 and b.path = $4)
    and not exists (select from memory o
      where o.tenant = $1 and o.scope = 'project/' || $2 and o.key = 'file:' || $4
        and o.status = 'active' and o.id <> a.node)
  returning a.node
)
update memory m set key = 'file:' || $4, content = $4, hash = $6, updated = now()
from moved where m.tenant = $1 and m.id = moved.node;

-- name: stale_list
-- Memories with open marks, by id below the cursor.
select m.*, k.evidence from memory_shown($1) m
join lateral (
  select jsonb_agg(jsonb_build_object('commit', s.commit, 'subject', s.subject,
    'committed_at', s.committed_at, 'path', s.path, 'change', s.change, 'grade', s.grade,
    'score', s.score) order by s.committed_at desc, s.path) as evidence
  from stale_mark s where s.tenant = $1 and s.memory = m.id and s.cleared is null
) k on true
where m.id = any(array(
  select o.memory from stale_mark o join memory b on b.tenant = $1 and b.id = o.memory
  where o.tenant = $1 and o.cleared is null and ($3::uuid is null or o.memory < $3)
    and covers($2, b.scope) and b.status in ('active', 'superseded')
  group by o.memory order by o.memory desc limit $4))
order by m.id desc;

-- name: announce
-- An event of its own, for the outbox.
select announce($1, $2, $3, $4, $5);

-- name: announce_all
-- Events of one subject, for the outbox.
select announce($1, e.id, $2, e.payload, $4)
from jsonb_to_recordset($3) e (id uuid, payload jsonb);
