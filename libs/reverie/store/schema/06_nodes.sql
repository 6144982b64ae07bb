-- Nodes of the graph that are not memories in the proper sense: files and entities that memories
-- speak of.

-- The path of each file node in its project; `name` is the last component, by which changes find
-- it.
create table anchor (
  tenant int not null,
  node uuid not null,
  project text not null,
  path text not null,
  name text not null,
  primary key (tenant, node)
) partition by hash (tenant);
create unique index anchor_path on anchor (tenant, project, path);
create index anchor_name on anchor (tenant, project, name);
call partition_by_tenant('anchor');
call protect_tenant_table('anchor');

-- Paths that a file had before, with the node that holds its memories now.
create table file_rename (
  tenant int not null,
  node uuid not null,
  project text not null,
  path text not null,
  name text not null,
  primary key (tenant, node, path)
) partition by hash (tenant);
create index file_rename_name on file_rename (tenant, project, name);
call partition_by_tenant('file_rename');
call protect_tenant_table('file_rename');

-- Deletes the former paths of a file node with its anchor.
create function delete_file_renames() returns trigger
language plpgsql as $$
begin
  delete from file_rename b where b.tenant = old.tenant and b.node = old.node;
  return null;
end $$;
create trigger anchor_deleted after delete on anchor
  for each row execute function delete_file_renames();

-- The node of a file in a project, created or restored where needed. It has no words of its own,
-- and the key `file:<path>`, which no other memory can have.
create function ensure_file_node(
  p_tenant int, p_project text, p_path text, p_name text, p_id uuid, p_hash bytea
) returns uuid
language plpgsql as $$
declare
  v_node uuid;
  v_status text;
begin
  perform set_tenant(p_tenant);
  select a.node, m.status into v_node, v_status
  from anchor a left join memory m on m.tenant = p_tenant and m.id = a.node
  where a.tenant = p_tenant and a.project = p_project and a.path = p_path;
  if found then
    if v_status = 'archived' then perform restore_node(p_tenant, v_node); end if;
    return v_node;
  end if;
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

-- The node of an entity or topic by its key, created or restored where needed; null where another
-- kind of memory has that key.
create function ensure_entity_node(p_tenant int, p_scope text, p_key text, p_name text, p_sort text,
                                   p_id uuid, p_hash bytea)
returns uuid
language plpgsql as $$
declare
  v_node uuid;
begin
  for attempt in 1..2 loop
    select m.id into v_node from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = p_key and m.kind = 'entity'
      and m.status = 'active';
    exit when found;
    select m.id into v_node from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = p_key and m.kind = 'entity'
      and m.status = 'archived' order by m.id limit 1;
    if found then
      perform restore_node(p_tenant, v_node);
    else
      insert into memory (tenant, id, scope, kind, tier, key, enriched_version, content, hash, words,
                          terms, confidence, source, metadata)
      values (p_tenant, p_id, p_scope, 'entity', 'cold', p_key, 1, p_name, p_hash, '', 0, 1, 'anchor',
              jsonb_build_object('sort', p_sort))
      on conflict do nothing;
    end if;
  end loop;
  return v_node;
end $$;

-- Whether grants show a file or entity node whose scope they cover. A node lies in the project also
-- where only branches or topics of it speak of it, so grants that do not cover all below its scope
-- show only nodes of memories that they cover.
create function node_is_visible(p_tenant int, p_node uuid, p_scope text, p_reads text[])
returns boolean
language sql stable
begin atomic
  select scope_matches(p_reads, p_scope || '/below') or exists (
    select from edge e join memory m on m.tenant = p_tenant and m.id = e.src
    where e.tenant = p_tenant and e.dst = p_node and e.known_to is null
      and m.status <> 'deleted' and scope_matches(p_reads, m.scope));
end;

-- Makes an archived node active again, unless another one has its key by now.
create function restore_node(p_tenant int, p_node uuid) returns void
language plpgsql as $$
declare
  v_old memory;
