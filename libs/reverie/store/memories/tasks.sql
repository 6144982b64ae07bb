-- name: task_get
-- The status of one task at $4 (null: now); of its dependencies, those that the grants $3 cover.
select s.state, s.claimed_by, s.claimed_until, s.claimable,
       array(select w.id from unnest(s.depends_on, s.waits_in) w (id, scope)
             where scope_matches($3, w.scope)) as depends_on
from task_as_of($1, $2, coalesce($4::timestamptz, 'infinity')) s;

-- name: task_list
-- Tasks newest first below $3, of scope $4, in states $5, that may be claimed or not $6; null for all.
select m.*, s.state, s.claimed_by, s.claimed_until, s.claimable,
       array(select w.id from unnest(s.depends_on, s.waits_in) w (id, scope)
             where scope_matches($2, w.scope)) as depends_on
from memory_view($1) m cross join lateral task_as_of($1, m.id, 'infinity') s
where m.tenant = $1 and scope_matches($2, m.scope) and m.kind = 'task' and m.status = 'active'
  and ($3::uuid is null or m.id < $3)
  and ($4::text is null or m.scope = $4)
  and ($5::text[] is null or s.state = any($5))
  and ($6::boolean is null or s.claimable = $6)
order by m.id desc limit $7;
