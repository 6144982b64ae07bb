-- Documents: what programs keep as it is and in order, beside memory: transcripts, checkpoints, files.

-- `value` is the text of a JSON value: jsonb takes no NUL and loses the order of keys. `position` is the
-- order of first writing.
create table document (
  tenant int not null,
  scope text not null,
  collection text collate "C" not null,
  key text collate "C" not null,
  position bigint generated always as identity,
  value text not null default 'null',
  data bytea,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  expires timestamptz,
  primary key (tenant, scope, collection, key)
);
create index document_position on document (tenant, scope, collection, position);
create index document_expires on document (expires) where expires is not null;
call protect_tenant_table('document', p_readable => false);
call open_to_system('document', 'select, delete');

-- Deletes expired documents of all tenants, at most `p_limit`; returns how many there were.
create function delete_expired_documents(p_limit int) returns bigint
language sql security definer as $$
  with gone as (
    delete from document d
    where (d.tenant, d.scope, d.collection, d.key) in (
      select o.tenant, o.scope, o.collection, o.key from document o
      where o.expires <= now() limit p_limit)
    returning 1)
  select count(*) from gone;
$$;
call run_across_tenants('delete_expired_documents(int)');
