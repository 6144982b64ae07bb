-- Memories and edges as they are read, now or as of a moment.

-- Whether a doubt began at a memory of this scope, so that its file and commit may be named to all
-- who read the scope.
create function is_own_doubt(p_tenant int, p_origin uuid, p_scope text) returns boolean
language sql stable
return exists (
  select from memory o where o.tenant = p_tenant and o.id = p_origin and o.scope = p_scope);

-- Memories as the services show them: with tags, turns, staleness (noisy-or of the marks, each
-- change of a file once) and use. A function instead of a view: it is inlined, and the tenant's
-- number selects the partition of every table at planning time.
create function memory_view(p_tenant int)
returns table (
  tenant int, id uuid, doc bigint, scope text, kind text, tier text, status text, key text,
  version int, content text, summary text, hash bytea, confidence real, pinned boolean,
  session uuid, agent text, source text, git jsonb, metadata jsonb, valid_from timestamptz,
  valid_to timestamptz, superseded_by uuid, created timestamptz, updated timestamptz,
  enriched boolean, tags text[], turns uuid[], staleness real, stale_grade text, stale_reason text,
  confirmed timestamptz, linked boolean, uses int, used timestamptz, boost real,
  used_at_hour_start timestamptz, boost_at_hour_start real)
language sql stable
begin atomic
  select m.tenant, m.id, m.doc, m.scope, m.kind, m.tier, m.status, m.key, m.version, m.content,
         m.summary, m.hash, m.confidence, m.pinned, m.session, m.agent, m.source, m.git, m.metadata,
         m.valid_from, m.valid_to, m.superseded_by, m.created, m.updated,
         m.enriched_version >= m.version,
         array(select t.tag from memory_tag t
               where t.tenant = p_tenant and t.memory = m.id order by t.tag),
         array(select t.turn from memory_turn t
               where t.tenant = p_tenant and t.memory = m.id order by t.turn),
         coalesce(s.score, 0), s.grade, s.reason,
         m.confirmed,
         -- By an edge within its scope, so that it tells nothing of others. Not `exists`, which for
         -- many rows would become a hash over all edges of the tenant.
         coalesce(
           (select true from edge e
            cross join lateral (
              select from memory o where o.tenant = p_tenant and o.id = e.dst and o.scope = m.scope limit 1) o
            where e.tenant = p_tenant and e.src = m.id and e.known_to is null
              and e.kind not in ('touches', 'learned_in') limit 1),
           (select true from edge e
            cross join lateral (
              select from memory o where o.tenant = p_tenant and o.id = e.src and o.scope = m.scope limit 1) o
            where e.tenant = p_tenant and e.dst = m.id and e.known_to is null
              and e.kind not in ('touches', 'learned_in') limit 1),
           false),
         coalesce(u.count, 0), u.last, coalesce(u.boost, 0),
         case when u.hour < date_trunc('hour', now()) then u.last else u.last_at_hour_start end,
         coalesce(case when u.hour < date_trunc('hour', now()) then u.boost else u.boost_at_hour_start end, 0)
  from memory m
  left join memory_use u on u.tenant = p_tenant and u.memory = m.id
  left join lateral (
    select case when bool_or(k.score >= 1) then 1
                else 1 - exp(sum(ln(nullif(1 - k.score::float8, 0)))) end::real as score,
           (array_agg(k.grade order by array_position(array['suspect', 'stale', 'gone'], k.grade) desc))[1]
             as grade,
           (array_agg(case
                when not k.is_own then 'a memory of another scope that it depends on is in doubt'
                when k.change = 'contradicted' then 'contradicted by ' || left(k.commit, 10) || ' ' || k.subject
                else k.change || ' ' || k.path || ' in ' || left(k.commit, 10) || ' (' || k.subject || ')' end
              order by k.score desc, k.committed_at desc, k.path))[1] as reason
    from (
      select distinct on (k.commit, k.path) k.commit, k.path, k.score, k.grade, k.change, k.subject,
             k.committed_at, is_own_doubt(p_tenant, k.origin, m.scope) as is_own
      from stale_mark k
      where k.tenant = p_tenant and k.memory = m.id and k.cleared is null
      order by k.commit, k.path, k.score desc
    ) k
  ) s on true
  where m.tenant = p_tenant;
end;

-- Memories as they were known at a moment (null: now), with the columns of memory_view() except use.
-- Staleness has no history, and what was forgotten since is not shown either.
create function memory_as_of(p_tenant int, p_at timestamptz)
returns table (
  tenant int, id uuid, doc bigint, scope text, kind text, tier text, status text, key text,
  version int, content text, summary text, hash bytea, confidence real, pinned boolean,
  session uuid, agent text, source text, git jsonb, metadata jsonb, valid_from timestamptz,
  valid_to timestamptz, superseded_by uuid, created timestamptz, updated timestamptz,
  enriched boolean, tags text[], turns uuid[], staleness real, stale_grade text, stale_reason text,
  words tsvector, merged_into uuid, confirmed timestamptz)
