-- Stale marks: which memories a change of files puts in doubt, and how that doubt ends.

-- Evidence against a memory: a commit that changed a file. `node` is the file; `origin` is the
-- memory that touches it: the memory itself, or one from which doubt spread along `via` (edges and
-- memories between).
create table stale_mark (
  tenant int not null,
  memory uuid not null,
  commit text not null,
  path text not null,
  origin uuid not null,
  node uuid,
  via text[] not null default '{}',
  grade text not null check (grade in ('suspect', 'stale', 'gone')),
  score real not null check (score between 0 and 1),
  change text not null,
  lines jsonb not null default '[]',
  subject text not null,
  committed_at timestamptz not null,
  event uuid not null,
  created timestamptz not null default now(),
  cleared timestamptz,
  primary key (tenant, memory, commit, path, origin)
) partition by hash (tenant);
create index stale_mark_open on stale_mark (tenant, memory) where cleared is null;
create index stale_mark_origin on stale_mark (tenant, origin) where cleared is null;
call partition_by_tenant('stale_mark');
call protect_tenant_table('stale_mark');

-- A language model's verdict on a memory in doubt, which waits for a person or agent to accept it.
-- `seen` is the newest mark that the model knew of.
create table review (
  tenant int not null,
  id uuid not null,
  memory uuid not null,
  version int not null,
  verdict text not null check (verdict in ('holds', 'changed', 'gone', 'unsure')),
  content text,
  reason text not null,
  author text not null,
  seen timestamptz not null,
  state text not null default 'open' check (state in ('open', 'accepted', 'rejected')),
  created timestamptz not null default now(),
  decided timestamptz,
  actor text,
  primary key (tenant, id),
  check ((verdict = 'changed') = (content is not null))
);
create index review_memory on review (tenant, memory, version, seen);
create index review_open on review (tenant, id) where state = 'open';
call protect_tenant_table('review');

-- A mark without an origin is the memory's own.
create function default_mark_origin() returns trigger
language plpgsql as $$
begin
  new.origin := coalesce(new.origin, new.memory);
  return new;
end $$;
create trigger default_mark_origin before insert on stale_mark
  for each row execute function default_mark_origin();

