-- name: session_start
-- A new session, which began at $10 (null: now), or the one that this agent started under the same external
-- id; no row if its scope is not covered by the grants $9. Of $11 it keeps the scopes that the grants cover.
insert into session as s
  (tenant, id, external_id, agent, user_name, project, branch, scope, started, own_scopes, group_name)
values ($1, $2, $3, $4, $5, $6, $7, $8, least($10, now()),
        array(select o from unnest($11::text[]) o where scope_matches($9, o)), $12)
on conflict (tenant, agent, external_id) where external_id is not null
  do update set branch = coalesce(excluded.branch, s.branch),
                group_name = coalesce(excluded.group_name, s.group_name)
  where scope_matches($9, s.scope)
returning id, scope;

-- name: session_get
-- A session that the grants $3 cover and that agent $4 (null: any) or a sub-agent of it had.
select id, external_id, agent, user_name, project, branch, scope, turns, started, ended,
       shown_summary($1, id, summary) as summary, group_name
from session
where tenant = $1 and id = $2 and scope_matches($3, scope)
  and ($4::text is null or agent = $4 or starts_with(agent, $4 || '/sub/'));

-- name: session_list
-- Sessions that the grants $2 cover and that agent $3 (null: any) or a sub-agent of it had, of
-- agent $4 and project $5 (null: any), newest first below cursor $6.
select id, external_id, agent, user_name, project, branch, scope, turns, started, ended,
       shown_summary($1, id, summary) as summary, group_name
from session
where tenant = $1 and scope_matches($2, scope)
  and ($3::text is null or agent = $3 or starts_with(agent, $3 || '/sub/'))
  and ($4::text is null or agent = $4)
  and ($5::text is null or project = $5)
  and ($6::uuid is null or id < $6)
order by id desc limit $7;

-- name: session_end
-- Marks a session as ended, at $4 (null: now), once; keeps the first time.
update session
set ended = coalesce(ended, least(greatest(coalesce($4, now()), started), now())),
    summary = coalesce($3, summary)
where tenant = $1 and id = $2
returning scope, pending;

-- name: turns_list
-- The turns of a session in order after $3.
select id, session, ordinal, role, shown_turn_text($1, id, content) as content, at, tool, external_id,
       run is not null as digested
from turn where tenant = $1 and session = $2 and ordinal > $3 order by ordinal limit $4;

-- name: turns_replay
-- The turns of a session in order after $3, with the output of tools as it was handed over.
select id, session, ordinal, role, shown_turn_text($1, id, content) as content, at, tool, external_id,
       run is not null as digested, shown_turn_text($1, id, output) as output
from turn where tenant = $1 and session = $2 and ordinal > $3 order by ordinal limit $4;
