-- When a session's turn was last looked at for corrections, and which one it was.
create table session_adjust (
  tenant int not null,
  session uuid not null,
  at timestamptz not null default now(),
  said bytea not null,
  primary key (tenant, session)
);
call protect('session_adjust');

-- Puts a memory in the place of one that a correction takes back: the new one first, then the old
-- one steps down, whatever key it has. Answers as `remember` does, or {problem: moved} where the old
-- one is not as it was read.
create function replace_memory(p_tenant int, p_tenant_name text, p_old uuid, p_version int,
                               p_item jsonb, p_why text, p_headers jsonb)
returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_one jsonb;
  v_event uuid := gen_random_uuid();
begin
  perform enter(p_tenant);
  perform lock_identities(p_tenant, jsonb_build_array(p_item));
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_old and m.version = p_version and m.status = 'active'
    and m.scope = p_item ->> 'scope'
  for update;
  if not found then
    return jsonb_build_object('problem', 'moved');
  end if;
  if v_old.key is not null then
    return remember(p_tenant, p_tenant_name,
                    p_item || jsonb_build_object('key', v_old.key, 'reason', p_why), p_headers);
  end if;
  v_one := remember(p_tenant, p_tenant_name, p_item, p_headers);
  if v_one ? 'problem' or (v_one ->> 'id')::uuid = p_old then
    return v_one;
  end if;
  perform step_down(p_tenant, v_old, (v_one ->> 'id')::uuid, p_item ->> 'who', p_why);
  insert into edge (tenant, id, src, kind, dst, meta)
  values (p_tenant, gen_random_uuid(), (v_one ->> 'id')::uuid, 'supersedes', v_old.id,
          jsonb_build_object('reason', p_why, 'soft', false))
  on conflict do nothing;
  perform announce(p_tenant, v_event, 'memory.' || p_tenant_name || '.superseded',
                   jsonb_build_object('id', v_old.id, 'version', v_old.version + 1), p_headers);
  return v_one || jsonb_build_object('outcome', 'superseded', 'superseded', jsonb_build_object(
    'id', v_old.id, 'version', v_old.version + 1, 'event', v_event));
end $$;
grant execute on function replace_memory(int, text, uuid, int, jsonb, text, jsonb) to reverie_app;
