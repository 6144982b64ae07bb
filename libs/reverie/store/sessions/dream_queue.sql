-- name: dream_sessions
-- Sessions of a scope with undigested turns above the id $3. Settled: ended, or silent for the time in the
-- limits $4 or the request.
select s.id, s.external_id, s.agent, s.user_name, s.project, s.branch, s.started, s.ended, s.summary,
       s.own_scopes, s.ended is not null or s.appended <= h.horizon as settled
from session s, (
  select greatest(
    clock_timestamp() - make_interval(
      secs => 60 * (dream_limits($1, $2, $4) ->> 'idle_minutes')::float8),
    (select j.settled_before from dream_job j where j.tenant = $1 and j.scope = $2)) as horizon) h
where s.tenant = $1 and s.scope = $2 and s.id > $3
  and s.pending > 0
order by s.id limit $5;

-- name: dream_turns
-- Undigested turns of a session in order, after the ordinal $3.
select id, ordinal, role, shown_turn_text($1, id, content) as content, at, tool from turn
where tenant = $1 and session = $2 and run is null and ordinal > $3 order by ordinal limit $4;

-- name: session_turns
-- The first turns of a session, digested or not.
select id, ordinal, role, shown_turn_text($1, id, content) as content, at, tool from turn
where tenant = $1 and session = $2 order by ordinal limit $3;

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
select m.id, m.version, m.kind, m.key, m.content, m.metadata, m.pinned, m.git, m.valid_from, m.valid_to
from (select x.doc, sum(1.0 / cardinality(t.docs)) as weight
      from term t cross join lateral unnest(t.docs) x (doc)
      group by x.doc order by weight desc, x.doc desc) s
cross join lateral (
  select * from memory m
  where m.tenant = $1 and m.doc = s.doc and m.scope = $2 and m.status = 'active'
    and m.kind not in ('file', 'entity', 'session') limit 1) m
order by s.weight desc, m.id limit $4;
