-- name: active_memory_set_get
-- The memories given to a session that the grants $3 cover; without the lists if the version is still $4.
select a.version, a.turn, x.members, x.marks, x.weights, x.seen
from active_memory_set a
join session s on s.tenant = $1 and s.id = a.session and scope_matches($3, s.scope)
left join active_memory_set x on x.tenant = $1 and x.session = a.session and x.version <> $4
where a.tenant = $1 and a.session = $2;

-- name: active_memory_set_put
-- Stores the memories given to a session if it is still at version $4 (0: no entry). No row if another write
-- was faster, or the session was deleted.
insert into active_memory_set as a (tenant, session, turn, members, marks, weights, seen)
select $1, s.id, $5, $6::uuid[], $7::int[], $8::real[], $9::int[] from session s
where s.tenant = $1 and s.id = $2 and scope_matches($3, s.scope) for key share
on conflict (tenant, session) do update
  set version = a.version + 1, turn = excluded.turn, members = excluded.members,
      marks = excluded.marks, weights = excluded.weights, seen = excluded.seen, updated = now()
  where a.version = $4
returning a.version;

-- name: active_memory_sets_expire
-- Deletes a few sets of sessions that have not asked for $2 days.
delete from active_memory_set where tenant = $1 and session = any(array(
  select o.session from active_memory_set o
  where o.tenant = $1 and o.updated < now() - make_interval(days => $2) limit 20));
