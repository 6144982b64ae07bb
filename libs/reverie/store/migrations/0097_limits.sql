-- What a key and a tenant may do in a minute and in a day, counted for all replicas; and keys whose
-- text is changed while the old one still works for a while.

alter table api_key
  add column limits jsonb not null default '{}',
  add column old_hash bytea,
  add column old_until timestamptz;
create unique index api_key_old_hash on api_key (old_hash) where old_hash is not null;

-- Set by operators alone: the services have no right to change a tenant.
alter table tenant add column limits jsonb not null default '{}';

-- What was used of one limit: by a key, or by the whole tenant (`holder` of zeros). A limit of a
-- minute is a bucket that fills again by the second; one of a day begins anew at midnight (UTC).
create table meter (
  tenant int not null,
  holder uuid not null,
  name text not null,
  used float8 not null,
  at timestamptz not null,
  primary key (tenant, holder, name)
);
call protect('meter');

-- Takes p_amount of what is left, and up to p_more beyond it; nothing where p_amount is not left.
-- `wait`: seconds until it is, where it was refused; else until all is there again.
create function meter_take(p_tenant int, p_holder uuid, p_name text, p_limit float8, p_amount float8,
                           p_more float8)
returns table (granted float8, remains float8, wait float8)
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_minute boolean := p_name like '%\_a\_minute';
  v_used float8;
begin
  perform enter(p_tenant);
  -- What a crash would lose of this is within a second.
  perform set_config('synchronous_commit', 'off', true);
  insert into meter values (p_tenant, p_holder, p_name, 0, v_now) on conflict do nothing;
  select case when v_minute
    then greatest(0, m.used - extract(epoch from v_now - m.at) * p_limit / 60)
    else case when (m.at at time zone 'utc')::date = (v_now at time zone 'utc')::date
         then m.used else 0 end end
  into v_used from meter m
  where m.tenant = p_tenant and m.holder = p_holder and m.name = p_name for update;
  granted := case when v_used + p_amount > p_limit then 0
             else least(p_amount + p_more, p_limit - v_used) end;
  remains := p_limit - v_used - granted;
  wait := case
    when v_minute and granted = 0 then (v_used + p_amount - p_limit) * 60 / p_limit
    when v_minute then (v_used + granted) * 60 / p_limit
    else extract(epoch from date_trunc('day', v_now at time zone 'utc') + interval '1 day'
                 - (v_now at time zone 'utc')) end;
  update meter m set used = v_used + granted, at = v_now
  where m.tenant = p_tenant and m.holder = p_holder and m.name = p_name;
  return next;
end $$;

drop function find_key(bytea);
create function find_key(p_hash bytea)
returns table (tenant int, tenant_name text, id uuid, role text, reads text[], writes text[],
               project text, agent text, limits jsonb, tenant_limits jsonb, own_limits jsonb)
language sql stable security definer
begin atomic
  select k.tenant, t.name, k.id, k.role, k.reads, k.writes, k.project, k.agent, k.limits, t.limits,
         coalesce((select s.value from project_setting s
                   where s.tenant = k.tenant and s.project = '*' and s.name = 'limits'), '{}')
  from api_key k join tenant t on t.id = k.tenant
  where (k.hash = p_hash or (k.old_hash = p_hash and k.old_until > now()))
    and k.revoked is null and (k.expires is null or k.expires > now());
end;

-- For operators alone: the services have no grant for it.
create function tenant_limit(p_tenant int, p_limits jsonb) returns void
language sql volatile security definer
begin atomic
  update tenant t set limits = p_limits where t.id = p_tenant;
end;

do $$
declare
  f regprocedure;
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  for f in
    select p.oid from pg_proc p
    where p.pronamespace = current_schema()::regnamespace and p.proname in ('find_key', 'tenant_limit')
  loop
    execute format('alter function %s set search_path = %I, public, pg_temp', f, current_schema());
    execute format('alter function %s owner to reverie_system', f);
    execute format('revoke all on function %s from public', f);
  end loop;
  grant execute on function find_key(bytea) to reverie_app;
  execute format('grant execute on function tenant_limit(int, jsonb) to %I', current_user);
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
