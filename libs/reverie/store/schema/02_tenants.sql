-- Tenants, their keys, settings and quotas, and the audit log.

-- One customer or team. Only operators insert rows or change limits; the services may only switch
-- the embedding model of their own tenant.
create table tenant (
  id int generated always as identity primary key,
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  created timestamptz not null default now(),
  -- When a dream of this tenant was last claimed: the tenant served longest ago is next.
  served_at timestamptz not null default '-infinity',
  -- Limits on requests and usage, set by operators.
  limits jsonb not null default '{}',
  -- The embedding model that search uses (null: the default one), and every model ever filled, by
  -- name: its vector table, its dimensions, and its embedding of the probe text.
  model text,
  models jsonb not null default '{}',
  -- The lease under which one worker at a time maintains the tenant's memories.
  maintained_at timestamptz not null default now(),
  maintenance_lease_until timestamptz,
  maintenance_epoch bigint not null default 0,
  maintenance_attempts int not null default 0,
  -- Encrypts positions in a stream that all tenants share, so that cursors reveal nothing of the
  -- others. Two random uuids carry 244 random bits.
  cursor_key bytea not null
    default (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
);
alter table tenant enable row level security;
alter table tenant force row level security;
create policy own_tenant on tenant
  using (id = nullif(current_setting('reverie.tenant', true), '')::int);
-- Only the owner of the schema has the privilege to insert.
create policy tenant_insert on tenant for insert with check (true);
grant select, update (model, models) on tenant to reverie_app;
grant select (id, name, model, models) on tenant to reverie_read;
call open_to_system('tenant', 'select, update, delete');

-- Keys by the hash of their text. While a rotated key's old text still works, `old_hash` holds it.
create table api_key (
  tenant int not null references tenant,
  id uuid not null,
  hash bytea not null,
  label text not null,
  role text not null check (role in ('admin', 'writer', 'reader', 'ci')),
  reads text[] not null,
  writes text[] not null,
  project text,
  agent text,
  -- The only person whose own memory the key covers; null: no such limit.
  user_name text,
  created timestamptz not null default now(),
  expires_at timestamptz,
  revoked timestamptz,
  limits jsonb not null default '{}',
  old_hash bytea,
  previous_expires_at timestamptz,
  primary key (tenant, id)
);
create unique index api_key_hash on api_key (hash);
create unique index api_key_old_hash on api_key (old_hash) where old_hash is not null;
call protect_tenant_table('api_key', p_readable => false);
-- Enough to find a key by a part of its id.
grant select (tenant, id, label, reads) on api_key to reverie_read;
call open_to_system('api_key', 'select');

-- Hashes of the texts that keys once had: a rotated, revoked or deleted text works for no later key,
-- even if it is created again or comes back with a backup. They belong to no tenant: they outlive it.
create table retired_key (
  hash bytea primary key
);
alter table retired_key enable row level security;
alter table retired_key force row level security;
call open_to_system('retired_key', 'select, insert');

create function retire_key_text() returns trigger
language plpgsql security definer as $$
begin
  if tg_op = 'DELETE' or new.hash <> old.hash or new.revoked is not null then
    insert into retired_key values (old.hash) on conflict do nothing;
  end if;
  return null;
end $$;
call run_across_tenants('retire_key_text()');
create trigger api_key_retired after update of hash, revoked or delete on api_key
  for each row execute function retire_key_text();

-- What a project has set for itself, by name; the project `*` is the tenant.
create table project_setting (
  tenant int not null,
  project text not null,
  name text not null,
  value jsonb not null,
  updated timestamptz not null default now(),
  primary key (tenant, project, name)
);
call protect_tenant_table('project_setting');
call open_to_system('project_setting', 'select');

-- The display name of a scope whose last part is the slug of another name.
create table scope_name (
  tenant int not null,
  scope text not null,
  name text not null,
  primary key (tenant, scope)
);
call protect_tenant_table('scope_name');

-- What was used of one limit by a key, or by the whole tenant (`holder` is the nil uuid). A limit
-- per minute refills continuously; a limit per day starts again at midnight UTC.
create table quota_usage (
  tenant int not null,
  holder uuid not null,
  name text not null,
  used float8 not null,
  at timestamptz not null,
  primary key (tenant, holder, name)
);
call protect_tenant_table('quota_usage', p_readable => false);

-- Calls to language models and their tokens, per tenant and day (UTC).
create table llm_usage_daily (
  tenant int not null,
  day date not null,
  calls int not null default 0,
  failed int not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  primary key (tenant, day)
);
call protect_tenant_table('llm_usage_daily', p_readable => false);

-- Who called what: ids and names only, no content. `subjects` lists the ids that a call was about.
-- Rows are never changed; they are deleted by age or with their tenant.
create table audit (
  tenant int not null,
  id uuid not null,
  at timestamptz not null,
  key text not null,
  actor text not null,
  service text not null,
  action text not null,
  changes boolean not null,
  status smallint not null,
  problem text,
  subjects text[] not null,
  trace_id text,
  client text not null,
  primary key (tenant, id)
) partition by hash (tenant);
create index audit_at on audit (at);
create index audit_subjects on audit using gin (subjects);
call partition_by_tenant('audit');
call protect_tenant_table('audit', p_readable => false);
revoke update on audit from reverie_app;
call open_to_system('audit', 'select, delete');

-- Sign-ins to the console, and links that sign in once. A row holds the hash of a random text and
-- the caller's key, encrypted by a key that only this text gives: the table alone opens nothing.
create table console_session (
  tenant int not null,
  hash bytea not null,
  is_link boolean not null,
  encrypted_key bytea not null,
  expires_at timestamptz not null,
  primary key (tenant, hash)
);
call protect_tenant_table('console_session', p_readable => false);

-- The principal behind the hash of a key's text, before its tenant is known.
create function find_key(p_hash bytea)
returns table (tenant int, tenant_name text, id uuid, role text, reads text[], writes text[],
               project text, agent text, user_name text, limits jsonb, tenant_limits jsonb, own_limits jsonb)
language sql stable security definer
begin atomic
  select k.tenant, t.name, k.id, k.role, k.reads, k.writes, k.project, k.agent, k.user_name, k.limits,
         t.limits,
         coalesce((select s.value from project_setting s
                   where s.tenant = k.tenant and s.project = '*' and s.name = 'limits'), '{}')
  from api_key k join tenant t on t.id = k.tenant
  where (k.hash = p_hash and not exists (select from retired_key r where r.hash = p_hash)
         or k.old_hash = p_hash and k.previous_expires_at > now())
    and k.revoked is null and (k.expires_at is null or k.expires_at > now());
end;
call run_across_tenants('find_key(bytea)');

-- All tenants by name, for operators: the services may not call it.
create function tenant_names() returns table (id int, name text)
language sql stable security definer
begin atomic
  select t.id, t.name from tenant t;
end;
call run_across_tenants('tenant_names()');
revoke execute on function tenant_names() from reverie_app;
grant execute on function tenant_names() to current_user;

-- The number of the tenant that a message subject names: whoever may publish there acts for it.
create function tenant_find(p_name text) returns int
language sql stable security definer
begin atomic
  select t.id from tenant t where t.name = p_name;
end;
call run_across_tenants('tenant_find(text)');

-- Sets a tenant's limits, for operators: the services may not call it.
create function set_tenant_limits(p_tenant int, p_limits jsonb) returns void
language sql volatile security definer
begin atomic
  update tenant t set limits = p_limits where t.id = p_tenant;
end;
call run_across_tenants('set_tenant_limits(int, jsonb)');
revoke execute on function set_tenant_limits(int, jsonb) from reverie_app;
grant execute on function set_tenant_limits(int, jsonb) to current_user;

-- The embedding models that most tenants were switched to, so that services load them in advance.
create function models_in_use(p_limit int) returns table (model text)
language sql stable security definer
begin atomic
  select t.model from tenant t where t.model is not null
  group by t.model order by count(*) desc, t.model limit p_limit;
end;
call run_across_tenants('models_in_use(int)');

-- Takes p_amount from a limit, and up to p_more in addition; grants nothing where p_amount is not
-- left. `wait` is the number of seconds until it is, or, when granted, until the whole limit is
-- free again.
create function quota_take(
  p_tenant int, p_holder uuid, p_name text, p_limit float8, p_amount float8, p_extra float8
) returns table (granted float8, remains float8, wait float8)
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_minute boolean := p_name like '%\_per\_minute';
  v_used float8;
begin
  perform set_tenant(p_tenant);
  -- A crash loses at most the last second of this.
  perform set_config('synchronous_commit', 'off', true);
  insert into quota_usage values (p_tenant, p_holder, p_name, 0, v_now) on conflict do nothing;
  select case when v_minute
    then greatest(0, m.used - extract(epoch from v_now - m.at) * p_limit / 60)
    else case when (m.at at time zone 'utc')::date = (v_now at time zone 'utc')::date
         then m.used else 0 end end
  into v_used from quota_usage m
  where m.tenant = p_tenant and m.holder = p_holder and m.name = p_name for update;
  granted := case when v_used + p_amount > p_limit then 0
             else least(p_amount + p_extra, p_limit - v_used) end;
  remains := p_limit - v_used - granted;
  wait := case
    when v_minute and granted = 0 then (v_used + p_amount - p_limit) * 60 / p_limit
    when v_minute then (v_used + granted) * 60 / p_limit
    else extract(epoch from date_trunc('day', v_now at time zone 'utc') + interval '1 day'
                 - (v_now at time zone 'utc')) end;
  update quota_usage m set used = v_used + granted, at = v_now
  where m.tenant = p_tenant and m.holder = p_holder and m.name = p_name;
  return next;
end $$;

-- Stores display names ({scope: name}); returns the scopes that already have another name.
create function put_scope_names(p_tenant int, p_names jsonb) returns text[]
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  insert into scope_name (tenant, scope, name)
  select p_tenant, n.key, n.value from jsonb_each_text(p_names) n order by n.key
  on conflict do nothing;
  return array(select s.scope from scope_name s join jsonb_each_text(p_names) n on n.key = s.scope
               where s.tenant = p_tenant and s.name <> n.value order by s.scope);
end $$;

-- Deletes old rows of all tenants from one of the tables that hold rows for a limited time.
create function delete_old_rows(p_table text, p_age interval) returns bigint
language plpgsql volatile security definer as $$
declare n bigint;
begin
  if p_table not in (
    'audit', 'idempotency', 'recall_trace', 'dream_decision', 'vault_retired', 'memory_change'
  ) then
    raise undefined_table using message = p_table;
  end if;
  execute format('delete from %I where %I < $1', p_table,
                 case p_table when 'dream_decision' then 'created' else 'at' end)
  using clock_timestamp() - p_age;
  get diagnostics n = row_count;
  return n;
end $$;
call run_across_tenants('delete_old_rows(text, interval)');
