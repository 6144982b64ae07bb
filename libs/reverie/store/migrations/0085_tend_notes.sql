-- What tending under a lease does is noted page by page, so that what a worker did before it died is
-- told too; the next one's first note says that the run was lost. Without a lease (epoch 0) it is
-- noted once, at the end.
drop function tend_record(int, uuid, text, text, timestamptz, text, text, jsonb, jsonb);
create function tend_record(p_tenant int, p_run uuid, p_epoch bigint, p_scope text, p_worker text,
                            p_started timestamptz, p_status text, p_error text, p_record jsonb,
                            p_counts jsonb)
returns void
language plpgsql as $$
declare
  v_ended timestamptz := case when p_status <> 'running' then clock_timestamp() end;
begin
  perform enter(p_tenant);
  update dream_run r set status = p_status, ended = v_ended, error = p_error
  where r.tenant = p_tenant and r.id = p_run;
  if not found then
    update dream_run r set status = 'lost', ended = clock_timestamp()
    where r.tenant = p_tenant and r.scope = p_scope and r.status = 'running'
      and r.reason = 'tend' and r.epoch < p_epoch;
    insert into dream_run (tenant, id, scope, epoch, worker, status, started, ended, reason, error)
    values (p_tenant, p_run, p_scope, p_epoch, p_worker, p_status, p_started, v_ended, 'tend',
            p_error);
  end if;
  perform dream_note(p_tenant, p_scope, p_run, null, '[]', p_record);
  update dream_run r set outcomes = p_counts where r.tenant = p_tenant and r.id = p_run;
end $$;
