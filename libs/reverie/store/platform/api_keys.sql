-- name: tenant_find
-- The number of a tenant by its name.
select tenant_find($1);

-- name: key_find
-- The principal behind a key's hash.
select * from find_key($1);
