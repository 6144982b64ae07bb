-- name: leader_lock
-- True for the one process that may do the rounds in this transaction.
select pg_try_advisory_xact_lock(hashtext('reverie.clock'));
