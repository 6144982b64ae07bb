-- A merge asks for a dream, which lets the branch's memories hold for the project; and files of a merge
-- are known from when it was made.

-- Branches that a change brought in, whose memories wait to be promoted.
alter table git_event add column merging text[];
create index git_event_merging on git_event (tenant, project) where merging is not null;

-- As it was, but that a commit which a merge brought in stands on the branch from that merge on, and
-- those beside it from when they were made.
create or replace function note_change(p_event git_event) returns void
language sql volatile
begin atomic
  insert into git_commit (tenant, project, sha, at)
  select p_event.tenant, p_event.project, c.value ->> 'sha', (c.value ->> 'committed_at')::timestamptz
  from jsonb_array_elements(coalesce(p_event.body -> 'commits', '[]')) c
  on conflict do nothing;
  with told as (
    select c.value as body, (c.value ->> 'committed_at')::timestamptz as at, c.ordinality as ord,
           (c.value ->> 'reached_at')::timestamptz as reached
    from jsonb_array_elements(coalesce(p_event.body -> 'commits', '[]')) with ordinality c
  ), last as (
    select case when coalesce((p_event.body ->> 'forced')::boolean, false)
                then p_event.received else coalesce(max(told.at), p_event.received) end as at,
           coalesce((p_event.body ->> 'forced')::boolean, false)
             or coalesce((p_event.body ->> 'merge')::boolean, false)
               and coalesce(bool_and(told.reached is null), true) as as_one
    from told
  )
  insert into git_file (tenant, event, place, project, branch, main, name, old_name, at, known_at,
                        facts)
  select p_event.tenant, p_event.id, f.ordinality, p_event.project, p_event.branch,
         case when p_event.body ->> 'default_branch' is not null
              then p_event.branch = p_event.body ->> 'default_branch'
              else p_event.branch in ('main', 'master', 'trunk', 'develop', 'dev') end,
         lower(regexp_replace(f.value ->> 'path', '^.*/', '')),
         lower(regexp_replace(f.value ->> 'old_path', '^.*/', '')),
         l.at, case when l.as_one then l.at else coalesce(k.reached, k.at, l.at) end,
         f.value || jsonb_build_object(
           'commit', coalesce(k.body ->> 'sha', f.value ->> 'commit', p_event.body ->> 'after'),
           'subject', coalesce(k.body ->> 'subject', ''), 'committed_at', coalesce(k.at, l.at),
           'reverts', k.body ->> 'reverts')
  from jsonb_array_elements(coalesce(p_event.body -> 'files', '[]')) with ordinality f
  cross join last l
  left join lateral (
    select t.body, t.at, t.reached from told t
    where f.value ->> 'commit' is null or starts_with(t.body ->> 'sha', f.value ->> 'commit')
      or starts_with(f.value ->> 'commit', t.body ->> 'sha')
    order by t.at desc, t.ord desc limit 1
  ) k on true
  on conflict do nothing;
end;

