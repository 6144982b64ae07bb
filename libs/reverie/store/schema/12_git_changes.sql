-- Git changes as they were announced, and what merges and deletions of branches do to memories.

-- A push or merge, announced once per (project, branch, after). `merging` lists branches that it
-- merged and whose memories have yet to be promoted.
create table git_event (
  tenant int not null,
  id uuid not null,
  project text not null,
  branch text not null,
  after text not null,
  body jsonb not null,
  received timestamptz not null default now(),
  processed timestamptz,
  merging text[],
  primary key (tenant, id)
);
create index git_event_unprocessed on git_event (received) where processed is null;
create index git_event_received on git_event (tenant, project, received);
create unique index git_event_after on git_event (tenant, project, branch, after);
create index git_event_merging on git_event (tenant, project) where merging is not null;
call protect_tenant_table('git_event');
call open_to_system('git_event', 'select');

-- Whether a branch is the default branch of its repository, as far as the announced body tells.
create function is_default_branch(p_branch text, p_body jsonb) returns boolean
language sql immutable
return case when p_body ->> 'default_branch' is not null then p_branch = p_body ->> 'default_branch'
            else p_branch in ('main', 'master', 'trunk', 'develop', 'dev') end;

-- Each changed file of a git event, found by its file name: all changes since a memory was written
-- can be read, in whatever order they arrived.
create table git_file (
  tenant int not null,
  event uuid not null,
  ordinal int not null,
  project text not null,
  branch text not null,
  main boolean not null,
  name text not null,
  old_name text,
  at timestamptz not null,
  known_at timestamptz not null,
  facts jsonb not null,
  primary key (tenant, event, ordinal)
) partition by hash (tenant);
create index git_file_name on git_file (tenant, project, name, known_at);
create index git_file_old_name on git_file (tenant, project, old_name, known_at)
  where old_name is not null;
call partition_by_tenant('git_file');
call protect_tenant_table('git_file');

-- When each commit was made, so that the age of a memory that names one is known.
create table git_commit (
  tenant int not null,
  project text not null,
  sha text not null,
  at timestamptz not null,
  primary key (tenant, project, sha)
) partition by hash (tenant);
call partition_by_tenant('git_commit');
call protect_tenant_table('git_commit');

-- Writes the files and commits of a git event. A change counts on its branch from its last commit
-- on, or from its arrival where history was rewritten; a commit that a merge brought in counts from
-- that merge on. A date after the arrival is a wrong clock's: it counts as the arrival.
create function index_git_event(p_event git_event) returns void
language sql volatile
begin atomic
  insert into git_commit (tenant, project, sha, at)
  select p_event.tenant, p_event.project, c.value ->> 'sha',
         least((c.value ->> 'committed_at')::timestamptz, p_event.received)
  from jsonb_array_elements(coalesce(p_event.body -> 'commits', '[]')) c
  on conflict do nothing;
  with pushed_commits as (
    select c.value as body, c.ordinality as ordinal,
           least((c.value ->> 'committed_at')::timestamptz, p_event.received) as at,
           case when c.value ->> 'merged_at' is not null
                then least((c.value ->> 'merged_at')::timestamptz, p_event.received) end as reached
    from jsonb_array_elements(coalesce(p_event.body -> 'commits', '[]')) with ordinality c
  ), latest as (
    select t.* from pushed_commits t order by t.at desc, t.ordinal desc limit 1
  ), named_commits as (
    -- The first seven digits, which every name has, let a push of thousands be joined by hash.
    select distinct on (n.name) n.name, t.body, t.at, t.reached
    from (select distinct f ->> 'commit' as name
          from jsonb_array_elements(coalesce(p_event.body -> 'files', '[]')) f) n
    join pushed_commits t on left(t.body ->> 'sha', 7) = left(n.name, 7)
      and (starts_with(t.body ->> 'sha', n.name) or starts_with(n.name, t.body ->> 'sha'))
    order by n.name, t.at desc, t.ordinal desc
  ), last as (
    select case when coalesce((p_event.body ->> 'forced')::boolean, false)
                then p_event.received else coalesce(max(pushed_commits.at), p_event.received) end as at,
           coalesce((p_event.body ->> 'forced')::boolean, false)
             or coalesce((p_event.body ->> 'merge')::boolean, false)
               and coalesce(bool_and(pushed_commits.reached is null), true) as as_one
    from pushed_commits
  )
  insert into git_file (tenant, event, ordinal, project, branch, main, name, old_name, at, known_at,
                        facts)
  select p_event.tenant, p_event.id, f.ordinality, p_event.project, p_event.branch,
         is_default_branch(p_event.branch, p_event.body),
         lower(regexp_replace(f.value ->> 'path', '^.*/', '')),
         lower(regexp_replace(f.value ->> 'old_path', '^.*/', '')),
         l.at, case when l.as_one then l.at else coalesce(k.reached, k.at, l.at) end,
         f.value || jsonb_build_object(
           'commit', coalesce(k.body ->> 'sha', f.value ->> 'commit', p_event.body ->> 'after'),
           'subject', coalesce(k.body ->> 'subject', ''), 'committed_at', coalesce(k.at, l.at),
           'reverts', k.body ->> 'reverts')
  from jsonb_array_elements(coalesce(p_event.body -> 'files', '[]')) with ordinality f
  cross join last l
  left join named_commits n on n.name = f.value ->> 'commit'
  left join latest a on f.value ->> 'commit' is null
  cross join lateral (
    select coalesce(n.body, a.body) as body, coalesce(n.at, a.at) as at, coalesce(n.reached, a.reached) as reached
  ) k
  -- A history that comes later knows no lines: what another change told of a commit stands.
  where coalesce(p_event.body ->> 'detail', 'lines') = 'lines' or not exists (
    select from git_file g
    where g.tenant = p_event.tenant and g.project = p_event.project and g.branch = p_event.branch
      and g.name = lower(regexp_replace(f.value ->> 'path', '^.*/', ''))
      and g.facts ->> 'commit' = k.body ->> 'sha' and g.event <> p_event.id)
  on conflict do nothing;
