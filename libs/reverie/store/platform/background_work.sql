-- name: outbox_claim
-- Rows that their writer did not publish, locked.
select id, tenant, subject, payload::text as payload, headers from outbox_claim($1, make_interval(secs => $2));

-- name: outbox_done
-- Removes published rows, of any tenant.
select outbox_done($1);

-- name: outbox_delete
-- Removes rows that their writer published.
select outbox_delete($1, $2);

-- name: work_backlog
-- Memories that the slow path has not reached, and changes not yet applied.
select memories, changes from work_backlog();

-- name: outbox_age
-- How many rows wait, and since when.
select * from outbox_age();

-- name: leader_lock
-- True for the one process that may do the rounds in this transaction.
select pg_try_advisory_xact_lock(hashtext('reverie.clock'));