language sql stable
begin atomic
  select k.tenant, k.id, k.doc, k.scope, k.kind, k.tier, k.status, k.key, k.version, k.content,
         k.summary, k.hash, k.confidence, k.pinned, k.session, k.agent, k.source, k.git,
         k.metadata, k.valid_from, k.valid_to, k.superseded_by, k.created, k.updated, true, k.tags,
         array(select t.turn from memory_turn t
               where t.tenant = p_tenant and t.memory = k.id order by t.turn),
         0::real, null::text, null::text, k.words, k.merged_into, k.confirmed
  from (
    select m.tenant, m.id, m.doc, m.scope, m.kind, m.tier, m.status, m.key, m.version, m.content,
           m.summary, m.hash, m.confidence, m.pinned, m.session, m.agent, m.source, m.git,
           m.metadata, m.valid_from, m.valid_to, m.superseded_by, m.created, m.updated,
           array(select t.tag from memory_tag t
                 where t.tenant = p_tenant and t.memory = m.id order by t.tag) as tags, m.words,
           m.merged_into, case when m.confirmed <= coalesce(p_at, 'infinity') then m.confirmed end as confirmed
    from memory m
    where m.tenant = p_tenant and m.status <> 'deleted'
      and m.known_from <= coalesce(p_at, 'infinity') and m.created <= coalesce(p_at, 'infinity')
    union all
    select m.tenant, m.id, m.doc, coalesce(v.state ->> 'scope', m.scope),
           coalesce(v.state ->> 'kind', m.kind), coalesce(v.state ->> 'tier', m.tier), v.status,
           case when v.state ? 'key' then v.state ->> 'key' else m.key end, v.version, v.content,
           v.state ->> 'summary', coalesce((v.state ->> 'hash')::bytea, m.hash),
           coalesce((v.state ->> 'confidence')::real, m.confidence),
           coalesce((v.state ->> 'pinned')::boolean, false), m.session, m.agent, m.source,
           v.state -> 'git', coalesce(v.state -> 'metadata', '{}'),
           (v.state ->> 'valid_from')::timestamptz, (v.state ->> 'valid_to')::timestamptz,
           (v.state ->> 'superseded_by')::uuid, m.created, v.known_from,
           array(select jsonb_array_elements_text(coalesce(v.state -> 'tags', '[]'))), v.words,
           (v.state ->> 'merged_into')::uuid, (v.state ->> 'confirmed')::timestamptz
    from memory_version v join memory m on m.tenant = p_tenant and m.id = v.memory
    where v.tenant = p_tenant and m.status <> 'deleted'
      and v.known_from <= p_at and p_at < v.known_to
  ) k;
end;

-- The active memory of the same scope that contradicts a memory and was stated or confirmed later;
-- null where none does. p_stated: when the memory was last stated or confirmed.
create function contradicted_by(p_tenant int, p_memory uuid, p_scope text, p_stated timestamptz)
returns uuid
language sql stable
begin atomic
  select n.id
  from (
    select e.src as id from edge e
    where e.tenant = p_tenant and e.dst = p_memory and e.kind = 'contradicts' and e.known_to is null
    union all
    select e.dst from edge e
    where e.tenant = p_tenant and e.src = p_memory and e.kind = 'contradicts' and e.known_to is null
  ) x cross join lateral (
    select m.id, coalesce(m.confirmed, m.created) as stated from memory m
    where m.tenant = p_tenant and m.id = x.id and m.status = 'active' and m.scope = p_scope
      and coalesce(m.confirmed, m.created) > p_stated
    limit 1) n
  order by n.stated desc, n.id limit 1;
end;

-- Edges that were open at a moment (null: now).
create function edge_as_of(p_tenant int, p_at timestamptz) returns setof edge
language sql stable
begin atomic
  select e.* from edge e
  where e.tenant = p_tenant and e.known_to is null and e.known_from <= coalesce(p_at, 'infinity')
  union all
  select e.* from edge e
  where e.tenant = p_tenant and e.known_to is not null and e.known_from <= p_at and p_at < e.known_to;
end;

-- Where a memory was at a moment (null: now) after any number of merges; its own id where it was not
-- merged yet.
create function merge_target(p_tenant int, p_memory uuid, p_at timestamptz) returns uuid
language sql stable
begin atomic
  with recursive chain (id, hops) as (
    select p_memory, 0
    union all
    select k.merged_into, c.hops + 1
    from chain c join memory_as_of(p_tenant, p_at) k on k.id = c.id
    where k.merged_into is not null and c.hops < 1000
  )
  select c.id from chain c order by c.hops desc limit 1;
end;

-- Whether a memory passes the filter of a recall, beside scope, kind and status: a tier of `tiers`,
-- all of `tags`, a file of `files`, a time from `since` before `until`, and true at `valid_at`.
create function matches_filter(
  p_tenant int, p_memory uuid, p_tier text, p_at timestamptz, p_filter jsonb
) returns boolean
language sql stable
begin atomic
  select (p_filter->'tiers' is null or p_filter->'tiers' ? p_tier)
    and (p_filter->>'since' is null or p_at >= (p_filter->>'since')::timestamptz)
    and (p_filter->>'until' is null or p_at < (p_filter->>'until')::timestamptz)
    and (p_filter->>'valid_at' is null or exists (
      select from memory m
      where m.tenant = p_tenant and m.id = p_memory
        and coalesce(m.valid_from, '-infinity') <= (p_filter->>'valid_at')::timestamptz
        and (p_filter->>'valid_at')::timestamptz < coalesce(m.valid_to, 'infinity')))
    and (p_filter->'tags' is null or not exists (
      select from jsonb_array_elements_text(p_filter->'tags') t (tag)
      where not exists (select from memory_tag g
                        where g.tenant = p_tenant and g.memory = p_memory and g.tag = t.tag)))
    and (p_filter->'files' is null or exists (
      select from edge e join anchor a on a.tenant = p_tenant and a.node = e.dst
      where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null
        and p_filter->'files' ? a.path));
end;
