-- Anchors, and the intake of git changes.

-- The node of a file in a project; made where it is missing. It has no words of its own, and a key
-- that no memory has: `file:` and its path.
create function anchor_file(p_tenant int, p_project text, p_path text, p_name text, p_id uuid,
                            p_hash bytea)
returns uuid
language plpgsql as $$
declare
  v_node uuid;
begin
  perform enter(p_tenant);
  select a.node into v_node from anchor a
  where a.tenant = p_tenant and a.project = p_project and a.path = p_path;
  if found then return v_node; end if;
  insert into memory (tenant, id, scope, kind, tier, key, enriched_version, content, hash, words,
                      terms, confidence, source)
  values (p_tenant, p_id, 'project/' || p_project, 'file', 'cold', 'file:' || p_path, 1, p_path, p_hash, '',
          0, 1, 'anchor')
  on conflict do nothing;
  select m.id into v_node from memory m
  where m.tenant = p_tenant and m.scope = 'project/' || p_project
    and m.key = 'file:' || p_path and m.kind = 'file' and m.status = 'active';
  if v_node is null then return null; end if;
  insert into anchor (tenant, node, project, path, name)
  values (p_tenant, v_node, p_project, p_path, p_name)
  on conflict do nothing;
  return v_node;
end $$;

-- Stores a change once by (project, branch, after). Answers {id, duplicate}.
create function change_add(p_tenant int, p_id uuid, p_project text, p_branch text, p_after text,
                           p_body jsonb, p_event uuid, p_subject text, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_id uuid;
begin
  perform enter(p_tenant);
  insert into git_event (tenant, id, project, branch, after, body)
  values (p_tenant, p_id, p_project, p_branch, p_after, p_body)
  on conflict do nothing
  returning id into v_id;
  if v_id is not null then
    perform announce(p_tenant, p_event, p_subject,
                     jsonb_build_object('id', v_id, 'project', p_project), p_headers);
    return jsonb_build_object('id', v_id, 'duplicate', false);
  end if;
  select g.id into v_id from git_event g
  where g.tenant = p_tenant and g.project = p_project and g.branch = p_branch
    and g.after = p_after;
  return jsonb_build_object('id', v_id, 'duplicate', true);
end $$;

-- Opens the changes again that may have been applied before this memory touched its files: those of
-- its files, received since it was written. Counting `opened` keeps one in work from being closed
-- by who read the edges before. Answers the events, one a change that was applied.
create function changes_reopen(p_tenant int, p_memory uuid, p_project text, p_subject text,
                               p_headers jsonb)
returns table (event uuid, change uuid)
language plpgsql as $$
declare
  g record;
  v_names text[];
begin
  select array_agg(a.name) into v_names
  from edge e join anchor a on a.tenant = p_tenant and a.node = e.dst
  where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null;
  for g in
    select c.id, c.processed from git_event c
    where c.tenant = p_tenant and c.project = p_project
      and c.received >= (select m.created from memory m
                         where m.tenant = p_tenant and m.id = p_memory)
      and exists (
        select from jsonb_array_elements(c.body -> 'files') f,
                    unnest(array[f ->> 'path', f ->> 'old_path']) path
        where lower(regexp_replace(path, '^.*/', '')) = any(v_names))
    order by c.received, c.id for update
  loop
    update git_event c set processed = null, opened = c.opened + 1
    where c.tenant = p_tenant and c.id = g.id;
    if g.processed is not null then
      event := gen_random_uuid();
      change := g.id;
      perform announce(p_tenant, event, p_subject,
                       jsonb_build_object('id', change, 'project', p_project), p_headers);
      return next;
    end if;
  end loop;
end $$;
