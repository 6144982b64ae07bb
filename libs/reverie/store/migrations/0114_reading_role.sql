-- A role for what only reads: recall's reads log in as a member of it. It sees what the services see
-- of a tenant, less keys, secrets and what is counted, and may change nothing.

do $$
begin
  if not exists (select from pg_roles where rolname = 'reverie_read') then
    create role reverie_read nologin nosuperuser nobypassrls;
  end if;
exception
  when duplicate_object or unique_violation then null;
  when insufficient_privilege then
    raise insufficient_privilege using
      message = 'a role is missing: let one who may, say: create role reverie_read nologin';
end $$;

create or replace procedure protect(p_table regclass) language plpgsql as $$
begin
  execute format('alter table %s enable row level security', p_table);
  execute format('alter table %s force row level security', p_table);
  execute format($policy$
    create policy own_tenant on %s
      using (tenant = nullif(current_setting('reverie.tenant', true), '')::int)
      with check (tenant = nullif(current_setting('reverie.tenant', true), '')::int)
  $policy$, p_table);
  execute format('grant select, insert, update, delete on %s to reverie_app', p_table);
  execute format('grant select on %s to reverie_read', p_table);
  call protect_standing(p_table);
end $$;

do $$
declare
  t text;
begin
  execute format('grant usage on schema %I to reverie_read', current_schema());
  for t in
    select k.name from tenant_tables() k
    where k.name not in ('api_key', 'audit', 'git_hook', 'idempotency', 'llm_day', 'meter', 'outbox',
                         'reindexing', 'tend_pass', 'vault', 'vault_epoch')
  loop
    execute format('grant select on %I to reverie_read', t);
  end loop;
end $$;
-- Of keys what finds one by a part of its id, of tenants what says which models they are on.
grant select (tenant, id, label, reads) on api_key to reverie_read;
grant select (id, name, model, models) on tenant to reverie_read;
