-- name: dream_request
-- Asks for a dream over a scope: one job, and one ticket through the outbox.
select dream_request($1, $2, $3, make_interval(secs => $4), $5, $6, $7);

-- name: dream_claim
-- The fairest due job under a new epoch.
select * from dream_claim($1, make_interval(secs => $2));

-- name: dreams_overdue
-- Jobs whose ticket may be lost.
select * from dreams_overdue(make_interval(secs => $1), $2);

-- name: due_dreams
-- Scopes that should dream and have no open request.
select * from due_dreams($1, $2);

-- name: dream_progress
-- How far a run is.
select dream_progress($1, $2);

-- name: dream_queue
-- Lengths of the queue, for metrics.
select * from dream_queue();

-- name: dream_renew
-- Keeps a lease alive; false where it was lost.
select dream_renew($1, $2, $3, make_interval(secs => $4));

-- name: dream_start
-- Opens the record of a run; false where the lease was lost.
select dream_start($1, $2, $3, $4, $5);

-- name: dream_commit
-- Writes what one session gave and marks its turns; null where the lease was lost.
select dream_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: dream_record
-- Notes what a worker decided beside a commit; false where the lease was lost.
select dream_record($1, $2, $3, $4, $5);

-- name: dream_promote
-- Lets memories of merged branches hold for the project; null where the lease was lost.
select dream_promote($1, $2, $3, $4, $5, $6, $7);

-- name: dream_finish
-- Ends a run: done, again (asked for meanwhile, or due) or lost.
select dream_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: dream_fail
-- Ends a run that failed: retry, parked or lost.
select dream_fail($1, $2, $3, $4, $5, $6, $7, make_interval(secs => $8), $9, $10);

-- name: dream_release
-- Gives a job back unfinished; false where the lease was lost.
select dream_release($1, $2, $3, $4, $5, $6);

-- name: dream_sessions
-- Sessions of a scope with undigested turns above the id $3; settled: ended, silent for as long as
-- the limits $4 or the request say.
select s.id, s.external_id, s.agent, s.user_name, s.project, s.branch, s.started, s.ended, s.summary,
       s.ended is not null or s.appended <= h.horizon as settled
from session s, (
  select greatest(
    clock_timestamp() - make_interval(
      secs => 60 * (dream_limits($1, $2, $4) ->> 'idle_minutes')::float8),
    (select j.settled_before from dream_job j where j.tenant = $1 and j.scope = $2)) as horizon) h
where s.tenant = $1 and s.scope = $2 and s.id > $3
  and s.pending > 0
order by s.id limit $5;

-- name: dream_poll
-- Notes that a worker looks at sessions now; false where the lease was lost.
select dream_poll($1, $2, $3, $4);

-- name: dream_turns
-- Undigested turns of a session in order, after the ordinal $3.
select id, ord, role, content, at, tool from turn
where tenant = $1 and session = $2 and run is null and ord > $3 order by ord limit $4;

-- name: session_turns
-- The first turns of a session, digested or not.
select id, ord, role, content, at, tool from turn
where tenant = $1 and session = $2 order by ord limit $3;

-- name: dream_similar_memories
-- Active memories of the scope $2 that share the rarest words with the text $3, the likest first.
with term as materialized (
  select d.docs
  from (select term_hash(w.lexeme) as no from unnest(to_tsvector('english', $3)) w limit 64) t
  cross join lateral (
    select array_agg(p.entry >> 28) as docs
    from (select p.entry from posting_entry p where p.tenant = $1 and p.term = t.no
          order by p.entry desc limit 200) p) d
)
select m.id, m.version, m.kind, m.key, m.content, m.pinned, m.git, m.valid_from, m.valid_to
from (select x.doc, sum(1.0 / cardinality(t.docs)) as weight
      from term t cross join lateral unnest(t.docs) x (doc)
      group by x.doc order by weight desc, x.doc desc) s
cross join lateral (
  select * from memory m
  where m.tenant = $1 and m.doc = s.doc and m.scope = $2 and m.status = 'active'
    and m.kind not in ('file', 'entity', 'session') limit 1) m
order by s.weight desc, m.id limit $4;
