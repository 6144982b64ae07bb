-- What a language model says of a memory that changes put in doubt; it waits for somebody to agree.
-- `seen`: the newest mark that it had before it.
create table review (
  tenant int not null,
  id uuid not null,
  memory uuid not null,
  version int not null,
  verdict text not null check (verdict in ('holds', 'changed', 'gone', 'unsure')),
  content text,
  why text not null,
  made_by text not null,
  seen timestamptz not null,
  state text not null default 'open' check (state in ('open', 'accepted', 'refused')),
  made timestamptz not null default now(),
  decided timestamptz,
  who text,
  primary key (tenant, id),
  check ((verdict = 'changed') = (content is not null))
);
create index review_memory on review (tenant, memory, version, seen);
create index review_open on review (tenant, id) where state = 'open';
call protect('review');

-- The columns besides those of memories in which a secret may stand.
create or replace function scrub_columns() returns table (name text, col text)
language sql immutable
begin atomic
  select v.name, v.col from (values
    ('turn', 'content'), ('turn', 'tool'), ('turn', 'external_id'),
    ('memory_version', 'content'), ('memory_version', 'why'), ('memory_version', 'state'),
    ('session', 'external_id'), ('session', 'branch'), ('session', 'summary'), ('edge', 'meta'),
    ('summary', 'content'), ('scope_name', 'name'), ('git_event', 'body'),
    ('git_event', 'branch'), ('stale_mark', 'path'), ('stale_mark', 'subject'),
    ('api_key', 'label'), ('outbox', 'payload'), ('recall_trace', 'query'),
    ('recall_trace', 'asked'), ('dream_decision', 'why'), ('git_file', 'facts'),
    ('git_file', 'name'), ('git_file', 'old_name'), ('git_file', 'branch'),
    ('review', 'content'), ('review', 'why')) v (name, col);
end;
