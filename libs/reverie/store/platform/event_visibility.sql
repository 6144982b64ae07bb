-- name: event_memories
-- The visible data of the memories in events, also of deleted ones.
select id, scope, kind from memory where tenant = $1 and id = any($2::uuid[]) and scope_matches($3, scope);

-- name: key_is_valid
-- Whether a key is still valid.
select exists (select from api_key where tenant = $1 and id = $2 and revoked is null
               and (expires_at is null or expires_at > now()));

-- name: cursor_key
-- The key for cursors of a tenant.
select cursor_key from tenant where id = $1;
