-- How doubt came to a memory, as far as a reader may see it; and what becomes of a branch's memories.

-- The file, and each memory on the way from it; one that the grants do not cover is not named.
create function mark_way(p_tenant int, p_mark stale_mark, p_reads text[]) returns text[]
language sql stable
begin atomic
  select array_agg(case
      when w.n = 1 or w.n % 2 = 0 then w.step
      when exists (select from memory m where m.tenant = p_tenant and m.id = w.step::uuid
                     and covers(p_reads, m.scope)) then w.step
      else '…' end order by w.n)
  from unnest(array[p_mark.path, '<-touches-', p_mark.origin::text] || p_mark.via)
       with ordinality w (step, n);
end;

-- The evidence against a memory, each change of a file once, the newest first.
create function mark_evidence(p_tenant int, p_memory uuid, p_reads text[]) returns jsonb
language sql stable
begin atomic
  select jsonb_agg(jsonb_build_object('commit', s.commit, 'subject', s.subject,
    'committed_at', s.committed_at, 'path', s.path, 'change', s.change, 'grade', s.grade,
    'score', s.score, 'lines', s.lines, 'way', s.way) order by s.committed_at desc, s.path)
  from (
    select distinct on (s.commit, s.path) s.commit, s.subject, s.committed_at, s.path, s.change,
           s.grade, s.score, s.lines, mark_way(p_tenant, s, p_reads) as way
    from stale_mark s
    where s.tenant = p_tenant and s.memory = p_memory and s.cleared is null
    order by s.commit, s.path, s.score desc, s.origin
  ) s;
end;

-- Lets up to p_limit memories of a branch that was merged hold for the project, as they are. Where the
-- project has the same, that one stands; what it said under the same key is superseded. Answers how
-- many there were.
create function branch_promote(p_tenant int, p_tenant_name text, p_project text, p_branch text,
                               p_event uuid, p_commit text, p_limit int, p_headers jsonb)
returns int
language plpgsql as $$
declare
  v_home text := 'project/' || p_project;
  v_why text := 'its branch was merged in ' || left(p_commit, 10);
  v_old memory;
  v_twin memory;
  n int := 0;
begin
  perform enter(p_tenant);
  for v_old in
    select m.* from memory m
    where m.tenant = p_tenant and m.scope = v_home || '/feature/' || p_branch
      and m.kind not in ('file', 'entity')
      and (m.status = 'active' or m.status = 'archived' and exists (
        select from memory_version v where v.tenant = p_tenant and v.memory = m.id
          and v.version = m.version - 1 and v.why = 'its branch was deleted'))
    order by m.id limit p_limit for update
  loop
    n := n + 1;
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
    update memory m
    set scope = v_home, version = m.version + 1, known_from = now(), updated = now(),
        status = case when v_twin.id is null then 'active' else 'superseded' end,
        superseded_by = coalesce(v_twin.id, m.superseded_by),
        metadata = m.metadata || jsonb_build_object('promoted', jsonb_build_object(
          'branch', p_branch, 'event', p_event, 'commit', p_commit)),
        enriched_version = case when m.enriched_version = m.version then m.version + 1
                                else m.enriched_version end
    where m.tenant = p_tenant and m.id = v_old.id;
    update memory_rank r set scope = v_home where r.tenant = p_tenant and r.memory = v_old.id;
    perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.' ||
      case when v_twin.id is null then 'promoted' else 'superseded' end,
      jsonb_build_object('id', v_old.id, 'version', v_old.version + 1), p_headers);
  end loop;
  return n;
end $$;

-- Archives up to p_limit memories of a branch that was deleted; pinned ones stay. Answers how many.
create function branch_archive(p_tenant int, p_tenant_name text, p_project text, p_branch text,
                               p_limit int, p_headers jsonb)
returns int
language plpgsql as $$
declare
  v_old memory;
  n int := 0;
begin
  perform enter(p_tenant);
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
