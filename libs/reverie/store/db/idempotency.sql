-- name: idempotency_begin
-- Claims a key, also one whose claim was not renewed for $5 seconds; no row if it is claimed, or if another
-- request has written something under it.
insert into idempotency as i (tenant, key, route, body_hash) values ($1, $2, $3, $4)
on conflict (tenant, key) do update
  set at = now(), route = excluded.route, body_hash = excluded.body_hash
  where i.status is null and i.at < now() - make_interval(secs => $5)
    and (i.effect is null or (i.route = excluded.route and i.body_hash = excluded.body_hash))
returning key;

-- name: idempotency_read
-- The entry of a key.
select route, body_hash, status, body, headers from idempotency where tenant = $1 and key = $2;

-- name: idempotency_finish
-- Stores the response, and the request body's hash if it was not known at first.
update idempotency set status = $3, body = $4, headers = $5, body_hash = coalesce($6, body_hash)
where tenant = $1 and key = $2;

-- name: idempotency_renew
-- Renews the claim of a key.
update idempotency set at = now() where tenant = $1 and key = $2 and status is null;

-- name: idempotency_abandon
-- Frees a key whose work failed.
delete from idempotency where tenant = $1 and key = $2 and status is null and effect is null;

-- name: idempotency_free
-- Frees a key under which something was written without the knowledge of its claimer; the next request finds
-- it.
update idempotency set at = now() - interval '1 hour'
where tenant = $1 and key = $2 and status is null and effect is not null;

-- name: effect_get
-- The result of one step of the request $2; nobody else reads or writes its results concurrently.
select i.effect -> $3::text from idempotency i where i.tenant = $1 and i.key = $2 for update;

-- name: effect_put
-- Stores the result of one step of the request $2.
update idempotency
set effect = coalesce(effect, '{}') || jsonb_build_object($3::text, $4::jsonb)
where tenant = $1 and key = $2;
