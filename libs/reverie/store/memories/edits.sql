-- name: memory_versions
-- The versions of a memory below $4, newest first, each with who made it and why. The first was
-- made by who wrote the memory.
select h.version, h.content, h.status, h.kind, h.tier, h.key, h.tags, h.known_from, h.known_to,
       coalesce(b.actor, case when h.version = 1 then h.author end) as actor,
       coalesce(b.reason, case when h.version = 1 then 'remembered' end) as reason
from (
  select m.version, m.content, m.status, m.kind, m.tier, m.key, coalesce(m.actor, m.agent) as author,
         array(select t.tag from memory_tag t where t.tenant = $1 and t.memory = m.id order by t.tag)
           as tags, m.known_from, null::timestamptz as known_to
  from memory m
  where m.tenant = $1 and m.id = $2 and scope_matches($3, m.scope) and m.status <> 'deleted'
  union all
  select v.version, v.content, v.status, v.state ->> 'kind', v.state ->> 'tier', v.state ->> 'key', coalesce(m.actor, m.agent),
         array(select jsonb_array_elements_text(coalesce(v.state -> 'tags', '[]'))),
         v.known_from, v.known_to
  from memory m join memory_version v on v.tenant = $1 and v.memory = m.id
  where m.tenant = $1 and m.id = $2 and scope_matches($3, m.scope) and m.status <> 'deleted'
) h left join memory_version b on b.tenant = $1 and b.memory = $2 and b.version = h.version - 1
where h.version < $4
order by h.version desc limit $5;

-- name: memory_version_get
-- One earlier version with all its columns.
select v.version, v.content, v.state from memory_version v
join memory m on m.tenant = $1 and m.id = v.memory
where v.tenant = $1 and v.memory = $2 and v.version = $4 and scope_matches($3, m.scope)
  and m.status <> 'deleted';

-- name: correction_claim_turn
-- Records that a turn ($3: its hash) of session $2 is being processed; no row if that was recorded at most $4
-- seconds ago.
insert into session_correction as a (tenant, session, turn_hash) values ($1, $2, $3)
on conflict (tenant, session) do update set at = clock_timestamp(), turn_hash = excluded.turn_hash
where a.turn_hash <> excluded.turn_hash and a.at <= clock_timestamp() - make_interval(secs => $4)
returning true;

-- name: correction_is_same_turn
-- Whether the turn processed last is this one.
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
