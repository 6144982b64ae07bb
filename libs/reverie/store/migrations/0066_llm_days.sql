-- What a tenant asked of a language model on a day (UTC): calls, those that failed, tokens.
create table llm_day (
  tenant int not null,
  day date not null,
  calls int not null default 0,
  failed int not null default 0,
  sent bigint not null default 0,
  received bigint not null default 0,
  primary key (tenant, day)
);
call protect('llm_day');

-- As before, and `llm_day` is the tenant's.
create or replace function table_ways() returns table (name text, way text)
language sql stable
begin atomic
  select c.name, case
    when c.name in ('api_key', 'vault_epoch', 'llm_day') then 'never'
    when c.name in ('outbox', 'idempotency', 'recall_trace') then 'quotes'
    when bool_or(c.col = 'scope' and c.type = 'text') then 'scope'
    when c.name in (select n.part from numbered_parts() n) then 'number'
    when bool_or(c.col <> 'id' and c.type in ('uuid', 'uuid[]')) then 'ids'
    when bool_or(c.col = 'project') then 'project' end
  from table_columns() c group by c.name;
end;