end;

-- Indexes a new git event. The lock pairs with enqueue_missed_changes(): of a change and a memory
-- that touches its files, whichever commits last sees the other.
create function git_event_added() returns trigger
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('anchors ' || new.project, new.tenant));
  perform index_git_event(new);
  return null;
end $$;
create trigger git_event_added after insert on git_event
  for each row execute function git_event_added();

-- Stores a change once by (project, branch, after). An announcement of files alone is replaced by
-- one that lists lines, and one that names newly merged branches is applied again. Returns {id,
-- duplicate}.
create function git_event_add(
  p_tenant int, p_id uuid, p_project text, p_branch text, p_after text, p_body jsonb,
  p_event uuid, p_subject text, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_id uuid;
  v_old git_event;
  v_merged jsonb;
begin
  perform set_tenant(p_tenant);
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
      perform index_git_event(v_old);
    elsif jsonb_array_length(v_merged) > jsonb_array_length(coalesce(v_old.body -> 'merged', '[]')) then
      update git_event g set body = g.body || jsonb_build_object('merged', v_merged), processed = null
      where g.tenant = p_tenant and g.id = v_id;
    else
      return jsonb_build_object('id', v_id, 'duplicate', true);
    end if;
  end if;
  perform enqueue_event(p_tenant, p_event, p_subject,
                        jsonb_build_object('id', v_id, 'project', p_project), p_headers);
  return jsonb_build_object('id', v_id, 'duplicate', false);
end $$;

-- Events whose message may be lost: not processed after p_age.
create function changes_unprocessed(p_age interval, p_limit int)
returns table (tenant int, tenant_name text, id uuid)
language sql stable security definer
begin atomic
  select g.tenant, t.name, g.id from git_event g join tenant t on t.id = g.tenant
  where g.processed is null and g.received < clock_timestamp() - p_age
    and not has_work_failed(g.tenant, g.id)
  order by g.received limit p_limit;
end;
call run_across_tenants('changes_unprocessed(interval, int)');

-- Announces that a memory was linked to files after changes that may concern it. Returns the event,
-- or null where there are no such changes.
create function enqueue_missed_changes(
  p_tenant int, p_memory uuid, p_project text, p_subject text, p_headers jsonb
) returns uuid
language plpgsql as $$
declare
  v_event uuid := gen_random_uuid();
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('anchors ' || p_project, p_tenant));
  perform from edge e
  join anchor a on a.tenant = p_tenant and a.node = e.dst
  join memory m on m.tenant = p_tenant and m.id = e.src
  left join git_commit c on c.tenant = p_tenant and c.project = p_project
    and c.sha = m.git ->> 'commit'
  join git_file f on f.tenant = p_tenant and f.project = p_project
    and (f.name = a.name or f.old_name = a.name)
    and f.known_at > case when e.meta ? 'since' then '-infinity'
      when c.at is null then least(m.created, m.valid_from) - interval '1 second' -- git's precision
                          else least(m.created, m.valid_from, c.at) end
  where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null
  limit 1;
  if not found then return null; end if;
  perform enqueue_event(p_tenant, v_event, p_subject,
                        jsonb_build_object('memory', p_memory, 'project', p_project), p_headers);
  return v_event;
