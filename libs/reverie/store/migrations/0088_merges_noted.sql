-- As it was, but that what is promoted is noted with it in the record of the run, and that the change is
-- held before its anchors are, as whoever tells it anew does.
create or replace function dream_promote(p_tenant int, p_tenant_name text, p_scope text,
                                         p_epoch bigint, p_run uuid, p_limit int, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_project text := split_part(p_scope, '/', 2);
  v_home text := 'project/' || v_project;
  v_merge record;
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
    for update of g
  loop
    v_done := v_done || branch_promote(
      p_tenant, p_tenant_name, v_project, v_merge.branch, v_merge.id, v_merge.commit, p_run,
      p_limit - jsonb_array_length(v_done), p_headers);
    exit when jsonb_array_length(v_done) >= p_limit;
    update git_event g set merging = nullif(array_remove(g.merging, v_merge.branch), '{}')
    where g.tenant = p_tenant and g.id = v_merge.id;
  end loop;
  if v_done <> '[]' then
    perform dream_note(p_tenant, p_scope, p_run, null, v_done, '{}');
  end if;
  return v_done;
end $$;
