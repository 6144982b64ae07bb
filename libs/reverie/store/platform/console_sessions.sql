-- name: console_session_add
-- Adds a sign-in or a link, and deletes those of the tenant that have expired.
with expired as (
  delete from console_session where tenant = $1 and expires_at <= now()
)
insert into console_session (tenant, hash, is_link, encrypted_key, expires_at)
values ($1, $2, $3, $4, now() + make_interval(secs => $5));

-- name: console_session_find
-- The encrypted key of a sign-in.
select encrypted_key from console_session
where tenant = $1 and hash = $2 and not is_link and expires_at > now();

-- name: console_session_take
-- Deletes a sign-in or a link; returns its encrypted key unless it has expired.
delete from console_session where tenant = $1 and hash = $2 and is_link = $3
returning case when expires_at > now() then encrypted_key end;
