-- Whether anything is known of a project: what lies in it, or who was let into it by name. What is
-- found by an index is asked first; scopes are compared as they are written, whatever the collation.
create or replace function project_known(p_tenant int, p_project text) returns boolean
language plpgsql as $$
declare
  v_home text := 'project/' || p_project;
begin
  perform enter(p_tenant);
  return exists (select from memory m where m.tenant = p_tenant and m.scope = v_home)
    or exists (select from git_event g where g.tenant = p_tenant and g.project = p_project)
    or exists (select from git_hook h where h.tenant = p_tenant and h.project = p_project)
    or exists (select from project_setting p where p.tenant = p_tenant and p.project = p_project)
    or exists (select from api_key k where k.tenant = p_tenant and k.revoked is null
                 and (k.project = p_project or k.writes && array[v_home, v_home || '/*']))
    or exists (select from session s where s.tenant = p_tenant
                 and (s.project = p_project or s.scope = v_home))
    or exists (select from memory m where m.tenant = p_tenant
                 and starts_with(m.scope, v_home || '/'));
end $$;
