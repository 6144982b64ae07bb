-- A job per scope under a lease; its epoch is checked by every write of a dream.

create table dream_job (
  tenant int not null,
  scope text not null,
  reason text not null,
  due timestamptz not null default now(),
  again boolean not null default false,
  lease_until timestamptz,
  epoch bigint not null default 0,
  worker text,
  attempts int not null default 0,
  parked text,
  primary key (tenant, scope)
);
create index dream_job_due on dream_job (due) where parked is null;

create table dream_run (
  tenant int not null,
  id uuid not null,
  scope text not null,
  epoch bigint not null,
  worker text not null,
  status text not null default 'running' check (status in ('running', 'done', 'failed', 'lost')),
  started timestamptz not null default now(),
  ended timestamptz,
  turns int not null default 0,
  created int not null default 0,
  reinforced int not null default 0,
  superseded int not null default 0,
  sessions uuid[] not null default '{}',
  error text,
  primary key (tenant, id)
);

create table summary (
  tenant int not null,
  scope text not null,
  version int not null default 1,
  content text not null,
  tokens int not null,
  updated timestamptz not null default now(),
  primary key (tenant, scope)
);
