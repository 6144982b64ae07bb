-- Whose memories are tended is held under a lease, as a dream is: what a worker that died left, or
-- one that was told to stop, is another's within seconds, and goes on where it ended.
alter table tenant add column tend_until timestamptz;
alter table tenant add column tend_epoch bigint not null default 0;
alter table tenant add column tend_tries int not null default 0;

drop function tend_claim(interval);

-- The tenant whose memories were tended longest ago, if that is p_every ago and nobody is at it;
-- those that somebody began come after the others. `tries`: how often it was begun and not ended.
create function tend_claim(p_every interval, p_lease interval)
returns table (tenant int, tenant_name text, epoch bigint, tries int)
language sql volatile security definer
begin atomic
  update tenant t
  set tend_until = clock_timestamp() + p_lease, tend_epoch = t.tend_epoch + 1,
      tend_tries = t.tend_tries + 1
  where t.id = (select d.id from tenant d
                where d.tended < clock_timestamp() - p_every
                  and (d.tend_until is null or d.tend_until < clock_timestamp())
                order by d.tend_until is not null, d.tended, d.id limit 1 for update skip locked)
  returning t.id, t.name, t.tend_epoch, t.tend_tries;
end;

-- Keeps the lease alive; false where another has it.
create function tend_keep(p_tenant int, p_epoch bigint, p_lease interval) returns boolean
language sql volatile security definer
begin atomic
  with kept as (
    update tenant t set tend_until = clock_timestamp() + p_lease
    where t.id = p_tenant and t.tend_epoch = p_epoch and t.tend_until is not null
    returning 1)
  select exists (select from kept);
end;

-- Ends it: done for this time, or to be gone on with after p_again.
create function tend_end(p_tenant int, p_epoch bigint, p_again interval) returns boolean
language sql volatile security definer
begin atomic
  with ended as (
    update tenant t
    set tended = case when p_again is null then clock_timestamp() else t.tended end,
        tend_until = clock_timestamp() + p_again, tend_tries = 0
    where t.id = p_tenant and t.tend_epoch = p_epoch and t.tend_until is not null
    returning 1)
  select exists (select from ended);
end;

-- Whether a worker is wanted: some tenant is due, and nobody is at it.
create function tend_waits(p_every interval) returns boolean
language sql stable security definer
begin atomic
  select exists (select from tenant d
                 where d.tended < clock_timestamp() - p_every
                   and (d.tend_until is null or d.tend_until < clock_timestamp()));
end;

do $$
declare
  f text;
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  foreach f in array array[
    'tend_claim(interval, interval)', 'tend_keep(int, bigint, interval)',
    'tend_end(int, bigint, interval)', 'tend_waits(interval)'
  ] loop
    execute format('alter function %s set search_path = %I, public, pg_temp', f, current_schema());
    execute format('alter function %s owner to reverie_system', f);
    execute format('revoke all on function %s from public', f);
    execute format('grant execute on function %s to reverie_app', f);
  end loop;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
