-- Each changed file of a change by its name, so that what became of an anchor can be told from all
-- changes since it was known, in whatever order they came; and marks that say through whom.

create table git_file (
  tenant int not null,
  event uuid not null,
  place int not null,
  project text not null,
  branch text not null,
  main boolean not null,
  name text not null,
  old_name text,
  at timestamptz not null,
  known_at timestamptz not null,
  facts jsonb not null,
  primary key (tenant, event, place)
) partition by hash (tenant);
create index git_file_name on git_file (tenant, project, name, known_at);
create index git_file_old_name on git_file (tenant, project, old_name, known_at)
  where old_name is not null;

create table git_commit (
  tenant int not null,
  project text not null,
  sha text not null,
  at timestamptz not null,
  primary key (tenant, project, sha)
) partition by hash (tenant);

-- Paths that a file had before, with the node that bears its memories now.
create table anchor_alias (
  tenant int not null,
  node uuid not null,
  project text not null,
  path text not null,
  name text not null,
  primary key (tenant, node, path)
) partition by hash (tenant);
create index anchor_alias_name on anchor_alias (tenant, project, name);

-- `node` is the file; `origin` the memory that touches it: itself, or the one that doubt came from
-- along `via`, the arrows and memories between.
alter table stale_mark
  add column node uuid,
  add column origin uuid,
  add column via text[] not null default '{}',
  add column lines jsonb not null default '[]';

-- When it was last said that a memory holds: it knows what was committed before.
alter table memory add column checked timestamptz;

do $$
declare
  t record;
  v_table regclass;
begin
  foreach v_table in array array['git_file', 'git_commit', 'anchor_alias']::regclass[] loop
    call split_by_tenant(v_table);
    call protect(v_table);
  end loop;
  for t in select id from tenant_names() loop
    perform enter(t.id);
    update stale_mark s set origin = s.memory where s.tenant = t.id;
  end loop;
  perform set_config('reverie.tenant', '', true);
end $$;
alter table stale_mark alter column origin set not null;
alter table stale_mark drop constraint stale_mark_pkey;
alter table stale_mark add primary key (tenant, memory, commit, path, origin);
create index stale_mark_origin on stale_mark (tenant, origin) where cleared is null;

-- Writes the files and commits of a change. It stands on its branch from its last commit on, or where
-- the branch was set back or is told of no commit from when it came. A file is known to who knew its
-- commit, but of a merge to who knew the merge.
create function note_change(p_event git_event) returns void
language sql volatile
begin atomic
  insert into git_commit (tenant, project, sha, at)
  select p_event.tenant, p_event.project, c.value ->> 'sha', (c.value ->> 'committed_at')::timestamptz
  from jsonb_array_elements(coalesce(p_event.body -> 'commits', '[]')) c
  on conflict do nothing;
  with told as (
    select c.value as body, (c.value ->> 'committed_at')::timestamptz as at, c.ordinality as ord
    from jsonb_array_elements(coalesce(p_event.body -> 'commits', '[]')) with ordinality c
  ), last as (
    select case when coalesce((p_event.body ->> 'forced')::boolean, false)
                then p_event.received else coalesce(max(told.at), p_event.received) end as at
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
         l.at,
         case when coalesce((p_event.body ->> 'forced')::boolean, false)
                or coalesce((p_event.body ->> 'merge')::boolean, false)
              then l.at else coalesce(k.at, l.at) end,
         f.value || jsonb_build_object(
           'commit', coalesce(k.body ->> 'sha', f.value ->> 'commit', p_event.body ->> 'after'),
           'subject', coalesce(k.body ->> 'subject', ''), 'committed_at', coalesce(k.at, l.at),
           'reverts', k.body ->> 'reverts')
  from jsonb_array_elements(coalesce(p_event.body -> 'files', '[]')) with ordinality f
  cross join last l
  left join lateral (
    select t.body, t.at from told t
    where f.value ->> 'commit' is null or starts_with(t.body ->> 'sha', f.value ->> 'commit')
      or starts_with(f.value ->> 'commit', t.body ->> 'sha')
    order by t.at desc, t.ord desc limit 1
  ) k on true
  on conflict do nothing;
end;

-- The lock keeps a change and the anchors of a memory apart (see `missed`): whichever commits last
-- sees the other.
create function note_change_trigger() returns trigger
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('anchors ' || new.project, new.tenant));
  perform note_change(new);
  return null;
end $$;
create trigger git_event_noted after insert on git_event
  for each row execute function note_change_trigger();

do $$
declare
  t record;
begin
  for t in select id from tenant_names() loop
    perform enter(t.id);
    perform note_change(g) from git_event g where g.tenant = t.id;
  end loop;
  perform set_config('reverie.tenant', '', true);
end $$;

-- Announces that a memory's anchors came after changes that may concern it. Answers the event, or null
-- where there is none.
create function missed(p_tenant int, p_memory uuid, p_project text, p_subject text, p_headers jsonb)
returns uuid
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
                          else least(m.created, m.valid_from, c.at) end
  where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null
  limit 1;
  if not found then return null; end if;
  perform announce(p_tenant, v_event, p_subject,
                   jsonb_build_object('memory', p_memory, 'project', p_project), p_headers);
  return v_event;
end $$;

drop function changes_reopen(int, uuid, text, text, jsonb);
alter table git_event drop column opened;
