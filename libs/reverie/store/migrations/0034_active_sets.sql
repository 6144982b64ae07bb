-- What each session was given of its memories: the ids, by place in the other columns what each said
-- then (a mark), its weight, and the last turn it was in the set. No content. Where a member or the
-- session is erased, the row goes with it. `version` begins at the microsecond of the first turn, so
-- that no version comes twice, also where the row was erased in between.
create table ams (
  tenant int not null,
  session uuid not null,
  version bigint not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
  turn int not null default 0,
  members uuid[] not null,
  marks int[] not null,
  weights real[] not null,
  seen int[] not null,
  updated timestamptz not null default now(),
  primary key (tenant, session),
  check (cardinality(members) <= 1000)
) partition by hash (tenant);
create index ams_updated on ams (tenant, updated);
call split_by_tenant('ams');
call protect('ams');

-- What went since the summary of its scope was written.
create index memory_gone on memory (tenant, scope, updated)
  where status in ('superseded', 'archived', 'deleted');
