-- name: correction_claim_turn
-- Notes that a turn ($3: its hash) of session $2 is looked at; no row where that was so $4 seconds ago or less.
insert into session_correction as a (tenant, session, turn_hash) values ($1, $2, $3)
on conflict (tenant, session) do update set at = clock_timestamp(), turn_hash = excluded.turn_hash
where a.turn_hash <> excluded.turn_hash and a.at <= clock_timestamp() - make_interval(secs => $4)
returning true;

-- name: correction_is_same_turn
-- Whether the turn that was looked at last is this one.
select a.turn_hash = $3 from session_correction a where a.tenant = $1 and a.session = $2;

-- name: correction_candidates
-- Active memories of kinds $4 in scopes that $2 covers and that may be written by $3, with words of $6;
-- those with most of them, and of these the surest.
with term as materialized (
  select distinct term_hash(w.lexeme) as no
  from (select w.lexeme from unnest(to_tsvector('english', $6)) w limit 64) w
), hit as materialized (
  select p.entry >> 28 as doc, count(*) as shared
  from term t
  cross join lateral (
    select p.entry from posting_entry p where p.tenant = $1 and p.term = t.no
    order by p.entry desc limit 5000) p
  group by p.entry >> 28
)
select m.* from memory_view($1) m
where m.tenant = $1 and m.id = any(array(
  select b.id from hit h join memory b on b.tenant = $1 and b.doc = h.doc
  where scope_matches($2, b.scope) and scope_matches($3, b.scope) and b.status = 'active'
    and b.kind = any($4::text[])
  order by h.shared desc, b.pinned desc, b.confidence desc, b.id desc limit $5))
order by m.pinned desc, m.confidence desc, m.id desc;

-- name: replace_memory
-- Puts a memory in the place of another that was read at a version.
select replace_memory($1, $2, $3, $4, $5, $6, $7);
