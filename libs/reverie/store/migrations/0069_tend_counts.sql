-- The record of tending counts all that was done, also what it does not tell one by one, and how many
-- memories were looked at.
drop function tend_record(int, uuid, text, text, timestamptz, text, text, jsonb);
create function tend_record(p_tenant int, p_run uuid, p_scope text, p_worker text,
                            p_started timestamptz, p_status text, p_error text, p_record jsonb,
                            p_counts jsonb)
returns void
language plpgsql as $$
begin
  perform enter(p_tenant);
  insert into dream_run (tenant, id, scope, epoch, worker, status, started, ended, reason, error)
  values (p_tenant, p_run, p_scope, 0, p_worker, p_status, p_started, clock_timestamp(), 'tend',
          p_error);
  perform dream_note(p_tenant, p_scope, p_run, null, '[]', p_record);
  update dream_run r set outcomes = p_counts where r.tenant = p_tenant and r.id = p_run;
end $$;
