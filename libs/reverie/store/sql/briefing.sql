-- name: briefing_memories
-- Pinned memories, those of kinds that are shown at session start, and the $5 that the graph leans on
-- most, the weightiest first.
select * from memory_shown($1)
where id = any(array(
  select b.id from memory b
  where b.tenant = $1 and covers($2, b.scope) and b.status = 'active'
    and (b.pinned or b.kind = any($3::text[]) or b.id = any(array(
      select r.memory from memory_rank r join memory t on t.tenant = $1 and t.id = r.memory
      where r.tenant = $1 and covers($2, r.scope) and covers($2, t.scope) and t.status = 'active'
      order by r.rank desc, r.memory limit $5)))
    and not exists (select from task t
                    where t.tenant = $1 and t.memory = b.id and t.state = 'done')
  order by b.pinned desc, b.confidence desc, coalesce(b.valid_from, b.created) desc, b.id limit $4))
order by pinned desc, confidence desc, coalesce(valid_from, created) desc, id;

-- name: briefing_stale
-- Memories that a commit made doubtful, the most doubtful first.
select * from memory_shown($1)
where id = any(array(select s.memory from stale_mark s where s.tenant = $1 and s.cleared is null))
  and covers($2, scope) and status = 'active'
order by staleness desc, id desc limit $3;

-- name: briefing_sessions
-- The latest sessions that a dream condensed.
select * from memory_shown($1)
where id = any(array(
  select b.id from memory b
  where b.tenant = $1 and covers($2, b.scope) and b.status = 'active' and b.kind = 'session'
  order by coalesce(b.valid_from, b.created) desc, b.id desc limit $3))
order by coalesce(valid_from, created) desc, id desc;

-- name: summaries_outlived
-- What summaries may still tell although it was forgotten, replaced or archived after they were
-- written, the last of each scope first.
select s.scope, m.content
from summary s cross join lateral (
  select k.content from memory k
  where k.tenant = $1 and k.scope = s.scope and k.status in ('superseded', 'archived', 'deleted')
    and k.updated >= s.updated
  order by k.updated desc limit 200) m
where s.tenant = $1 and covers($2, s.scope);