end $$;

-- Records which branches a change merged, and requests the dreams that promote their memories: for
-- the project, and for each such branch with pending turns. p_tickets has the id and subject of
-- each request by scope. Returns the requested scopes.
create function request_branch_promotion(
  p_tenant int, p_project text, p_event uuid, p_branches text[], p_tickets jsonb, p_headers jsonb
) returns setof text
language plpgsql as $$
declare
  v_scope text := 'project/' || p_project;
  v_ticket record;
begin
  perform set_tenant(p_tenant);
  update git_event g set merging = p_branches where g.tenant = p_tenant and g.id = p_event;
  for v_ticket in
    select * from jsonb_to_recordset(p_tickets) t (scope text, id uuid, subject text)
    where t.scope = v_scope or exists (
      select from session s where s.tenant = p_tenant and s.scope = t.scope and s.pending > 0)
    order by t.scope
  loop
    perform dream_request(p_tenant, v_ticket.scope, 'merge',
                          case when v_ticket.scope <> v_scope then interval '0' end, v_ticket.id,
                          v_ticket.subject, p_headers);
    return next v_ticket.scope;
  end loop;
end $$;

-- Moves up to p_limit memories of a merged branch to the project. Where the project says the same,
-- that memory wins; where it says something else under the same key, it is superseded. Returns what
-- became of each: {memory, kind, outcome, reason}.
create function branch_promote(
  p_tenant int, p_tenant_name text, p_project text, p_branch text, p_event uuid, p_commit text,
  p_run uuid, p_limit int, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_scope text := 'project/' || p_project;
  v_why text := 'its branch ' || coalesce(
    (select n.name from scope_name n
     where n.tenant = p_tenant and n.scope = v_scope || '/feature/' || p_branch), p_branch)
    || ' was merged in ' || left(p_commit, 10);
  v_old memory;
  v_twin memory;
  v_now timestamptz;
  v_outcome text;
  v_results jsonb := '[]';
begin
  for v_old in
    select m.* from memory m
    where m.tenant = p_tenant and m.scope = v_scope || '/feature/' || p_branch
      and m.kind not in ('file', 'entity')
      and (m.status = 'active' or m.status = 'archived' and exists (
        select from memory_version v where v.tenant = p_tenant and v.memory = m.id
          and v.version = m.version - 1 and v.reason = 'its branch was deleted'))
    order by m.id limit p_limit for update
  loop
    v_twin := null;
    select m.* into v_twin from memory m
    where m.tenant = p_tenant and m.scope = v_scope and m.status = 'active'
      and (m.key = v_old.key
           or m.hash = v_old.hash and coalesce(m.key, '') = coalesce(v_old.key, ''))
    order by m.key = v_old.key desc nulls last limit 1 for update;
    v_now := next_moment(next_moment(null, v_old.known_from), v_twin.known_from);
    perform save_version(p_tenant, v_old, 'reverie', v_why, v_now);
    if v_twin.id is not null and v_twin.hash <> v_old.hash then
      perform supersede(p_tenant, v_twin, v_old.id, 'reverie', v_why, v_now);
      perform link(p_tenant, gen_random_uuid(), v_old.id, 'supersedes', v_twin.id, 1,
                   jsonb_build_object('reason', v_why));
      perform enqueue_memory_event(p_tenant, p_tenant_name, 'superseded', v_twin.id,
                                   v_twin.version + 1, p_headers);
      v_twin := null;
    end if;
    v_outcome := case when v_twin.id is null then 'promoted' else 'superseded' end;
    update memory m
    set scope = v_scope, version = m.version + 1,
        status = case when v_twin.id is null then 'active' else 'superseded' end,
        superseded_by = coalesce(v_twin.id, m.superseded_by),
        metadata = m.metadata || jsonb_build_object('promoted', jsonb_build_object(
          'branch', p_branch, 'event', p_event, 'commit', p_commit, 'run', p_run)),
        enriched_version = m.enriched_version + (m.enriched_version = m.version)::int
    where m.tenant = p_tenant and m.id = v_old.id;
    perform enqueue_memory_event(p_tenant, p_tenant_name, v_outcome, v_old.id, v_old.version + 1,
                                 p_headers);
    -- From now on, changes of the main branch concern it.
    perform enqueue_missed_changes(p_tenant, v_old.id, p_project,
      'git.' || p_tenant_name || '.' || p_project || '.changed', p_headers);
    v_results := v_results || jsonb_build_object('memory', v_old.id, 'kind', v_old.kind, 'outcome',
      v_outcome, 'reason', v_why);
  end loop;
  return v_results;
end $$;

-- Moves up to p_limit memories of merged branches to the project: all branches of the scope's
-- project, or the one branch that the scope is. A branch with turns that have yet to dream comes
-- later. Returns what became of each, or null where the lease was lost.
create function dream_promote(
  p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint, p_run uuid, p_limit int,
  p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_project text := split_part(p_scope, '/', 2);
  v_home text := 'project/' || v_project;
  v_merge record;
  v_results jsonb := '[]';
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return null; end if;
  if p_scope not like 'project/%' then return v_results; end if;
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
    for update of g
  loop
    v_results := v_results || branch_promote(
      p_tenant, p_tenant_name, v_project, v_merge.branch, v_merge.id, v_merge.commit, p_run,
      p_limit - jsonb_array_length(v_results), p_headers);
    exit when jsonb_array_length(v_results) >= p_limit;
    update git_event g set merging = nullif(array_remove(g.merging, v_merge.branch), '{}')
    where g.tenant = p_tenant and g.id = v_merge.id;
  end loop;
  if v_results <> '[]' then
    perform add_run_record(p_tenant, p_scope, p_run, null, v_results, '{}');
  end if;
  return v_results;
end $$;

-- Archives up to p_limit memories of a deleted branch, except pinned ones and those that wait to be
-- promoted. Returns how many.
create function branch_archive(
  p_tenant int, p_tenant_name text, p_project text, p_branch text, p_limit int, p_headers jsonb
) returns int
language plpgsql as $$
declare
  v_old memory;
  v_count int := 0;
begin
  perform set_tenant(p_tenant);
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
    v_count := v_count + 1;
    perform archive_memory(p_tenant, p_tenant_name, v_old, 'reverie', 'its branch was deleted', p_headers);
  end loop;
  return v_count;
end $$;

-- Whether a project is known: by memories, sessions, changes, settings, webhooks, or a key that
-- names it. The cheapest look-ups come first.
create function project_exists(p_tenant int, p_project text) returns boolean
language plpgsql as $$
declare
  v_scope text := 'project/' || p_project;
begin
  perform set_tenant(p_tenant);
  return exists (select from memory m where m.tenant = p_tenant and m.scope = v_scope)
    or exists (select from git_event g where g.tenant = p_tenant and g.project = p_project)
    or exists (select from webhook h where h.tenant = p_tenant and h.project = p_project)
    or exists (select from project_setting p where p.tenant = p_tenant and p.project = p_project)
    or exists (select from api_key k where k.tenant = p_tenant and k.revoked is null
                 and (k.project = p_project or k.writes && array[v_scope, v_scope || '/*']))
    or exists (select from session s where s.tenant = p_tenant
                 and (s.project = p_project or s.scope = v_scope))
    or exists (select from memory m where m.tenant = p_tenant
                 and starts_with(m.scope, v_scope || '/'));
end $$;
