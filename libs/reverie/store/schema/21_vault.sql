-- The vault: key-value state of a tenant, and secrets, encrypted before they come here.

-- An entry is either a plain value or a secret (`sealed` under the key `key_id`).
create table vault (
  tenant int not null,
  scope text not null,
  key text not null,
  value jsonb,
  sealed bytea,
  secret boolean not null,
  key_id text,
  version bigint not null default 1,
  who text not null,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  primary key (tenant, scope, key),
  check (secret = (sealed is not null) and secret = (key_id is not null)),
  check (value is null or not secret)
);
call protect_tenant_table('vault', p_readable => false);

-- The secrets that push webhooks of a project are signed with, encrypted.
create table webhook (
  tenant int not null,
  project text not null,
  kind text not null check (kind in ('github', 'gitlab')),
  sealed bytea not null,
  key_id text not null,
  who text not null,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  primary key (tenant, project, kind)
);
call protect_tenant_table('webhook', p_readable => false);
call open_to_system('webhook', 'select');

-- `epoch` counts changes of a tenant's secrets: what was redacted under one number is redacted as
-- long as it holds. The rest is the progress of the redaction of texts that were stored before a
-- secret was (`requested`: when one was last put). `table_name` and `row_key` say how far a run
-- came; it counts only if it started a while after the secret was put, because writes may have been
-- under way without knowing of it.
create table vault_epoch (
  tenant int not null primary key,
  epoch bigint not null default 1,
  requested timestamptz,
  started timestamptz,
  due timestamptz,
  lease_until timestamptz,
  table_name text,
  row_key jsonb,
  rows_read bigint not null default 0,
  rows_redacted bigint not null default 0,
  runs int not null default 0,
  finished timestamptz
);
create index vault_epoch_due on vault_epoch (due) where finished is null;
call protect_tenant_table('vault_epoch', p_readable => false);
call open_to_system('vault_epoch', 'select, update');

-- Counts a change of secrets, and requests redaction of stored texts by a new one. A value that is
-- only encrypted anew keeps its version and requests nothing.
create function vault_changed() returns trigger
language plpgsql as $$
begin
  if (tg_op <> 'INSERT' and old.secret) or (tg_op <> 'DELETE' and new.secret) then
    insert into vault_epoch as e (tenant)
    values (case tg_op when 'DELETE' then old.tenant else new.tenant end)
    on conflict (tenant) do update set epoch = e.epoch + 1;
  end if;
  if tg_op <> 'DELETE' and new.secret and (tg_op = 'INSERT' or new.version <> old.version) then
    update vault_epoch e
    set requested = clock_timestamp(), due = clock_timestamp(),
        rows_read = case when e.finished is null then e.rows_read else 0 end,
        rows_redacted = case when e.finished is null then e.rows_redacted else 0 end,
        runs = case when e.finished is null then e.runs else 0 end,
        finished = null
    where e.tenant = new.tenant;
  end if;
  return null;
end $$;
create trigger vault_changed after insert or update or delete on vault
  for each row execute function vault_changed();

-- Counts a change of webhook secrets: they are redacted in new texts as those of the vault are.
create function webhook_changed() returns trigger
language plpgsql as $$
begin
  insert into vault_epoch as e (tenant)
  values (case tg_op when 'DELETE' then old.tenant else new.tenant end)
  on conflict (tenant) do update set epoch = e.epoch + 1;
  return null;
end $$;
create trigger webhook_changed after insert or update or delete on webhook
  for each row execute function webhook_changed();

-- The number of changes of a tenant's secrets; 0 where it never had one. One call, because every
-- write asks.
create function vault_epoch_of(p_tenant int) returns bigint
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  return coalesce((select e.epoch from vault_epoch e where e.tenant = p_tenant), 0);
end $$;

-- The encrypted secret of a webhook by the names in its address; the signature is checked
-- afterwards.
create function webhook_find(p_tenant_name text, p_project text, p_kind text)
returns table (tenant int, sealed bytea, key_id text)
language sql stable security definer
begin atomic
  select h.tenant, h.sealed, h.key_id from tenant t join webhook h on h.tenant = t.id
  where t.name = p_tenant_name and h.project = p_project and h.kind = p_kind;
end;
call run_across_tenants('webhook_find(text, text, text)');
