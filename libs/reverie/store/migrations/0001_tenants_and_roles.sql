-- Tenants, keys, and the two roles: reverie_app (the services) is held by row-level security;
-- reverie_system owns the few functions that must cross tenants (0008).

do $$
begin
  if not exists (select from pg_roles where rolname = 'reverie_app') then
    create role reverie_app nologin nosuperuser nobypassrls;
  end if;
  if not exists (select from pg_roles where rolname = 'reverie_system') then
    create role reverie_system nologin nosuperuser nobypassrls;
  end if;
exception when duplicate_object or unique_violation then null;
end $$;

-- The owner must be a member of both; where another made them, that one has to grant it.
do $$
begin
  execute format('grant reverie_app, reverie_system to %I', current_user);
exception when insufficient_privilege then
  if not (pg_has_role('reverie_app', 'usage') and pg_has_role('reverie_system', 'usage')) then
    raise;
  end if;
end $$;

do $$
begin
  execute format('grant usage on schema %I to reverie_app, reverie_system', current_schema());
end $$;

create table tenant (
  id int generated always as identity primary key,
  name text not null unique check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  created timestamptz not null default now(),
  served_at timestamptz not null default '-infinity'
);

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
  created timestamptz not null default now(),
  expires timestamptz,
  revoked timestamptz,
  primary key (tenant, id)
);
create unique index api_key_hash on api_key (hash);

create table idempotency (
  tenant int not null,
  key text not null,
  route text not null,
  body_hash bytea not null,
  status int,
  body bytea,
  headers jsonb,
  at timestamptz not null default now(),
  primary key (tenant, key)
);
create index idempotency_at on idempotency (at);

create table outbox (
  id uuid not null,
  tenant int not null,
  subject text not null,
  payload jsonb not null,
  headers jsonb not null,
  at timestamptz not null default clock_timestamp(),
  primary key (tenant, id)
);
create index outbox_at on outbox (at);

-- Whether any pattern covers more than the one scope it names. Folded to a constant by the planner.
create function any_widens(patterns text[]) returns boolean
language sql immutable parallel safe
return exists (select from unnest(patterns) p where right(p, 2) = '/*');

-- Whether grant patterns (`*`, `a/b`, `a/b/*`) cover a scope; the twin of domain.scopes.matches.
-- No subquery, so that the planner inlines it: for a list of plain scopes all that is left is
-- `scope = any(list)`, which takes an index. A scope has at most five parts.
create function covers(patterns text[], scope text) returns boolean
language sql immutable parallel safe
return '*' = any(patterns) or scope = any(patterns) or any_widens(patterns) and (
  split_part(scope, '/', 1) || '/*' = any(patterns)
  or rtrim(split_part(scope, '/', 1) || '/' || split_part(scope, '/', 2), '/') || '/*' = any(patterns)
  or rtrim(split_part(scope, '/', 1) || '/' || split_part(scope, '/', 2) || '/'
           || split_part(scope, '/', 3), '/') || '/*' = any(patterns)
  or rtrim(split_part(scope, '/', 1) || '/' || split_part(scope, '/', 2) || '/'
           || split_part(scope, '/', 3) || '/' || split_part(scope, '/', 4), '/') || '/*' = any(patterns)
  or scope || '/*' = any(patterns));

-- Names the tenant for the rest of the transaction; row-level security reads it.
create function enter(p_tenant int) returns void
language sql volatile
begin atomic
  select set_config('reverie.tenant', p_tenant::text, true);
end;
