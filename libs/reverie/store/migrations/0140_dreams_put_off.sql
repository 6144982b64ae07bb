-- As it was, but that without p_max_attempts the run was no attempt, for what it needed was away: the
-- job is given back however often that happens.
create or replace function dream_fail(p_tenant int, p_tenant_name text, p_scope text, p_epoch bigint,
                           p_run uuid, p_error text, p_max_attempts int, p_pause interval,
                           p_letter jsonb, p_told uuid)
returns jsonb
language plpgsql as $$
declare
  v_parked text;
  v_told jsonb;
begin
  if not dream_holds(p_tenant, p_scope, p_epoch) then
    return jsonb_build_object('state', 'lost');
  end if;
  update dream_run r set status = 'failed', ended = now(), error = p_error
  where r.tenant = p_tenant and r.id = p_run;
  v_told := dream_told(p_tenant, p_run);
  if v_told is not null then
    perform announce(p_tenant, p_told, 'memory.' || p_tenant_name || '.digested', v_told, '{}');
  end if;
  update dream_job d
  set lease_until = null, epoch = 0, due = clock_timestamp() + p_pause * power(2, d.attempts - 1),
      attempts = d.attempts - (p_max_attempts is null)::int,
      parked = case when d.attempts >= p_max_attempts then p_error end,
      parked_at = case when d.attempts >= p_max_attempts then clock_timestamp() end
  where d.tenant = p_tenant and d.scope = p_scope
  returning d.parked into v_parked;
  if v_parked is not null then
    perform announce(p_tenant, (p_letter ->> 'id')::uuid, p_letter ->> 'subject',
                     jsonb_build_object('scope', p_scope), p_letter -> 'headers');
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'state', case when v_parked is null then 'retry' else 'parked' end, 'told', v_told));
end $$;
