-- Git changes as they were announced, and the marks they left on memories.

create table git_event (
  tenant int not null,
  id uuid not null,
  project text not null,
  branch text not null,
  after text not null,
  body jsonb not null,
  received timestamptz not null default now(),
  processed timestamptz,
  opened int not null default 1,
  primary key (tenant, id)
);
create index git_event_unprocessed on git_event (received) where processed is null;
create index git_event_received on git_event (tenant, project, received);
create unique index git_event_after on git_event (tenant, project, branch, after);

create table stale_mark (
  tenant int not null,
  memory uuid not null,
  commit text not null,
  path text not null,
  grade text not null check (grade in ('suspect', 'stale', 'gone')),
  score real not null check (score between 0 and 1),
  change text not null,
  subject text not null,
  committed_at timestamptz not null,
  event uuid not null,
  created timestamptz not null default now(),
  cleared timestamptz,
  primary key (tenant, memory, commit, path)
) partition by hash (tenant);
create index stale_mark_open on stale_mark (tenant, memory) where cleared is null;
