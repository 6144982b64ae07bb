-- Roles, row-level security and grants: everything that decides who sees which rows.

-- reverie_app: the services; row-level security limits it to one tenant at a time.
-- reverie_read: what only reads (recall's readers).
-- reverie_system: owns the few security definer functions that read or write across tenants.
-- Roles belong to the whole server, so another database may have created them already.
do $$
declare
  v_role text;
begin
  foreach v_role in array array['reverie_app', 'reverie_system', 'reverie_read'] loop
    if not exists (select from pg_roles where rolname = v_role) then
      begin
        execute format('create role %I nologin nosuperuser nobypassrls', v_role);
      exception
        when duplicate_object or unique_violation then null;
        when insufficient_privilege then
          raise insufficient_privilege using
            message = format('the role %s is missing: ask an administrator to run'
                             ' `create role %s nologin`', v_role, v_role);
      end;
    end if;
  end loop;
end $$;

-- The owner of the schema must be a member of both roles, to hand functions over to them. Where
-- another user created the roles, that user has to grant this.
do $$
begin
  execute format('grant reverie_app, reverie_system to %I', current_user);
exception
  when unique_violation then null;
  when insufficient_privilege then
    if not (pg_has_role('reverie_app', 'usage') and pg_has_role('reverie_system', 'usage')) then
      raise;
    end if;
end $$;

grant usage on schema reverie to reverie_app, reverie_system, reverie_read;

-- Its existence says that the baseline was applied. A view, because it holds nothing of any tenant;
-- every role may read it, to wait for the schema that it needs.
create view schema_baseline with (security_invoker = true) as select 1 as version;
grant select on schema_baseline to public;

-- Splits a table into hash partitions by tenant, so that each tenant's indexes stay small: 16, or as
-- many as the connection's option `reverie.partitions` says, for a database that stays small.
-- Nothing is ever granted on a partition: a policy of the parent does not protect it when it is
-- queried by its own name.
create procedure partition_by_tenant(p_table regclass) language plpgsql as $$
declare
  v_count int := coalesce(nullif(current_setting('reverie.partitions', true), ''), '16');
begin
  for i in 0..v_count - 1 loop
    execute format('create table %s partition of %s for values with (modulus %s, remainder %s)',
                   p_table::text || '_' || i, p_table, v_count, i);
  end loop;
end $$;

-- Puts a table under row-level security: only rows of the tenant named by set_tenant() are visible,
-- and none can be inserted once that tenant was deleted (except by triggers of the deletion
-- itself). Tables that only the services need are not `p_readable` by the reading role.
create procedure protect_tenant_table(p_table regclass, p_readable boolean default true)
language plpgsql as $$
begin
  execute format('alter table %s enable row level security', p_table);
  execute format('alter table %s force row level security', p_table);
  execute format($policy$
    create policy own_tenant on %s
      using (tenant = nullif(current_setting('reverie.tenant', true), '')::int)
      with check (tenant = nullif(current_setting('reverie.tenant', true), '')::int)
  $policy$, p_table);
  execute format($policy$
    create policy tenant_exists on %s as restrictive for insert to reverie_app
      with check ((select exists (select from tenant)
                   or current_setting('reverie.deleting_tenant', true) = 'on'))
  $policy$, p_table);
  execute format('grant select, insert, update, delete on %s to reverie_app', p_table);
  if p_readable then
    execute format('grant select on %s to reverie_read', p_table);
  end if;
end $$;

-- Lets a security definer function work across tenants: reverie_system owns it, its search path is
-- fixed, and only the services may call it. All work across tenants goes through such functions.
create procedure run_across_tenants(p_function regprocedure) language plpgsql as $$
begin
  execute 'grant create on schema reverie to reverie_system';
  execute format('alter function %s set search_path = pg_catalog, reverie, pg_temp', p_function);
  execute format('alter function %s owner to reverie_system', p_function);
  execute format('revoke all on function %s from public', p_function);
  execute format('grant execute on function %s to reverie_app', p_function);
  execute 'revoke create on schema reverie from reverie_system';
end $$;

-- Allows reverie_system to use one table for all tenants: `p_privileges` are granted to it.
create procedure open_to_system(p_table regclass, p_privileges text) language plpgsql as $$
begin
  execute format('create policy across_tenants on %s %s to reverie_system using (true)', p_table,
                 case p_privileges when 'select' then 'for select' else '' end);
  execute format('grant %s on %s to reverie_system', p_privileges, p_table);
end $$;

-- Sets the tenant for the rest of the transaction; row-level security reads it.
create function set_tenant(p_tenant int) returns void
language sql volatile
begin atomic
  select set_config('reverie.tenant', p_tenant::text, true);
end;

-- Whether any pattern covers more than the one scope that it names. The planner folds it to a
-- constant.
create function has_wildcard(patterns text[]) returns boolean
language sql immutable parallel safe
return exists (select from unnest(patterns) p where right(p, 2) = '/*');

-- Whether grant patterns (`*`, `a/b`, `a/b/*`) cover a scope; the same rule as `matches` in the
-- domain. It has no subquery, so that the planner inlines it and a list of plain scopes becomes
-- `scope = any(list)`, which an index can serve. A scope has at most five parts.
create function scope_matches(patterns text[], scope text) returns boolean
language sql immutable parallel safe
return '*' = any(patterns) or scope = any(patterns) or has_wildcard(patterns) and (
  split_part(scope, '/', 1) || '/*' = any(patterns)
  or rtrim(split_part(scope, '/', 1) || '/' || split_part(scope, '/', 2), '/') || '/*' = any(patterns)
  or rtrim(split_part(scope, '/', 1) || '/' || split_part(scope, '/', 2) || '/'
           || split_part(scope, '/', 3), '/') || '/*' = any(patterns)
  or rtrim(split_part(scope, '/', 1) || '/' || split_part(scope, '/', 2) || '/'
           || split_part(scope, '/', 3) || '/' || split_part(scope, '/', 4), '/') || '/*' = any(patterns)
  or scope || '/*' = any(patterns));

-- Whether grants cover everything that a list of patterns covers. An empty list is covered only by
-- `*`.
create function scopes_match_all(p_grants text[], p_patterns text[]) returns boolean
language sql immutable parallel safe
return '*' = any(p_grants) or cardinality(p_patterns) > 0
  and not exists (select from unnest(p_patterns) p where not scope_matches(p_grants, p));
