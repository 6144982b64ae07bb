-- What a project has set for itself, by name: as the budgets of the block at session start.
create table project_setting (
  tenant int not null,
  project text not null,
  name text not null,
  value jsonb not null,
  updated timestamptz not null default now(),
  primary key (tenant, project, name)
);
call protect('project_setting');
