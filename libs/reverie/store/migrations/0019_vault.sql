-- Key-value state of a tenant beside its memory. Secret values are sealed before they come here.

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

-- How often the secrets of a tenant changed: what was read under one number still holds under it.
create table vault_epoch (
  tenant int not null primary key,
  epoch bigint not null default 1
);

create function count_vault_change() returns trigger language plpgsql as $$
begin
  if (tg_op <> 'INSERT' and old.secret) or (tg_op <> 'DELETE' and new.secret) then
    insert into vault_epoch as e (tenant)
    values (case tg_op when 'DELETE' then old.tenant else new.tenant end)
    on conflict (tenant) do update set epoch = e.epoch + 1;
  end if;
  return null;
end $$;
create trigger vault_changed after insert or update or delete on vault
  for each row execute function count_vault_change();

-- 0 where the tenant never kept a secret. One statement by itself, for every write asks it.
create function vault_epoch_of(p_tenant int) returns bigint language plpgsql as $$
begin
  perform enter(p_tenant);
  return coalesce((select e.epoch from vault_epoch e where e.tenant = p_tenant), 0);
end $$;
grant execute on function vault_epoch_of(int) to reverie_app;

call protect('vault');
call protect('vault_epoch');
