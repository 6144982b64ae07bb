-- name: engine_agent_put
-- Creates or replaces an agent.
insert into engine_agent (tenant, name, spec) values ($1, $2, $3)
on conflict (tenant, name) do update set spec = excluded.spec, updated = now();

-- name: engine_agent_list
-- All agents by name.
select name, spec from engine_agent where tenant = $1 order by name;

-- name: engine_agent_delete
-- Deletes an agent; its turns stay.
delete from engine_agent where tenant = $1 and name = $2 returning name;

-- name: engine_group_add
-- Adds a group.
insert into engine_group (tenant, id, name, session, scope, project, agents, answers)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: engine_group_list
-- Groups that the grants $2 cover and that agent $3 (null: any) is in, newest first below $4 (null: all).
select id, name, session, scope, project, agents, answers, created from engine_group
where tenant = $1 and scope_matches($2, scope) and ($3::text is null or $3 = any(agents))
  and ($4::uuid is null or id < $4)
order by id desc limit $5;

-- name: engine_group_get
-- A group that the grants $3 cover and that agent $4 (null: any) is in.
select id, name, session, scope, project, agents, answers, created from engine_group
where tenant = $1 and id = $2 and scope_matches($3, scope) and ($4::text is null or $4 = any(agents));

-- name: engine_message_list
-- What was said in a group after $3, oldest first.
select no, id, author, content, images, turn, at from engine_message
where tenant = $1 and group_id = $2 and no > $3 order by no limit $4;

-- name: engine_message_list_back
-- The last that was said in a group before $3 (null: at all), oldest first.
select * from (
  select no, id, author, content, images, turn, at from engine_message
  where tenant = $1 and group_id = $2 and ($3::bigint is null or no < $3) order by no desc limit $4) m
order by no;

-- name: engine_message_put
-- Replaces the text $3 of a message; a row where it was still that.
update engine_message set content = $4 where tenant = $1 and id = $2 and content = $3 returning id;

-- name: engine_history
-- The last $4 messages of a group up to $3, oldest first, with the model's messages of turns of $5.
select * from (
  select m.no, m.id, m.author, m.content, m.images, m.turn, m.at,
         case when t.agent = $5 then t.messages end as messages
  from engine_message m
  left join engine_turn t on t.tenant = $1 and t.id = m.turn
  where m.tenant = $1 and m.group_id = $2 and m.no <= $3
  order by m.no desc limit $4) h
order by no;

-- name: engine_image_get
-- Images by their ids.
select id, media_type, data from engine_image where tenant = $1 and id = any($2::uuid[]);

-- name: engine_group_image
-- An image of a group.
select id, media_type, data from engine_image where tenant = $1 and group_id = $2 and id = $3;

-- name: engine_turn_list
-- The newest turns of a group.
select id, chain, parent, depth, agent, mode, status, attempts, requests, tokens, micro_usd, outcome,
       error, created, ended, approvals as waits
from engine_turn where tenant = $1 and group_id = $2 order by created desc limit $3;

-- name: engine_save
-- Stores the model's messages so far, and prolongs the lease. No row if the turn was taken over.
update engine_turn set messages = $4, calls = $5, requests = $6, lease_until = clock_timestamp() + $7
where tenant = $1 and id = $2 and epoch = $3 and status = 'running' returning stop_requested;

-- name: engine_release
-- Gives a turn back at once, for the next worker.
update engine_turn set lease_until = null, attempts = attempts - 1
where tenant = $1 and id = $2 and epoch = $3 and status = 'running';

-- name: engine_calls
-- The tool calls of a turn and of those that led to it, oldest first: the chain's own memory of what was tried.
with recursive up as (
  select t.* from engine_turn t where t.tenant = $1 and t.id = $2
  union all
  select p.* from engine_turn p join up u on p.tenant = $1 and p.id = u.parent
)
select u.id = $2 as is_own, u.calls from up u order by u.depth;

-- name: engine_ended
-- How a turn ended, with which answer or which calls wait, and to whom it handed on; no row for one
-- that goes on.
select t.id, t.epoch, t.group_id as "group", t.scope, t.agent, t.requests, t.status, t.outcome, t.error,
       coalesce(m.content, '') as content, t.approvals as waits, (
         select coalesce(jsonb_agg(jsonb_build_object('to', c.agent, 'turn', c.id) order by c.id), '[]')
         from engine_turn c where c.tenant = $1 and c.chain = t.chain and c.parent = t.id) as handed_on
from engine_turn t left join engine_message m on m.tenant = $1 and m.turn = t.id
where t.tenant = $1 and t.id = $2 and t.status not in ('queued', 'running');

-- name: engine_effect_begin
-- Enters a call that changes something, unless it is there. Returns what is there.
with added as (
  insert into engine_effect (tenant, turn, call, scope, tool, epoch)
  select $1, t.id, $3, t.scope, $4, $5 from engine_turn t
  where t.tenant = $1 and t.id = $2 and t.epoch = $5 and t.status = 'running'
  on conflict (tenant, turn, call) do nothing
  returning true as is_new, null::jsonb as result
)
select is_new, result from added
union all
select false, result from engine_effect where tenant = $1 and turn = $2 and call = $3
limit 1;

-- name: engine_effect_done
-- Stores the result of a call.
update engine_effect set result = $4 where tenant = $1 and turn = $2 and call = $3;

-- name: engine_stop
-- Asks the open turns of a group to stop: turn $3, or all if it is null. Returns those that wait or are queued.
update engine_turn set stop_requested = true
where tenant = $1 and group_id = $2 and ($3::uuid is null or id = $3)
  and status in ('queued', 'running', 'waiting')
returning id, status;

-- name: engine_approve
-- Decides a call that waits, and makes the turn ready to go on once all are decided. No row if it does not wait.
update engine_turn
set approvals = approvals || jsonb_build_object($4::text, (approvals -> $4) || $5::jsonb)
where tenant = $1 and group_id = $2 and id = $3 and status = 'waiting' and approvals ? $4
returning approvals;

-- name: engine_ask
-- Enters the calls of a turn that wait for a person.
update engine_turn set approvals = approvals || $4
where tenant = $1 and id = $2 and epoch = $3 and status = 'running' returning id;

-- name: engine_resume
-- Makes a waiting turn ready to go on.
update engine_turn set status = 'queued', attempts = 0
where tenant = $1 and id = $2 and status = 'waiting' returning id;

-- name: engine_spend_today
-- What was spent today, by agent.
select agent, tokens, micro_usd from engine_spend
where tenant = $1 and day = (now() at time zone 'utc')::date order by agent;
