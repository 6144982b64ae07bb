-- Sessions and their turns. A turn's words are postings of its own, found before any dream.

create table session (
  tenant int not null,
  id uuid not null,
  external_id text,
  agent text not null,
  user_name text,
  project text,
  branch text,
  scope text not null,
  turns int not null default 0,
  pending int not null default 0,
  pending_chars bigint not null default 0,
  appended timestamptz not null default now(),
  started timestamptz not null default now(),
  ended timestamptz,
  summary text,
  primary key (tenant, id)
) partition by hash (tenant);
create unique index session_external on session (tenant, agent, external_id)
  where external_id is not null;
create index session_scope on session (tenant, scope, id) where pending > 0;
create index session_idle on session (appended) where pending > 0;

create sequence turn_doc;

create table turn (
  tenant int not null,
  id uuid not null,
  session uuid not null,
  ord int not null,
  doc bigint not null default nextval('turn_doc'),
  role text not null check (role in ('user', 'assistant', 'tool', 'system')),
  content text not null,
  tool text,
  external_id text,
  at timestamptz not null,
  terms int not null,
  run uuid,
  primary key (tenant, id)
) partition by hash (tenant);
create unique index turn_ord on turn (tenant, session, ord);
create unique index turn_external on turn (tenant, session, external_id)
  where external_id is not null;
create unique index turn_doc_no on turn (tenant, doc);
create index turn_undigested on turn (tenant, session, ord) where run is null;
