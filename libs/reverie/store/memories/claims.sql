-- name: claim_put
-- Writes a claim unless a later verification of it stands; answers the outcome.
select claim_put($1, $2, $3, $4);

-- name: claim_list
-- Active claims newest first below $3, of scope $4 and of keys like $5; null for all.
select * from memory_view($1) m
where m.tenant = $1 and scope_matches($2, m.scope) and m.status = 'active'
  and m.key like 'learn:%' and m.metadata ? 'learned'
  and ($3::uuid is null or m.id < $3)
  and ($4::text is null or m.scope = $4)
  and ($5::text is null or m.key like $5)
order by m.id desc limit $6;
