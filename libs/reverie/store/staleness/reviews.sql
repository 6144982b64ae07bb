-- name: review_due
-- Memories of the grants $2 above id $3 that their own files put in doubt since they were looked over.
select m.id, m.version, m.scope, m.kind, m.content, max(s.created) as seen
from stale_mark s join memory m on m.tenant = $1 and m.id = s.memory
where s.tenant = $1 and s.cleared is null and s.origin = s.memory and s.grade in ('stale', 'gone')
  and m.id > $3 and m.status = 'active' and scope_matches($2, m.scope)
  and not exists (select from review r where r.tenant = $1 and r.memory = m.id
                    and r.version = m.version and r.seen >= s.created)
group by m.id, m.version, m.scope, m.kind, m.content
order by m.id limit $4;

-- name: review_marks
-- Why a memory is in doubt by its own files, the weightiest first, with what is known of the lines.
select s.commit, s.path, s.grade, s.change, s.subject, f.facts -> 'hunks' as hunks
from stale_mark s
left join lateral (
  select g.facts from git_file g
  where g.tenant = $1 and g.event = s.event
    and (g.facts ->> 'path' = s.path or g.facts ->> 'old_path' = s.path)
    and starts_with(s.commit, left(g.facts ->> 'commit', 7))
  order by g.ordinal limit 1) f on true
where s.tenant = $1 and s.memory = $2 and s.origin = $2 and s.cleared is null
order by s.score desc, s.committed_at desc, s.path limit $3;

-- name: review_put
-- Stores the review of a memory; an earlier open one is replaced.
with given_way as (
  update review set state = 'rejected', decided = now(), actor = 'a newer review'
  where tenant = $1 and memory = $3 and state = 'open'
)
insert into review (tenant, id, memory, version, verdict, content, reason, author, seen, state)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, case $5 when 'unsure' then 'rejected' else 'open' end);

-- name: review_list
-- Reviews in state $3 of memories that the grants $2 cover, the newest first, below cursor $4; or the one
-- review $6, whatever its state.
select r.id, r.memory, r.version, r.verdict, r.content, r.reason, r.author as generated_by, r.state, r.created as created_at, r.decided as decided_at,
       r.actor as decided_by, m.scope, m.content as current_content, m.version as standing
from review r join memory m on m.tenant = $1 and m.id = r.memory
where r.tenant = $1 and ($3::text is null or r.state = $3) and scope_matches($2, m.scope) and m.status <> 'deleted'
  and ($4::uuid is null or r.id < $4) and ($6::uuid is null or r.id = $6)
order by r.id desc limit $5;

-- name: review_decide
-- Ends an open review; returns its id, or no row if it is no longer open.
update review set state = $3, decided = now(), actor = $4
where tenant = $1 and id = $2 and state = 'open' returning id;
