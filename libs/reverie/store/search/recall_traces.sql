-- name: trace_add
-- Stores the trace of a recall; it is written later, so it is skipped if session $6 was deleted.
insert into recall_trace (tenant, id, trace, at, actor, session, agent, scopes, query, request, details)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
where $6::uuid is null or exists (select from session s where s.tenant = $1 and s.id = $6);

-- name: traces_trim
-- Deletes all but the newest $2 traces of a tenant.
delete from recall_trace where tenant = $1 and id <= (
  select t.id from recall_trace t where t.tenant = $1 order by t.id desc offset $2 limit 1);

-- name: trace_find
-- The traces of an id, their own or their request's, newest first, that $3 and $4 may see.
select id, trace, at, actor, session, agent, scopes, query, request as asked, delivered_at, details from recall_trace
where tenant = $1 and (id = $2 or trace = $2) and scopes_match_all($3, scopes)
  and ($4::text is null or agent = $4 or starts_with(agent, $4 || '/'))
order by id desc limit 20;

-- name: trace_list
-- Summaries of traces below $4, newest first, that $2 and $3 may see; of a session if $5 is given.
select id, trace, at, actor, session, agent, scopes, query, request as asked, delivered_at, null::bytea as details from recall_trace
where tenant = $1 and scopes_match_all($2, scopes)
  and ($3::text is null or agent = $3 or starts_with(agent, $3 || '/'))
  and ($4::uuid is null or id < $4) and ($5::uuid is null or session = $5)
order by id desc limit $6;

-- name: trace_confirm
-- Records that what the preflow of a trace gave was written out; the first time counts.
update recall_trace set delivered_at = coalesce(delivered_at, now())
where tenant = $1 and (id = $2 or trace = $2) and scopes_match_all($3, scopes)
  and ($4::text is null or agent = $4 or starts_with(agent, $4 || '/')) and request ? 'given'
returning delivered_at;
