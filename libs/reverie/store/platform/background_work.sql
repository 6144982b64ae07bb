-- name: outbox_claim
-- Rows that their writer did not publish, locked.
select id, tenant, subject, payload::text as payload, headers from outbox_claim($1, make_interval(secs => $2));

-- name: leader_lock
-- True for the one process that may do the rounds in this transaction.
select pg_try_advisory_xact_lock(hashtext('reverie.clock'));