-- Stores a change once by (project, branch, after). One that was told by files alone gives way to one
-- that tells its lines: its files are noted anew and it is applied again. One that names branches which
-- it brought in, and did not when it was told first, is applied again for them. Answers {id, duplicate}.
create or replace function change_add(p_tenant int, p_id uuid, p_project text, p_branch text,
                                      p_after text, p_body jsonb, p_event uuid, p_subject text,
                                      p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_id uuid;
  v_old git_event;
  v_merged jsonb;
begin
  perform enter(p_tenant);
  insert into git_event (tenant, id, project, branch, after, body)
  values (p_tenant, p_id, p_project, p_branch, p_after, p_body)
  on conflict do nothing
  returning id into v_id;
  if v_id is null then
    select g.* into v_old from git_event g
    where g.tenant = p_tenant and g.project = p_project and g.branch = p_branch
      and g.after = p_after for update;
    v_id := v_old.id;
    select coalesce(jsonb_agg(distinct m), '[]') into v_merged
    from jsonb_array_elements(coalesce(v_old.body -> 'merged', '[]')
                              || coalesce(p_body -> 'merged', '[]')) m;
    if coalesce(v_old.body ->> 'detail', 'lines') = 'files'
       and coalesce(p_body ->> 'detail', 'lines') = 'lines' then
      perform pg_advisory_xact_lock(hashtextextended('anchors ' || p_project, p_tenant));
      update git_event g set body = p_body || jsonb_build_object('merged', v_merged), processed = null
      where g.tenant = p_tenant and g.id = v_id
      returning g.* into v_old;
      delete from git_file f where f.tenant = p_tenant and f.event = v_id;
      perform note_change(v_old);
    elsif jsonb_array_length(v_merged) > jsonb_array_length(coalesce(v_old.body -> 'merged', '[]')) then
      update git_event g set body = g.body || jsonb_build_object('merged', v_merged), processed = null
      where g.tenant = p_tenant and g.id = v_id;
    else
      return jsonb_build_object('id', v_id, 'duplicate', true);
    end if;
  end if;
  perform announce(p_tenant, p_event, p_subject,
                   jsonb_build_object('id', v_id, 'project', p_project), p_headers);
  return jsonb_build_object('id', v_id, 'duplicate', false);
end $$;

-- Notes that a change brought branches in, and asks for the dream that promotes their memories: of the
-- project, and of each such branch with turns that wait. p_tickets: by scope, the id and the subject of
-- the ticket. Answers the scopes asked for.
create function branches_merged(p_tenant int, p_project text, p_event uuid, p_branches text[],
                                p_tickets jsonb, p_headers jsonb)
returns setof text
language plpgsql as $$
declare
  v_home text := 'project/' || p_project;
  v_ticket record;
begin
  perform enter(p_tenant);
  update git_event g set merging = p_branches where g.tenant = p_tenant and g.id = p_event;
  for v_ticket in
    select * from jsonb_to_recordset(p_tickets) t (scope text, id uuid, subject text)
    where t.scope = v_home or exists (
      select from session s where s.tenant = p_tenant and s.scope = t.scope and s.pending > 0)
    order by t.scope
  loop
    perform dream_request(p_tenant, v_ticket.scope, 'merge',
                          case when v_ticket.scope <> v_home then interval '0' end, v_ticket.id,
                          v_ticket.subject, p_headers);
    return next v_ticket.scope;
  end loop;
end $$;

-- Lets up to p_limit memories of branches that were merged hold for the project, as they are, if the
-- epoch still holds: those of the scope's project, or of the scope where it is such a branch. What such
-- a branch has yet to dream comes first. Where the project has the same, that one stands; what it said
-- under the same key is superseded. Answers {memory, kind, outcome, why} of each, or null for a worker
-- that lost its lease.
drop function branch_promote(int, text, text, text, uuid, text, int, jsonb);
create function dream_promote(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                              p_run uuid, p_limit int, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_project text := split_part(p_scope, '/', 2);
  v_home text := 'project/' || v_project;
  v_merge record;
  v_some jsonb;
  v_done jsonb := '[]';
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then return null; end if;
  if p_scope not like 'project/%' then return v_done; end if;
  for v_merge in
    select g.id, g.body ->> 'after' as commit, b.branch
    from git_event g cross join lateral unnest(g.merging) b (branch)
    where g.tenant = p_tenant and g.project = v_project and g.merging is not null
      and (p_scope = v_home or p_scope = v_home || '/feature/' || b.branch)
      and not exists (
        select from session s join dream_job d on d.tenant = p_tenant and d.scope = s.scope
        where s.tenant = p_tenant and s.scope = v_home || '/feature/' || b.branch
          and s.scope <> p_scope and s.pending > 0 and d.parked is null)
    order by g.id, b.branch
  loop
    v_some := branch_promote(p_tenant, p_tenant_name, v_project, v_merge.branch, v_merge.id,
                             v_merge.commit, p_run, p_limit - jsonb_array_length(v_done), p_headers);
    v_done := v_done || v_some;
    if jsonb_array_length(v_done) >= p_limit then return v_done; end if;
    update git_event g set merging = nullif(array_remove(g.merging, v_merge.branch), '{}')
    where g.tenant = p_tenant and g.id = v_merge.id;
  end loop;
  return v_done;
end $$;

create function branch_promote(p_tenant int, p_tenant_name text, p_project text, p_branch text,
                               p_event uuid, p_commit text, p_run uuid, p_limit int,
                               p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_home text := 'project/' || p_project;
  v_why text := 'its branch ' || coalesce(
    (select n.name from scope_name n
     where n.tenant = p_tenant and n.scope = v_home || '/feature/' || p_branch), p_branch)
    || ' was merged in ' || left(p_commit, 10);
  v_old memory;
  v_twin memory;
  v_outcome text;
  v_done jsonb := '[]';
begin
  for v_old in
    select m.* from memory m
    where m.tenant = p_tenant and m.scope = v_home || '/feature/' || p_branch
      and m.kind not in ('file', 'entity')
      and (m.status = 'active' or m.status = 'archived' and exists (
        select from memory_version v where v.tenant = p_tenant and v.memory = m.id
          and v.version = m.version - 1 and v.why = 'its branch was deleted'))
    order by m.id limit p_limit for update
  loop
    perform keep_version(p_tenant, v_old, 'reverie', v_why);
    v_twin := null;
    select m.* into v_twin from memory m
    where m.tenant = p_tenant and m.scope = v_home and m.status = 'active'
      and (m.key = v_old.key
           or m.hash = v_old.hash and coalesce(m.key, '') = coalesce(v_old.key, ''))
    order by m.key = v_old.key desc nulls last limit 1 for update;
    if v_twin.id is not null and v_twin.hash <> v_old.hash then
      perform keep_version(p_tenant, v_twin, 'reverie', v_why);
      update memory m
      set status = 'superseded', superseded_by = v_old.id, version = m.version + 1,
          enriched_version = case when m.enriched_version = m.version then m.version + 1
                                  else m.enriched_version end,
          valid_to = coalesce(m.valid_to, now()), updated = now(), known_from = now()
      where m.tenant = p_tenant and m.id = v_twin.id;
      perform link(p_tenant, gen_random_uuid(), v_old.id, 'supersedes', v_twin.id, 1,
                   jsonb_build_object('reason', v_why));
      perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.superseded',
        jsonb_build_object('id', v_twin.id, 'version', v_twin.version + 1), p_headers);
      v_twin := null;
    end if;
    v_outcome := case when v_twin.id is null then 'promoted' else 'superseded' end;
    update memory m
    set scope = v_home, version = m.version + 1, known_from = now(), updated = now(),
        status = case when v_twin.id is null then 'active' else 'superseded' end,
        superseded_by = coalesce(v_twin.id, m.superseded_by),
        metadata = m.metadata || jsonb_build_object('promoted', jsonb_build_object(
          'branch', p_branch, 'event', p_event, 'commit', p_commit, 'run', p_run)),
        enriched_version = case when m.enriched_version = m.version then m.version + 1
                                else m.enriched_version end
    where m.tenant = p_tenant and m.id = v_old.id;
    update memory_rank r set scope = v_home where r.tenant = p_tenant and r.memory = v_old.id;
    perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.' || v_outcome,
      jsonb_build_object('id', v_old.id, 'version', v_old.version + 1), p_headers);
    -- From now on what happened on the main line concerns it.
    perform missed(p_tenant, v_old.id, p_project, 'git.' || p_tenant_name || '.' || p_project
      || '.changed', p_headers);
    v_done := v_done || jsonb_build_object('memory', v_old.id, 'kind', v_old.kind, 'outcome',
      v_outcome, 'why', v_why);
  end loop;
  return v_done;
end $$;

-- As it was, but that what waits to be promoted is left alone.
create or replace function branch_archive(p_tenant int, p_tenant_name text, p_project text,
                                          p_branch text, p_limit int, p_headers jsonb)
returns int
language plpgsql as $$
declare
  v_old memory;
  n int := 0;
begin
  perform enter(p_tenant);
  perform from git_event g
  where g.tenant = p_tenant and g.project = p_project and g.merging is not null
    and p_branch = any(g.merging) limit 1;
  if found then return 0; end if;
  for v_old in
    select m.* from memory m
    where m.tenant = p_tenant and m.scope = 'project/' || p_project || '/feature/' || p_branch
      and m.status = 'active' and not m.pinned and m.kind not in ('file', 'entity')
    order by m.id limit p_limit for update
  loop
    n := n + 1;
    perform keep_version(p_tenant, v_old, 'reverie', 'its branch was deleted');
    update memory m
    set status = 'archived', version = m.version + 1, known_from = now(), updated = now(),
        enriched_version = case when m.enriched_version = m.version then m.version + 1
                                else m.enriched_version end
    where m.tenant = p_tenant and m.id = v_old.id;
    perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.archived',
                     jsonb_build_object('id', v_old.id, 'version', v_old.version + 1), p_headers);
  end loop;
  return n;
end $$;
