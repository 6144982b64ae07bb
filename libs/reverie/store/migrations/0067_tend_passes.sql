-- Where each pass of tending goes on in a tenant: the next look begins above this memory.
create table tend_pass (
  tenant int not null,
  pass text not null,
  above uuid not null,
  looked bigint not null default 0,
  began timestamptz not null default now(),
  ended timestamptz,
  primary key (tenant, pass)
);
call protect('tend_pass');

-- An anchor that was put away because nothing touched it comes back with what touches it.
create or replace function anchor_file(p_tenant int, p_project text, p_path text, p_name text,
                                       p_id uuid, p_hash bytea)
returns uuid
language plpgsql as $$
declare
  v_node uuid;
  v_status text;
begin
  perform enter(p_tenant);
  select a.node, m.status into v_node, v_status
  from anchor a left join memory m on m.tenant = p_tenant and m.id = a.node
  where a.tenant = p_tenant and a.project = p_project and a.path = p_path;
  if found then
    if v_status = 'archived' then perform anchor_back(p_tenant, v_node); end if;
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

create or replace function anchor_entity(p_tenant int, p_scope text, p_name text, p_sort text,
                                         p_id uuid, p_hash bytea)
returns uuid
language plpgsql as $$
declare
  v_node uuid;
begin
  perform enter(p_tenant);
  for attempt in 1..2 loop
    select m.id into v_node from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = 'entity:' || p_name
      and m.kind = 'entity' and m.status = 'active';
    exit when found;
    select m.id into v_node from memory m
    where m.tenant = p_tenant and m.scope = p_scope and m.key = 'entity:' || p_name
      and m.kind = 'entity' and m.status = 'archived' order by m.id limit 1;
    if found then
      perform anchor_back(p_tenant, v_node);
    else
      insert into memory (tenant, id, scope, kind, tier, key, enriched_version, content, hash, words,
                          terms, confidence, source, metadata)
      values (p_tenant, p_id, p_scope, 'entity', 'cold', 'entity:' || p_name, 1, p_name, p_hash, '',
              0, 1, 'anchor', jsonb_build_object('sort', p_sort))
      on conflict do nothing;
    end if;
  end loop;
  return v_node;
end $$;

-- Makes an archived anchor active again, unless another has its key by now.
create function anchor_back(p_tenant int, p_node uuid) returns void
language plpgsql as $$
begin
  update memory m
  set status = 'active', version = m.version + 1, known_from = now(), updated = now(),
      enriched_version = m.version + 1
  where m.tenant = p_tenant and m.id = p_node and m.status = 'archived';
exception when unique_violation then null;
end $$;
grant execute on function anchor_back(int, uuid) to reverie_app;

-- Archives those of some anchors that nothing touches, older than p_days; brings back those put away
-- that something touches after all. Answers (id, outcome).
create function collect_anchors(p_tenant int, p_nodes uuid[], p_days float8)
returns table (node uuid, outcome text)
language plpgsql as $$
declare
  m memory;
  v_touched boolean;
begin
  perform enter(p_tenant);
  for m in
    select x.* from memory x
    where x.tenant = p_tenant and x.id = any(p_nodes) and x.status in ('active', 'archived')
    order by x.id for update skip locked
  loop
    v_touched := exists (select from edge e where e.tenant = p_tenant and e.dst = m.id
                           and e.known_to is null)
              or exists (select from edge e where e.tenant = p_tenant and e.src = m.id
                           and e.known_to is null);
    if v_touched and m.status = 'archived' then
      perform anchor_back(p_tenant, m.id);
      return query select m.id, 'restored';
    elsif not v_touched and m.status = 'active'
          and m.updated < clock_timestamp() - make_interval(secs => p_days * 86400) then
      perform keep_version(p_tenant, m, 'dream', 'nothing touches it');
      update memory x
      set status = 'archived', version = x.version + 1, known_from = now(), updated = now(),
          enriched_version = x.version + 1
      where x.tenant = p_tenant and x.id = m.id;
      return query select m.id, 'archived';
    end if;
  end loop;
end $$;

-- Keeps the record of tending as a run that is over: what it did, how long each pass took.
create function tend_record(p_tenant int, p_run uuid, p_scope text, p_worker text,
                            p_started timestamptz, p_status text, p_error text, p_record jsonb)
returns void
language plpgsql as $$
begin
  perform enter(p_tenant);
  insert into dream_run (tenant, id, scope, epoch, worker, status, started, ended, reason, error)
  values (p_tenant, p_run, p_scope, 0, p_worker, p_status, p_started, clock_timestamp(), 'tend',
          p_error);
  perform dream_note(p_tenant, p_scope, p_run, null, '[]', p_record);
end $$;
