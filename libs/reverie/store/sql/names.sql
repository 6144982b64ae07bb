-- name: keep_names
-- Keeps what people call scopes ({scope: name}); answers the scopes with another name already.
select keep_names($1, $2);

-- name: scope_names
-- What people call the scopes of a list $3, and those above them, that the grants $2 cover.
select n.scope, n.name from scope_name n
where n.tenant = $1 and covers($2, n.scope) and n.scope = any($3::text[]);
