-- name: outbox_claim
-- Rows that their writer did not publish, locked.
select id, subject, payload::text as payload, headers from outbox_claim($1, make_interval(secs => $2));
