-- name: briefing_memories
-- Pinned memories and those of kinds that are shown at session start, the weightiest first.
select * from memory_shown
where tenant = $1 and covers($2, scope) and status = 'active' and (pinned or kind = any($3::text[]))
order by pinned desc, confidence desc, coalesce(valid_from, created) desc, id limit $4;

-- name: briefing_stale
-- Memories that a commit made doubtful, the most doubtful first.
select * from memory_shown
where tenant = $1 and covers($2, scope) and status = 'active' and stale_grade is not null
order by staleness desc, id desc limit $3;

-- name: briefing_sessions
-- The latest sessions that a dream condensed.
select * from memory_shown
where tenant = $1 and covers($2, scope) and status = 'active' and kind = 'session'
order by coalesce(valid_from, created) desc, id desc limit $3;
