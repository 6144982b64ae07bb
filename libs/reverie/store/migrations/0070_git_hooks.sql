-- The secrets that push webhooks of a project are signed with, sealed before they come here.

create table git_hook (
  tenant int not null,
  project text not null,
  kind text not null check (kind in ('github', 'gitlab')),
  sealed bytea not null,
  key_id text not null,
  who text not null,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  primary key (tenant, project, kind)
);
call protect('git_hook');

-- They are secrets of the tenant, to be taken out of texts as those of the vault are.
create function count_hook_change() returns trigger language plpgsql as $$
begin
  insert into vault_epoch as e (tenant)
  values (case tg_op when 'DELETE' then old.tenant else new.tenant end)
  on conflict (tenant) do update set epoch = e.epoch + 1;
  return null;
end $$;
create trigger git_hook_changed after insert or update or delete on git_hook
  for each row execute function count_hook_change();

-- Whether anything is known of a project: what lies in it, or who was let into it by name.
create function project_known(p_tenant int, p_project text) returns boolean
language plpgsql as $$
declare
  v_home text := 'project/' || p_project;
begin
  perform enter(p_tenant);
  return exists (select from memory m where m.tenant = p_tenant and m.scope = v_home)
    or exists (select from session s where s.tenant = p_tenant and s.scope = v_home)
    or exists (select from memory m where m.tenant = p_tenant
                 and m.scope >= v_home || '/' and m.scope < v_home || '0')
    or exists (select from session s where s.tenant = p_tenant and s.project = p_project)
    or exists (select from git_hook h where h.tenant = p_tenant and h.project = p_project)
    or exists (select from git_event g where g.tenant = p_tenant and g.project = p_project)
    or exists (select from project_setting p where p.tenant = p_tenant and p.project = p_project)
    or exists (select from api_key k where k.tenant = p_tenant and k.revoked is null
                 and (k.project = p_project or k.writes && array[v_home, v_home || '/*']));
end $$;

-- Who a webhook speaks for, by the names in its address; the signature is checked after.
create policy across on git_hook for select to reverie_system using (true);
grant select on git_hook to reverie_system;

create function hook_find(p_tenant_name text, p_project text, p_kind text)
returns table (tenant int, sealed bytea, key_id text)
language sql stable security definer
begin atomic
  select h.tenant, h.sealed, h.key_id from tenant t join git_hook h on h.tenant = t.id
  where t.name = p_tenant_name and h.project = p_project and h.kind = p_kind;
end;

-- The number of the tenant that a subject of the bus names: who may publish there speaks for it.
create function tenant_called(p_name text) returns int
language sql stable security definer
begin atomic
  select t.id from tenant t where t.name = p_name;
end;

do $$
declare
  v_function regprocedure;
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  foreach v_function in array
    array['hook_find(text, text, text)', 'tenant_called(text)']::regprocedure[]
  loop
    execute format('alter function %s set search_path = %I, public, pg_temp', v_function,
                   current_schema());
    execute format('alter function %s owner to reverie_system', v_function);
    execute format('revoke all on function %s from public', v_function);
    execute format('grant execute on function %s to reverie_app', v_function);
  end loop;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
