-- What people call a scope whose last part is the slug of another name.
create table scope_name (
  tenant int not null,
  scope text not null,
  name text not null,
  primary key (tenant, scope)
);
call protect('scope_name');

-- Keeps names ({scope: name}); answers the scopes that have another name already.
create function keep_names(p_tenant int, p_names jsonb) returns text[]
language plpgsql as $$
begin
  perform enter(p_tenant);
  insert into scope_name (tenant, scope, name)
  select p_tenant, n.key, n.value from jsonb_each_text(p_names) n order by n.key
  on conflict do nothing;
  return array(select s.scope from scope_name s join jsonb_each_text(p_names) n on n.key = s.scope
               where s.tenant = p_tenant and s.name <> n.value order by s.scope);
end $$;

-- Names of a file ([{scope, name}]); one that stands stays.
create function carry_names(p_tenant int, p_rows jsonb) returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
begin
  perform enter(p_tenant);
  for v_row in select r || jsonb_build_object('tenant', p_tenant) from jsonb_array_elements(p_rows) r
  loop
    return next jsonb_build_object('outcome',
      case when carry_row('scope_name', v_row) then 'created' else 'skipped' end);
  end loop;
end $$;

-- The columns besides those of memories in which a secret may stand.
create or replace function scrub_columns() returns table (name text, col text)
language sql immutable
begin atomic
  select v.name, v.col from (values
    ('turn', 'content'), ('turn', 'tool'), ('turn', 'external_id'),
    ('memory_version', 'content'), ('memory_version', 'why'), ('memory_version', 'state'),
    ('session', 'external_id'), ('session', 'branch'), ('session', 'summary'),
    ('edge', 'meta'), ('summary', 'content'), ('scope_name', 'name'), ('git_event', 'body'),
    ('git_event', 'branch'), ('stale_mark', 'path'), ('stale_mark', 'subject'),
    ('api_key', 'label'), ('outbox', 'payload'), ('recall_trace', 'query'),
    ('recall_trace', 'asked')) v (name, col);
end;
