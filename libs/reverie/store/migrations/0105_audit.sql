-- Who read and changed what: kept where a setting says so, for as long as another says.

-- Ids and names alone, no content. `subjects`: what a call was about.
create table audit (
  tenant int not null,
  id uuid not null,
  at timestamptz not null,
  key text not null,
  who text not null,
  service text not null,
  action text not null,
  changes boolean not null,
  status smallint not null,
  problem text,
  subjects text[] not null,
  trace text,
  client text not null,
  primary key (tenant, id)
) partition by hash (tenant);
create index audit_at on audit (at);
create index audit_subjects on audit using gin (subjects);
call split_by_tenant('audit');
call protect('audit');
-- What was noted is not changed; it goes by its age, or with its tenant.
revoke update on audit from reverie_app;

-- As before, and `audit` is the tenant's: it tells who deleted what, too.
create or replace function table_ways() returns table (name text, way text)
language sql stable
begin atomic
  select c.name, case
    when c.name in ('api_key', 'vault_epoch', 'llm_day', 'audit') then 'never'
    when c.name in ('outbox', 'idempotency', 'recall_trace') then 'quotes'
    when bool_or(c.col = 'scope' and c.type = 'text') then 'scope'
    when c.name in (select n.part from numbered_parts() n) then 'number'
    when bool_or(c.col <> 'id' and c.type in ('uuid', 'uuid[]')) then 'ids'
    when bool_or(c.col = 'project') then 'project' end
  from table_columns() c group by c.name;
end;

create policy across on audit to reverie_system using (true);
grant select, delete on audit to reverie_system;

create function audit_sweep(p_age interval) returns bigint
language plpgsql volatile security definer as $$
declare n bigint;
begin
  delete from audit where at < clock_timestamp() - p_age;
  get diagnostics n = row_count;
  return n;
end $$;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function audit_sweep(interval) set search_path = %I, public, pg_temp',
                 current_schema());
  alter function audit_sweep(interval) owner to reverie_system;
  revoke all on function audit_sweep(interval) from public;
  grant execute on function audit_sweep(interval) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
