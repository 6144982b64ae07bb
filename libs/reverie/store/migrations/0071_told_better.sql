-- Stores a change once by (project, branch, after). One that was told by files alone gives way to one
-- that tells its lines: its files are noted anew and it is applied again. Answers {id, duplicate}.
create or replace function change_add(p_tenant int, p_id uuid, p_project text, p_branch text,
                                      p_after text, p_body jsonb, p_event uuid, p_subject text,
                                      p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_id uuid;
  v_old git_event;
begin
  perform enter(p_tenant);
  insert into git_event (tenant, id, project, branch, after, body)
  values (p_tenant, p_id, p_project, p_branch, p_after, p_body)
  on conflict do nothing
  returning id into v_id;
  if v_id is null then
    select g.* into v_old from git_event g
    where g.tenant = p_tenant and g.project = p_project and g.branch = p_branch
      and g.after = p_after for update;
    if coalesce(v_old.body ->> 'detail', 'lines') = coalesce(p_body ->> 'detail', 'lines')
       or p_body ->> 'detail' = 'files' then
      return jsonb_build_object('id', v_old.id, 'duplicate', true);
    end if;
    perform pg_advisory_xact_lock(hashtextextended('anchors ' || p_project, p_tenant));
    update git_event g set body = p_body, processed = null
    where g.tenant = p_tenant and g.id = v_old.id
    returning g.* into v_old;
    delete from git_file f where f.tenant = p_tenant and f.event = v_old.id;
    perform note_change(v_old);
    v_id := v_old.id;
  end if;
  perform announce(p_tenant, p_event, p_subject,
                   jsonb_build_object('id', v_id, 'project', p_project), p_headers);
  return jsonb_build_object('id', v_id, 'duplicate', false);
end $$;
