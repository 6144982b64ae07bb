-- A claim looks tenant by tenant for the first job that is due, the longest unserved first: what one
-- tenant has queued costs the others nothing.
create index dream_job_next on dream_job (tenant, due, scope) where parked is null;

drop function dream_claim(text, interval);
create function dream_claim(p_worker text, p_lease interval)
returns table (tenant int, tenant_name text, scope text, epoch bigint, attempts int)
language plpgsql volatile security definer as $$
declare
  v_now timestamptz := clock_timestamp();
  v_tenant int;
  j dream_job;
begin
  for v_tenant in
    select t.id from tenant t
    where exists (select from dream_job d where d.tenant = t.id and d.parked is null
                    and d.due <= v_now and (d.lease_until is null or d.lease_until < v_now))
    order by t.served_at, t.id
  loop
    select d.* into j from dream_job d
    where d.tenant = v_tenant and d.parked is null and d.due <= v_now
      and (d.lease_until is null or d.lease_until < v_now)
    order by d.due, d.scope
    limit 1 for update skip locked;
    exit when found;
  end loop;
  if j.tenant is null then return; end if;
  update tenant t set served_at = clock_timestamp() where t.id = j.tenant;
  return query
    update dream_job d
    set epoch = nextval('dream_epoch'), worker = p_worker, attempts = d.attempts + 1, again = false,
        lease_until = clock_timestamp() + p_lease
    where d.tenant = j.tenant and d.scope = j.scope
    returning d.tenant, (select t.name from tenant t where t.id = d.tenant),
              d.scope, d.epoch, d.attempts;
end $$;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function dream_claim(text, interval) set search_path = %I, public, pg_temp',
                 current_schema());
  alter function dream_claim(text, interval) owner to reverie_system;
  revoke all on function dream_claim(text, interval) from public;
  grant execute on function dream_claim(text, interval) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