-- Replaces the marks that memories (p_origins) leave by files (p_nodes), on themselves and on those
-- that depend on them. Returns the memories that are newly in doubt (open) or no longer are.
-- A memory whose doubt ended since this transaction began stays without these marks: they were worked
-- out from what it was before. Changes that came later are worked out by themselves.
create function replace_marks(
  p_tenant int, p_origins uuid[], p_nodes uuid[], p_marks jsonb
) returns table (memory uuid, version int, open boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_fresh uuid[];
  v_cleared uuid[];
begin
  -- Memories before marks, as edits lock them.
  perform from memory m
  where m.tenant = p_tenant and (m.id = any(p_origins) or m.id in (
    select k.memory from jsonb_to_recordset(p_marks) k (memory uuid)))
  order by m.id for share;
  with new_mark as (
    select * from jsonb_to_recordset(p_marks) k (memory uuid, commit text, path text, origin uuid)
  ), closed as (
    update stale_mark s set cleared = now()
    where s.tenant = p_tenant and s.origin = any(p_origins) and s.node = any(p_nodes)
      and s.cleared is null and not exists (
        select from new_mark w where w.memory = s.memory and w.commit = s.commit
          and w.path = s.path and w.origin = s.origin)
    returning s.memory
  ) select array_agg(distinct c.memory) into v_cleared from closed c;
  with new_mark as (
    select k.* from jsonb_to_recordset(p_marks) k (
      memory uuid, commit text, path text, grade text, score real, change text, subject text,
      committed_at timestamptz, event uuid, node uuid, origin uuid, via text[], lines jsonb)
    join memory m on m.tenant = p_tenant and m.id = k.memory and m.status = 'active'
    where not exists (
      select from memory c
      where c.tenant = p_tenant and c.id in (k.memory, k.origin) and c.checked > now())
  ), fresh as (
    select w.memory from new_mark w where not exists (
      select from stale_mark s
      where s.tenant = p_tenant and s.memory = w.memory and s.commit = w.commit
        and s.path = w.path and s.origin = w.origin and s.cleared is null)
  ), put as (
    insert into stale_mark as s (tenant, memory, commit, path, grade, score, change, subject,
                                 committed_at, event, node, origin, via, lines)
    select p_tenant, w.memory, w.commit, w.path, w.grade, w.score, w.change, w.subject,
           w.committed_at, w.event, w.node, w.origin, w.via, w.lines
    from new_mark w order by w.memory
    on conflict (tenant, memory, commit, path, origin) do update set
      grade = excluded.grade, score = excluded.score, change = excluded.change,
      event = excluded.event, node = excluded.node, via = excluded.via, lines = excluded.lines,
      created = case when s.cleared is null then s.created else now() end, cleared = null
    where s.cleared is not null
      or (s.grade, s.score, s.change, s.node, s.via, s.lines)
         is distinct from (excluded.grade, excluded.score, excluded.change, excluded.node,
                           excluded.via, excluded.lines)
  ) select array_agg(distinct f.memory) into v_fresh from fresh f;
  return query
  select m.id, m.version, true from memory m
  where m.tenant = p_tenant and m.id = any(v_fresh)
  union all
  select m.id, m.version, false from memory m
  where m.tenant = p_tenant and m.id = any(v_cleared) and m.status = 'active'
    and not exists (select from stale_mark s
                    where s.tenant = p_tenant and s.memory = m.id and s.cleared is null);
end $$;

-- A memory that is superseded or deleted casts no doubt and needs none.
create function clear_marks_of_inactive() returns trigger
language plpgsql as $$
begin
  if old.status = 'active' and new.status in ('superseded', 'deleted') then
    update stale_mark s set cleared = clock_timestamp()
    where s.tenant = new.tenant and s.cleared is null
      and (s.memory = new.id or s.origin = new.id);
  end if;
  return null;
end $$;
create trigger clear_marks_of_inactive after update of status on memory
  for each row when (old.status is distinct from new.status)
  execute function clear_marks_of_inactive();

-- Ends all known doubt about a memory: it holds as of now. Returns {version, cleared, event}.
create function end_doubt(p_tenant int, p_tenant_name text, p_memory uuid, p_version int,
                          p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_marks int;
  v_event uuid;
begin
  update memory m set checked = clock_timestamp(), confirmed = clock_timestamp()
  where m.tenant = p_tenant and m.id = p_memory;
  with cleared as (
    update stale_mark s set cleared = now()
    where s.tenant = p_tenant and s.cleared is null
      and (s.memory = p_memory or s.origin = p_memory)
    returning s.memory
  ) select count(*) filter (where c.memory = p_memory) into v_marks from cleared c;
  if v_marks > 0 then
    v_event := gen_random_uuid();
    perform enqueue_memory_event(p_tenant, p_tenant_name, 'cleared', p_memory, p_version,
                                 p_headers, v_event);
  end if;
  return jsonb_build_object('version', p_version, 'cleared', v_marks, 'event', v_event);
end $$;

-- Records that a memory still holds, which clears all known evidence against it. Returns {version,
-- cleared, event}, or {problem: not_found|forbidden|made}.
create function memory_confirm(
  p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[], p_writes text[],
  p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_lock record;
begin
  v_lock := lock_for_change(p_tenant, p_memory, p_reads, p_writes);
  return coalesce(v_lock.problem, end_doubt(p_tenant, p_tenant_name, p_memory,
                                            (v_lock.memory).version, p_headers));
end $$;

-- A text as a UUID; null if it is none.
create function uuid_or_null(p_text text) returns uuid
language sql immutable parallel safe
return case when p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p_text::uuid end;

-- How doubt came to a memory: the file and each memory on the way. One that the grants do not cover
-- is not named, nor is the file that only such a memory touches.
create function mark_path(p_tenant int, p_mark stale_mark, p_reads text[]) returns text[]
language sql stable
begin atomic
  select array_agg(case
      when w.n % 2 = 0 then w.step
      when exists (select from memory m where m.tenant = p_tenant and scope_matches(p_reads, m.scope)
                     and m.id = case w.n when 1 then p_mark.origin else uuid_or_null(w.step) end)
      then w.step
      else '…' end order by w.n)
  from unnest(array[p_mark.path, '<-touches-', p_mark.origin::text] || p_mark.via)
       with ordinality w (step, n);
end;

-- The open evidence against a memory, each change of a file once, newest first.
create function mark_evidence(p_tenant int, p_memory uuid, p_reads text[]) returns jsonb
language sql stable
begin atomic
  select jsonb_agg(jsonb_build_object('commit', s.commit,
    'subject', case s.via[1] when '…' then '…' else s.subject end,
    'committed_at', s.committed_at, 'path', s.via[1], 'change', s.change, 'grade', s.grade,
    'score', s.score, 'lines', s.lines, 'via', s.via) order by s.committed_at desc, s.path)
  from (
    select distinct on (s.commit, s.path) s.commit, s.subject, s.committed_at, s.path, s.change,
           s.grade, s.score, s.lines, mark_path(p_tenant, s, p_reads) as via
    from stale_mark s
    where s.tenant = p_tenant and s.memory = p_memory and s.cleared is null
    order by s.commit, s.path, s.score desc, s.origin
  ) s;
end;
