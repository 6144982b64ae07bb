-- Memories as doors show them: with tags, sources, and how stale they are (noisy-or of their marks).
-- A function rather than a view: it is inlined, and the tenant's number prunes every table in it
-- when the statement is planned.

create function memory_shown(p_tenant int)
returns table (
  tenant int, id uuid, doc bigint, scope text, kind text, tier text, status text, key text,
  version int, content text, summary text, hash bytea, confidence real, pinned boolean,
  session uuid, agent text, source text, git jsonb, metadata jsonb, valid_from timestamptz,
  valid_to timestamptz, superseded_by uuid, created timestamptz, updated timestamptz,
  enriched boolean, tags text[], turns uuid[], staleness real, stale_grade text, stale_reason text)
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
         coalesce(s.score, 0), s.grade, s.reason
  from memory m
  left join lateral (
    select case when bool_or(k.score >= 1) then 1
                else 1 - exp(sum(ln(nullif(1 - k.score::float8, 0)))) end::real as score,
           (array_agg(k.grade order by array_position(array['suspect', 'stale', 'gone'], k.grade) desc))[1]
             as grade,
           (array_agg(k.change || ' ' || k.path || ' in ' || left(k.commit, 10) || ' (' || k.subject || ')'
              order by k.score desc, k.committed_at desc, k.path))[1] as reason
    from stale_mark k
    where k.tenant = p_tenant and k.memory = m.id and k.cleared is null
  ) s on true
  where m.tenant = p_tenant;
end;

grant execute on function memory_shown(int) to reverie_app;
