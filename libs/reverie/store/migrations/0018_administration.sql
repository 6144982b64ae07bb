-- Deleting a scope or a tenant. What belongs to one is found in the catalogue, so that a table
-- made later is not forgotten.

-- The tables that hold rows of tenants.
create function tenant_tables() returns table (name text)
language sql stable
begin atomic
  select c.relname::text
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
    and not c.relispartition and a.attname = 'tenant' and not a.attisdropped
  order by 1;
end;

create function table_columns() returns table (name text, col text, type text, needed boolean)
language sql stable
begin atomic
  select t.name, a.attname::text, a.atttypid::regtype::text, a.attnotnull
  from tenant_tables() t
  join pg_class c on c.relname = t.name and c.relnamespace = current_schema()::regnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  order by 1, a.attnum;
end;

-- Tables whose rows are found by a number that is no id: `owner.number` is `part.col`.
create function numbered_parts() returns table (owner text, number text, part text, col text)
language sql stable
begin atomic
  select * from (values ('memory', 'doc', 'posting', 'doc'), ('turn', 'doc', 'turn_posting', 'doc')) v
  union all
  select 'chunk', 'no', c.name, c.col from table_columns() c where c.col = 'chunk' and c.type = 'bigint';
end;

-- How a table loses the rows of a scope: `scope` (it names the scope), `ids` (it names what is
-- deleted, in any column of ids), `project` (it names the project), `number`, `quotes` (it quotes
-- ids in texts), `never` (it is the tenant's). Null: nobody has said.
create function scope_way(p_table text) returns text
language sql stable
return case
  when p_table in ('api_key', 'vault_epoch') then 'never'
  when p_table in ('outbox', 'idempotency') then 'quotes'
  when exists (select from table_columns() c where c.name = p_table and c.col = 'scope'
                 and c.type = 'text') then 'scope'
  when exists (select from numbered_parts() n where n.part = p_table) then 'number'
  when exists (select from table_columns() c where c.name = p_table and c.col <> 'id'
                 and c.type in ('uuid', 'uuid[]')) then 'ids'
  when exists (select from table_columns() c where c.name = p_table and c.col = 'project') then 'project'
end;

-- Deletes rows of a table by a condition on `x` (`$1` the tenant, `$2` ids, `$3` patterns or names),
-- and what is found by their numbers or names their ids.
create function erase(p_tenant int, p_table text, p_where text, p_ids uuid[], p_texts text[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  v_ids uuid[];
  v_numbers bigint[];
  v_number text := (select min(n.number) from numbered_parts() n where n.owner = p_table);
  v_has_id boolean := exists (select from table_columns() c where c.name = p_table
                                and c.col = 'id' and c.type = 'uuid');
  p record;
begin
  execute format(
    'with gone as (delete from %I x where x.tenant = $1 and (%s) returning %s as id, %s as number)'
    ' select count(*), array_agg(id), array_agg(number) from gone',
    p_table, p_where, case when v_has_id then 'x.id' else 'null::uuid' end,
    coalesce('x.' || quote_ident(v_number), 'null::bigint'))
  into gone, v_ids, v_numbers using p_tenant, p_ids, p_texts;
  if gone = 0 then return; end if;
  name := p_table;
  return next;
  for p in select n.part, n.col from numbered_parts() n where n.owner = p_table loop
    execute format('delete from %I x where x.tenant = $1 and x.%I = any($2)', p.part, p.col)
      using p_tenant, v_numbers;
    get diagnostics gone = row_count;
    name := p.part;
    return next;
  end loop;
  if v_has_id then
    return query select * from erase_named(p_tenant, v_ids);
  end if;
end $$;

-- What names deleted ids goes with them; what has a scope of its own stays and only forgets them.
create function erase_named(p_tenant int, p_ids uuid[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  c record;
begin
  for c in select k.*, scope_way(k.name) as way from table_columns() k
           where k.type in ('uuid', 'uuid[]') loop
    if c.way in ('ids', 'project') and (c.col <> 'id' or c.type <> 'uuid') then
      return query select * from erase(
        p_tenant, c.name,
        format(case c.type when 'uuid' then 'x.%I = any($2)' else 'x.%I && $2' end, c.col),
        p_ids, null);
    elsif c.way = 'scope' and c.type = 'uuid' and not c.needed then
      execute format('update %1$I x set %2$I = null where x.tenant = $1 and x.%2$I = any($2)',
                     c.name, c.col) using p_tenant, p_ids;
    end if;
  end loop;
end $$;

create function quoted(p_text text) returns uuid[]
language sql immutable
return array(select m[1]::uuid from regexp_matches(
  lower(p_text), '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'g') m);

-- Events on their way and kept answers that quote ids. What a session was told at its start quotes
-- memories without their ids, so none of those is kept.
create function erase_quotes(p_tenant int, p_ids uuid[])
returns table (name text, gone bigint)
language plpgsql as $$
begin
  delete from outbox x where x.tenant = p_tenant and quoted(x.payload::text) && p_ids;
  get diagnostics gone = row_count;
  name := 'outbox';
  return next;
  delete from idempotency x where x.tenant = p_tenant and x.status is not null
    and (quoted(encode(x.body, 'escape')) && p_ids or x.route like '%/v1/sessions/start%');
  get diagnostics gone = row_count;
  name := 'idempotency';
  return next;
end $$;

-- Deletes up to p_limit memories, else turns, of the scopes that the patterns cover; when there are
-- none, all else of them and, where it is named, of the project. Nothing left: no row.
create function scope_sweep(p_tenant int, p_patterns text[], p_project text, p_limit int)
returns table (name text, gone bigint)
language plpgsql as $$
declare
  v_ids uuid[];
  t record;
begin
  perform enter(p_tenant);
  v_ids := array(select m.id from memory m where m.tenant = p_tenant and covers(p_patterns, m.scope)
                 order by m.id limit p_limit for update);
  if cardinality(v_ids) > 0 then
    return query select * from erase(p_tenant, 'memory', 'x.id = any($2)', v_ids, null);
    return query select * from erase_quotes(p_tenant, v_ids);
    return;
  end if;
  v_ids := array(select u.id from turn u join session s on s.tenant = p_tenant and s.id = u.session
                 where u.tenant = p_tenant and covers(p_patterns, s.scope) limit p_limit);
  if cardinality(v_ids) > 0 then
    return query select * from erase(p_tenant, 'turn', 'x.id = any($2)', v_ids, null);
    return;
  end if;
  v_ids := array(select s.id from session s
                 where s.tenant = p_tenant and covers(p_patterns, s.scope));
  return query select q.* from erase_quotes(p_tenant, v_ids) q where q.gone > 0 and v_ids <> '{}';
  for t in select k.name as held, scope_way(k.name) as way from tenant_tables() k loop
    if t.way = 'scope' then
      return query select * from erase(p_tenant, t.held, 'covers($3, x.scope)', null, p_patterns);
    elsif p_project is not null and exists (
        select from table_columns() c where c.name = t.held and c.col = 'project')
        and t.way in ('ids', 'project') then
      return query select * from erase(p_tenant, t.held, 'x.project = any($3)', null, array[p_project]);
    end if;
  end loop;
  delete from outbox x where x.tenant = p_tenant and covers(p_patterns, x.payload ->> 'scope');
  get diagnostics gone = row_count;
  if gone > 0 then name := 'outbox'; return next; end if;
end $$;

-- Deletes up to p_limit rows of a tenant from one of its tables.
create function tenant_sweep(p_tenant int, p_table text, p_limit int) returns bigint
language plpgsql as $$
declare
  n bigint;
begin
  perform enter(p_tenant);
  perform set_config('reverie.leaving', 'on', true);
  if not exists (select from tenant_tables() t where t.name = p_table) then
    raise undefined_table using message = p_table;
  end if;
  -- A tenant's rows lie in one partition, so that their place in it tells them apart.
  execute format('delete from %1$I where tenant = $1 and ctid = any(array('
                 'select x.ctid from %1$I x where x.tenant = $1 limit $2))', p_table)
  using p_tenant, p_limit;
  get diagnostics n = row_count;
  return n;
end $$;

-- Ends a tenant with its keys. From then on no row of it can be made (`stands`, below). Answers the
-- number of this transaction: once none older runs, what was under way has ended.
create function tenant_end(p_tenant int) returns xid8
language plpgsql volatile security definer as $$
begin
  delete from tenant t where t.id = p_tenant
    and t.id = nullif(current_setting('reverie.tenant', true), '')::int;
  return pg_current_xact_id();
end $$;

-- No row of a tenant that is gone; read once for a statement. Triggers of a deletion may still write,
-- for what they write is deleted too.
create procedure protect_standing(p_table regclass) language plpgsql as $$
begin
  execute format('create policy stands on %s as restrictive for insert to reverie_app'
                 ' with check ((select exists (select from tenant)'
                 ' or current_setting(''reverie.leaving'', true) = ''on''))', p_table);
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
  call protect_standing(p_table);
end $$;

do $$
declare
  t text;
begin
  for t in select k.name from tenant_tables() k loop
    call protect_standing(t::regclass);
  end loop;
end $$;

grant delete on tenant to reverie_system;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function tenant_end(int) set search_path = %I, public, pg_temp', current_schema());
  alter function tenant_end(int) owner to reverie_system;
  revoke all on function tenant_end(int) from public;
  grant execute on function tenant_end(int) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
