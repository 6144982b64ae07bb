-- What projects have set, of a file, by the rules of summaries.
create function carry_settings(p_tenant int, p_rows jsonb, p_strategy text) returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_old project_setting;
  v_new project_setting;
begin
  perform enter(p_tenant);
  for v_row in select * from jsonb_array_elements(p_rows) loop
    if carry_row('project_setting', v_row || jsonb_build_object('tenant', p_tenant)) then
      return next jsonb_build_object('outcome', 'created');
      continue;
    end if;
    select s.* into v_old from project_setting s
    where s.tenant = p_tenant and s.project = v_row ->> 'project' and s.name = v_row ->> 'name'
    for update;
    v_new := jsonb_populate_record(v_old, v_row);
    if p_strategy = 'skip' or v_new.value = v_old.value
       or p_strategy = 'merge' and v_new.updated <= v_old.updated then
      return next jsonb_build_object('outcome', 'skipped');
      continue;
    end if;
    update project_setting s set value = v_new.value, updated = v_new.updated
    where s.tenant = p_tenant and s.project = v_old.project and s.name = v_old.name;
    return next jsonb_build_object('outcome', 'updated');
  end loop;
end $$;
