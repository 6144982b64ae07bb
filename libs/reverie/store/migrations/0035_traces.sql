-- How each recall came to its answer, kept for a short while.

-- What was asked stands as text, so that it is found by whoever looks for secrets; `told` is the
-- compressed rest, ids and numbers alone. `trace`: of the request, shared by all that it led to.
create table recall_trace (
  tenant int not null,
  id uuid not null,
  trace uuid,
  at timestamptz not null,
  who text not null,
  session uuid,
  agent text,
  scopes text[] not null,
  query text not null,
  asked jsonb not null,
  told bytea not null,
  primary key (tenant, id)
) partition by hash (tenant);
create index recall_trace_request on recall_trace (tenant, trace);
create index recall_trace_at on recall_trace (at);
call split_by_tenant('recall_trace');
call protect('recall_trace');

-- A trace quotes ids of all that was weighed: where a scope is deleted, none of the tenant is kept.
create or replace function scope_way(p_table text) returns text
language sql stable
return case
  when p_table in ('api_key', 'vault_epoch') then 'never'
  when p_table in ('outbox', 'idempotency', 'recall_trace') then 'quotes'
  when exists (select from table_columns() c where c.name = p_table and c.col = 'scope'
                 and c.type = 'text') then 'scope'
  when exists (select from numbered_parts() n where n.part = p_table) then 'number'
  when exists (select from table_columns() c where c.name = p_table and c.col <> 'id'
                 and c.type in ('uuid', 'uuid[]')) then 'ids'
  when exists (select from table_columns() c where c.name = p_table and c.col = 'project') then 'project'
end;

create or replace function erase_quotes(p_tenant int, p_ids uuid[])
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
  delete from memory_use_session x
  where x.tenant = p_tenant and x.used_by in (select 'session ' || i from unnest(p_ids) i);
  get diagnostics gone = row_count;
  name := 'memory_use_session';
  return next;
  delete from recall_trace x where x.tenant = p_tenant;
  get diagnostics gone = row_count;
  name := 'recall_trace';
  return next;
end $$;

create or replace function scrub_columns() returns table (name text, col text)
language sql immutable
begin atomic
  select v.name, v.col from (values
    ('turn', 'content'), ('turn', 'tool'), ('turn', 'external_id'),
    ('memory_version', 'content'), ('memory_version', 'why'), ('memory_version', 'state'),
    ('session', 'external_id'), ('session', 'branch'), ('session', 'summary'),
    ('edge', 'meta'), ('summary', 'content'), ('git_event', 'body'), ('git_event', 'branch'),
    ('stale_mark', 'path'), ('stale_mark', 'subject'), ('api_key', 'label'),
    ('outbox', 'payload'), ('recall_trace', 'query'), ('recall_trace', 'asked')) v (name, col);
end;

-- Whether grants cover all that a list of patterns covers; an empty one only who may read anything.
create function covers_all(p_grants text[], p_patterns text[]) returns boolean
language sql immutable parallel safe
return '*' = any(p_grants) or cardinality(p_patterns) > 0
  and not exists (select from unnest(p_patterns) p where not covers(p_grants, p));

create policy across on recall_trace to reverie_system using (true);
grant select, update, delete on recall_trace to reverie_system;

create function recall_trace_sweep(p_age interval) returns bigint
language plpgsql volatile security definer as $$
declare n bigint;
begin
  delete from recall_trace where at < clock_timestamp() - p_age;
  get diagnostics n = row_count;
  return n;
end $$;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function recall_trace_sweep(interval) set search_path = %I, public, pg_temp',
                 current_schema());
  alter function recall_trace_sweep(interval) owner to reverie_system;
  revoke all on function recall_trace_sweep(interval) from public;
  grant execute on function recall_trace_sweep(interval) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;
