-- A memory as doors show it: with tags, sources, and how stale it is (noisy-or of its marks).

create view memory_shown with (security_invoker = true) as
select m.tenant, m.id, m.doc, m.scope, m.kind, m.tier, m.status, m.key, m.version, m.content,
       m.summary, m.hash, m.confidence, m.pinned, m.session, m.agent, m.source, m.git, m.metadata,
       m.valid_from, m.valid_to, m.superseded_by, m.created, m.updated,
       array(select t.tag from memory_tag t
             where t.tenant = m.tenant and t.memory = m.id order by t.tag) as tags,
       array(select t.turn from memory_turn t
             where t.tenant = m.tenant and t.memory = m.id order by t.turn) as turns,
       coalesce(s.score, 0) as staleness,
       s.grade as stale_grade,
       s.reason as stale_reason
from memory m
left join lateral (
  select 1 - exp(sum(ln(1 - least(k.score, 0.999))))::real as score,
         (array_agg(k.grade order by array_position(array['suspect', 'stale', 'gone'], k.grade) desc))[1]
           as grade,
         (array_agg(k.change || ' ' || k.path || ' in ' || left(k.commit, 10) || ' (' || k.subject || ')'
            order by k.score desc, k.committed_at desc, k.path))[1] as reason
  from stale_mark k
  where k.tenant = m.tenant and k.memory = m.id and k.cleared is null
) s on true;

grant select on memory_shown to reverie_app;