begin
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_node and m.status = 'archived' for update;
  if not found then return; end if;
  perform save_version(p_tenant, v_old, 'dream', 'something touches it again');
  update memory m
  set status = 'active', version = m.version + 1, enriched_version = m.version + 1
  where m.tenant = p_tenant and m.id = p_node;
exception when unique_violation then null;
end $$;

-- Archives a node, without an event: nodes are in no search.
create function archive_node(p_tenant int, p_old memory, p_why text) returns void
language plpgsql as $$
begin
  perform save_version(p_tenant, p_old, 'dream', p_why);
  update memory m
  set status = 'archived', version = m.version + 1, enriched_version = m.version + 1
  where m.tenant = p_tenant and m.id = p_old.id;
end $$;

-- Gives a renamed file's node its new path, unless another node has that path; says whether it did.
create function rename_file(p_tenant int, p_node uuid, p_path text, p_name text, p_hash bytea)
returns boolean
language plpgsql as $$
declare
  v_old anchor;
  v_node memory;
begin
  perform set_tenant(p_tenant);
  select a.* into v_old from anchor a where a.tenant = p_tenant and a.node = p_node for update;
  if not found or exists (
      select from anchor b
      where b.tenant = p_tenant and b.project = v_old.project and b.path = p_path)
    or exists (
      select from memory o
      where o.tenant = p_tenant and o.scope = 'project/' || v_old.project
        and o.key = 'file:' || p_path and o.status = 'active' and o.id <> p_node) then
    return false;
  end if;
  update anchor a set path = p_path, name = p_name where a.tenant = p_tenant and a.node = p_node;
  select m.* into v_node from memory m where m.tenant = p_tenant and m.id = p_node for update;
  perform save_version(p_tenant, v_node, 'reverie', 'the file was renamed');
  update memory m
  set key = 'file:' || p_path, content = p_path, hash = p_hash, version = m.version + 1,
      enriched_version = m.version + 1
  where m.tenant = p_tenant and m.id = p_node;
  insert into file_rename (tenant, node, project, path, name)
  values (p_tenant, p_node, v_old.project, v_old.path, v_old.name) on conflict do nothing;
  return true;
end $$;

-- Moves the `touches` edges of some memories from one file node to another. A node that no memory
-- touches any more becomes that other one.
create function move_touches(p_tenant int, p_from uuid, p_to uuid, p_memories uuid[]) returns void
language plpgsql as $$
declare
  v_node memory;
begin
  perform set_tenant(p_tenant);
  with closed as (
    update edge e set known_to = next_moment(null, e.known_from)
    where e.tenant = p_tenant and e.dst = p_from and e.kind = 'touches' and e.known_to is null
      and e.src = any(p_memories) and e.src <> p_to
    returning e.src, e.weight, e.meta
  )
  insert into edge as e (tenant, id, src, kind, dst, weight, meta)
  select p_tenant, gen_random_uuid(), c.src, 'touches', p_to, c.weight, c.meta from closed c
  on conflict (tenant, src, kind, dst) where known_to is null
    do update set meta = excluded.meta || e.meta;
  insert into file_rename (tenant, node, project, path, name)
  select p_tenant, p_to, a.project, a.path, a.name
  from (select a.project, a.path, a.name from anchor a
        where a.tenant = p_tenant and a.node = p_from
        union all
        select b.project, b.path, b.name from file_rename b
        where b.tenant = p_tenant and b.node = p_from) a
  on conflict do nothing;
  perform from edge e
  where e.tenant = p_tenant and e.dst = p_from and e.kind = 'touches' and e.known_to is null limit 1;
  if found then return; end if;
  delete from anchor a where a.tenant = p_tenant and a.node = p_from;
  select m.* into v_node from memory m
  where m.tenant = p_tenant and m.id = p_from and m.status = 'active' for update;
  if not found then return; end if;
  perform save_version(p_tenant, v_node, 'reverie', 'the file was renamed to that of ' || p_to);
  update memory m
  set status = 'superseded', superseded_by = p_to, merged_into = p_to, version = m.version + 1,
      enriched_version = m.version + 1
  where m.tenant = p_tenant and m.id = p_from;
end $$;
