-- Memories, their tags, sources, versions, edges and anchors. Hash partitions by tenant.

create sequence memory_doc;

create table memory (
  tenant int not null,
  id uuid not null,
  doc bigint not null default nextval('memory_doc'),
  scope text not null,
  kind text not null,
  tier text not null,
  status text not null default 'active'
    check (status in ('active', 'superseded', 'archived', 'deleted')),
  key text,
  version int not null default 1,
  enriched_version int not null default 0,
  content text not null,
  summary text,
  hash bytea not null,
  words tsvector not null,
  terms int not null,
  confidence real not null check (confidence between 0 and 1),
  pinned boolean not null default false,
  session uuid,
  agent text,
  source text not null,
  git jsonb,
  metadata jsonb not null default '{}',
  valid_from timestamptz,
  valid_to timestamptz,
  superseded_by uuid,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  short text generated always as (right(id::text, 8)) stored,
  primary key (tenant, id)
) partition by hash (tenant);
create unique index memory_key on memory (tenant, scope, key)
  where status = 'active' and key is not null;
create unique index memory_hash on memory (tenant, scope, hash, coalesce(key, ''))
  where status = 'active';
create unique index memory_doc_no on memory (tenant, doc);
create index memory_scope on memory (tenant, scope, id desc);
create index memory_kind on memory (tenant, kind, id desc);
create index memory_pinned on memory (tenant, id) where pinned;
create index memory_terms on memory (tenant, terms) where terms > 0;
create index memory_session on memory (tenant, session, created, id) where session is not null;
create index memory_short on memory (tenant, short);
create index memory_unenriched on memory (tenant, id) where enriched_version < version;

create table memory_tag (
  tenant int not null,
  tag text not null,
  memory uuid not null,
  primary key (tenant, memory, tag)
) partition by hash (tenant);
create index memory_tag_tag on memory_tag (tenant, tag, memory);

create table memory_turn (
  tenant int not null,
  memory uuid not null,
  turn uuid not null,
  primary key (tenant, memory, turn)
) partition by hash (tenant);
create index memory_turn_turn on memory_turn (tenant, turn);

-- What a memory was before a change; what it is now stands in memory.
create table memory_version (
  tenant int not null,
  memory uuid not null,
  version int not null,
  content text not null,
  status text not null,
  who text,
  why text not null,
  known_from timestamptz not null,
  known_to timestamptz not null default now(),
  primary key (tenant, memory, version)
) partition by hash (tenant);

create table edge (
  tenant int not null,
  id uuid not null,
  src uuid not null,
  kind text not null,
  dst uuid not null,
  weight real not null default 1,
  meta jsonb not null default '{}',
  known_from timestamptz not null default now(),
  known_to timestamptz,
  primary key (tenant, id),
  check (src <> dst)
) partition by hash (tenant);
create unique index edge_open on edge (tenant, src, kind, dst) where known_to is null;
create index edge_in on edge (tenant, dst, kind) where known_to is null;

-- The file nodes of a project by path; `name` is the last component, which finds them.
create table anchor (
  tenant int not null,
  node uuid not null,
  project text not null,
  path text not null,
  name text not null,
  primary key (tenant, node)
) partition by hash (tenant);
create unique index anchor_path on anchor (tenant, project, path);
create index anchor_name on anchor (tenant, project, name);
