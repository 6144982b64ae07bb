-- name: idempotency_begin
-- Takes a key, or one whose taker has been silent for $5 seconds; no row where it is taken, or where
-- another request has written something under it.
insert into idempotency as i (tenant, key, route, body_hash) values ($1, $2, $3, $4)
on conflict (tenant, key) do update
  set at = now(), route = excluded.route, body_hash = excluded.body_hash
  where i.status is null and i.at < now() - make_interval(secs => $5)
    and (i.effect is null or (i.route = excluded.route and i.body_hash = excluded.body_hash))
returning key;

-- name: idempotency_read
-- What stands under a key.
select route, body_hash, status, body, headers from idempotency where tenant = $1 and key = $2;

-- name: idempotency_finish
-- Keeps the answer, and what was asked where that was not known at first.
update idempotency set status = $3, body = $4, headers = $5, body_hash = coalesce($6, body_hash)
where tenant = $1 and key = $2;

-- name: idempotency_renew
-- Says of a key that its taker is still at work.
update idempotency set at = now() where tenant = $1 and key = $2 and status is null;

-- name: idempotency_abandon
-- Frees a key whose work failed.
delete from idempotency where tenant = $1 and key = $2 and status is null and effect is null;

-- name: idempotency_free
-- Frees a key under which something was written, though its taker does not know: who comes next finds it.
update idempotency set at = now() - interval '1 hour'
where tenant = $1 and key = $2 and status is null and effect is not null;

-- name: effect_get
-- What the request $2 did in one place; nobody else finds or notes any of it meanwhile.
select i.effect -> $3::text from idempotency i where i.tenant = $1 and i.key = $2 for update;

-- name: effect_put
-- Notes what the request $2 did in one place.
update idempotency
set effect = coalesce(effect, '{}') || jsonb_build_object($3::text, $4::jsonb)
where tenant = $1 and key = $2;
