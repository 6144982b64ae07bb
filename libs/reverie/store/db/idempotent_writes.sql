-- name: effect_get
-- What the request $2 did in one place; nobody else finds or notes any of it meanwhile.
select i.effect -> $3::text from idempotency i where i.tenant = $1 and i.key = $2 for update;

-- name: effect_put
-- Notes what the request $2 did in one place.
update idempotency
set effect = coalesce(effect, '{}') || jsonb_build_object($3::text, $4::jsonb)
where tenant = $1 and key = $2;
