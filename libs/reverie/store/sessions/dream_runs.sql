-- name: dream_digested_sessions
-- The part of each session that a run digested.
select session, count(*) as turns, sum(length(content)) as chars, min(ordinal) as first_ordinal,
       max(ordinal) as last_ordinal
from turn where tenant = $1 and session = any($3) and run = $2 group by session order by session;

-- name: dream_decisions
-- The decisions of a run with their reasons, in order after a number, with the current memories.
select d.no as number, d.outcome, d.kind, d.memory, d.session, d.turns, d.reason, m.status,
       left(m.content, 400) as content
from dream_decision d
left join memory m on m.tenant = $1 and m.id = d.memory and m.status <> 'deleted'
  and scope_matches($3, m.scope)
where d.tenant = $1 and d.run = $2 and scope_matches($3, d.scope) and d.no > $4
order by d.no limit $5;

-- name: dream_runs
-- Runs over scopes that the grants cover, newest first below the cursor; or the one run $6.
select id, scope, status, started, ended, turns, created, reinforced, superseded, sessions, error,
       reason, attempt, waiting, llm_calls, llm_tokens, kinds, outcomes, seconds, prompts, degraded
from dream_run
where tenant = $1 and scope_matches($2, scope) and ($3::uuid is null or id < $3)
  and ($4::text is null or scope = $4) and ($6::uuid is null or id = $6)
order by id desc limit $5;
