-- Sixteen hash partitions a table; row-level security, forced, on every table of a tenant.
-- Nothing is granted on partitions: a partition queried by itself knows no policy.

create procedure split_by_tenant(p_table regclass) language plpgsql as $$
begin
  for i in 0..15 loop
    execute format('create table %s partition of %s for values with (modulus 16, remainder %s)',
                   p_table::text || '_' || i, p_table, i);
  end loop;
end $$;

create procedure protect(p_table regclass) language plpgsql as $$
begin
  execute format('alter table %s enable row level security', p_table);
  execute format('alter table %s force row level security', p_table);
  execute format($policy$
    create policy own_tenant on %s
      using (tenant = nullif(current_setting('reverie.tenant', true), '')::int)
      with check (tenant = nullif(current_setting('reverie.tenant', true), '')::int)
  $policy$, p_table);
  execute format('grant select, insert, update, delete on %s to reverie_app', p_table);
end $$;

do $$
declare
  t regclass;
begin
  for t in
    select c.oid from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'p'
  loop
    call split_by_tenant(t);
  end loop;
  for t in
    select a.attrelid from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and a.attname = 'tenant' and not a.attisdropped
  loop
    call protect(t);
  end loop;
end $$;

alter table tenant enable row level security;
alter table tenant force row level security;
create policy own_tenant on tenant
  using (id = nullif(current_setting('reverie.tenant', true), '')::int);
-- A tenant is made by whoever owns the schema; the services have no grant for it.
create policy made on tenant for insert with check (true);
grant select on tenant to reverie_app;

do $$
begin
  execute format('grant usage on all sequences in schema %I to reverie_app', current_schema());
end $$;
