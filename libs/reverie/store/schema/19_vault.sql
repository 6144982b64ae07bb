-- The vault: key-value state of a tenant, and secrets, encrypted before they come here. Redaction of
-- stored texts after a secret entered it.

-- An entry is either a plain value or a secret (`sealed` under the key `key_id`). A secret is redacted
-- in the scopes that its writer may write (`covers`, patterns). `salt` makes the ids of its placeholders.
create table vault (
  tenant int not null,
  scope text not null,
  key text not null,
  value jsonb,
  sealed bytea,
  secret boolean not null,
  key_id text,
  covers text[] not null default '{}',
  salt bytea not null default uuid_send(gen_random_uuid()),
  version bigint not null default 1,
  actor text not null,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  primary key (tenant, scope, key),
  check (secret = (sealed is not null) and secret = (key_id is not null)),
  check (value is null or not secret)
);
call protect_tenant_table('vault', p_readable => false);

-- Secrets that were replaced or deleted, still encrypted. Until they expire, an administrator can put
-- them back in the texts that they were redacted from (`restore`: the next run does).
create table vault_retired (
  tenant int not null,
  scope text not null,
  key text not null,
  salt bytea not null,
  version bigint not null,
  sealed bytea not null,
  key_id text not null,
  covers text[] not null,
  at timestamptz not null default now(),
  restore boolean not null default false,
  primary key (tenant, scope, key, salt, version)
);
create index vault_retired_at on vault_retired (at);
call protect_tenant_table('vault_retired', p_readable => false);
call open_to_system('vault_retired', 'select, delete');

-- The secrets that push webhooks of a project are signed with, encrypted.
create table webhook (
  tenant int not null,
  project text not null,
  kind text not null check (kind in ('github', 'gitlab')),
  sealed bytea not null,
  key_id text not null,
  actor text not null,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  primary key (tenant, project, kind)
);
call protect_tenant_table('webhook', p_readable => false);
call open_to_system('webhook', 'select');

-- `epoch` counts changes of a tenant's secrets: what was redacted under one number is redacted as
-- long as it holds. The rest is the progress of the redaction of texts that were stored before a
-- secret was (`requested`: when one was last put). `table_name` and `row_key` say how far a run
-- came; it counts only if it started a while after the secret was put, because writes may have been
-- under way without knowing of it.
create table vault_epoch (
  tenant int not null primary key,
  epoch bigint not null default 1,
  requested timestamptz,
  started timestamptz,
  due timestamptz,
  lease_until timestamptz,
  table_name text,
  row_key jsonb,
  rows_read bigint not null default 0,
  rows_redacted bigint not null default 0,
  runs int not null default 0,
  finished timestamptz
);
create index vault_epoch_due on vault_epoch (due) where finished is null;
call protect_tenant_table('vault_epoch', p_readable => false);
call open_to_system('vault_epoch', 'select, update');

-- Counts a change of secrets, and requests redaction of stored texts by a new one. A value that is
-- only encrypted anew keeps its version and requests nothing. A replaced secret is retired.
create function vault_changed() returns trigger
language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.secret and new.version <> old.version then
    insert into vault_retired (tenant, scope, key, salt, version, sealed, key_id, covers)
    values (old.tenant, old.scope, old.key, old.salt, old.version, old.sealed, old.key_id, old.covers);
  end if;
  if (tg_op <> 'INSERT' and old.secret) or (tg_op <> 'DELETE' and new.secret) then
    insert into vault_epoch as e (tenant)
    values (case tg_op when 'DELETE' then old.tenant else new.tenant end)
    on conflict (tenant) do update set epoch = e.epoch + 1;
  end if;
  if tg_op <> 'DELETE' and new.secret and (tg_op = 'INSERT' or new.version <> old.version) then
    update vault_epoch e
    set requested = clock_timestamp(), due = clock_timestamp(),
        rows_read = case when e.finished is null then e.rows_read else 0 end,
        rows_redacted = case when e.finished is null then e.rows_redacted else 0 end,
        runs = case when e.finished is null then e.runs else 0 end,
        finished = null
    where e.tenant = new.tenant;
  end if;
  return null;
end $$;
create trigger vault_changed after insert or update or delete on vault
  for each row execute function vault_changed();

-- Marks the replaced and deleted values of an entry to be put back in texts; says whether there are any.
create function vault_restore(p_tenant int, p_scope text, p_key text) returns boolean
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  update vault_retired r set restore = true
  where r.tenant = p_tenant and r.scope = p_scope and r.key = p_key;
  if not found then return false; end if;
  insert into vault_epoch as e (tenant, requested, due) values (p_tenant, clock_timestamp(), clock_timestamp())
  on conflict (tenant) do update
    set epoch = e.epoch + 1, requested = clock_timestamp(), due = clock_timestamp(), finished = null;
  return true;
end $$;

-- Counts a change of webhook secrets: they are redacted in new texts as those of the vault are.
create function webhook_changed() returns trigger
language plpgsql as $$
begin
  insert into vault_epoch as e (tenant)
  values (case tg_op when 'DELETE' then old.tenant else new.tenant end)
  on conflict (tenant) do update set epoch = e.epoch + 1;
  return null;
end $$;
create trigger webhook_changed after insert or update or delete on webhook
  for each row execute function webhook_changed();

-- The number of changes of a tenant's secrets; 0 where it never had one. One call, because every
-- write asks.
create function vault_epoch_of(p_tenant int) returns bigint
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  return coalesce((select e.epoch from vault_epoch e where e.tenant = p_tenant), 0);
end $$;

-- The encrypted secret of a webhook by the names in its address; the signature is checked
-- afterwards.
create function webhook_find(p_tenant_name text, p_project text, p_kind text)
returns table (tenant int, sealed bytea, key_id text)
language sql stable security definer
begin atomic
  select h.tenant, h.sealed, h.key_id from tenant t join webhook h on h.tenant = t.id
  where t.name = p_tenant_name and h.project = p_project and h.kind = p_kind;
end;
call run_across_tenants('webhook_find(text, text, text)');

-- The columns, beside those of memories, that may contain a secret.
create function redaction_columns() returns table (name text, col text)
language sql immutable
begin atomic
  select v.name, v.col from (values
    ('turn', 'content'), ('turn', 'tool'), ('turn', 'external_id'), ('turn', 'output'),
    ('memory_version', 'content'), ('memory_version', 'reason'), ('memory_version', 'state'),
    ('session', 'external_id'), ('session', 'branch'), ('session', 'summary'), ('edge', 'meta'),
    ('summary', 'content'), ('summary_narrative', 'content'), ('scope_name', 'name'),
    ('git_event', 'body'), ('git_event', 'branch'), ('stale_mark', 'path'), ('stale_mark', 'subject'),
    ('api_key', 'label'), ('outbox', 'payload'), ('recall_trace', 'query'),
    ('recall_trace', 'request'), ('dream_decision', 'reason'), ('git_file', 'facts'),
    ('git_file', 'name'), ('git_file', 'old_name'), ('git_file', 'branch'),
    ('review', 'content'), ('review', 'reason'), ('engine_group', 'name'),
    ('engine_message', 'content'), ('engine_turn', 'task'), ('engine_turn', 'messages'),
    ('engine_turn', 'approvals'), ('engine_effect', 'result'), ('document', 'value')) v (name, col);
end;

-- The scopes that a row `x` of a table belongs to, as an expression; `*` is the whole tenant.
create function redaction_scopes(p_table text) returns text
language sql immutable
return case
  when p_table in ('memory', 'session', 'summary', 'summary_narrative', 'scope_name', 'dream_decision',
                   'engine_group', 'engine_message', 'engine_turn', 'engine_effect', 'document') then 'array[x.scope]'
  when p_table in ('memory_version', 'stale_mark', 'review') then
    'array(select m.scope from memory m where m.tenant = x.tenant and m.id = x.memory)'
  when p_table = 'edge' then
    'array(select m.scope from memory m where m.tenant = x.tenant and m.id = x.src)'
  when p_table = 'turn' then
    'array(select s.scope from session s where s.tenant = x.tenant and s.id = x.session)'
  when p_table in ('git_event', 'git_file') then 'array[''project/'' || x.project]'
  when p_table = 'recall_trace' then 'x.scopes'
  else 'array[''*'']' end;

-- The columns of a table's primary key without the tenant; `given` is the value of each at a
-- position, as a literal.
create function redaction_row_key(p_table text, p_row_key jsonb)
returns table (col text, given text)
language sql stable
begin atomic
  select a.attname::text, format('%L::%s', p_row_key ->> a.attname::text, a.atttypid::regtype)
  from pg_index i
  cross join lateral unnest(i.indkey::int2[]) with ordinality k (no, ordinal)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.no
  where i.indrelid = p_table::regclass and i.indisprimary and a.attname <> 'tenant'
  order by k.ordinal;
end;

-- The texts of a memory that may contain a secret, with its tags.
create function redaction_texts(p_tenant int, p_memory memory) returns jsonb
language sql stable
return jsonb_build_object(
  'content', p_memory.content, 'summary', p_memory.summary, 'key', p_memory.key,
  'git', p_memory.git, 'metadata', p_memory.metadata,
  'tags', array(select t.tag from memory_tag t
                where t.tenant = p_tenant and t.memory = p_memory.id order by t.tag));

-- Rows of a table after a position, in the order of its key, with their texts and scopes; `seen` is a
-- fingerprint that tells whether they changed since.
create function redaction_page(p_tenant int, p_table text, p_after jsonb, p_limit int)
returns table (row_key jsonb, texts jsonb, seen text, scopes text[])
language plpgsql as $$
declare
  v_keys text;
  v_position text;
  v_after text;
  v_texts text;
begin
  perform set_tenant(p_tenant);
  select string_agg(format('x.%I', k.col), ', '),
         string_agg(format('%L, x.%I', k.col, k.col), ', '), string_agg(k.given, ', ')
  into v_keys, v_position, v_after from redaction_row_key(p_table, p_after) k;
  if p_table = 'memory' then
    v_texts := 'redaction_texts($1, x)';
  else
    select format('jsonb_build_object(%s)', string_agg(format('%L, x.%I', c.col, c.col), ', '))
    into v_texts from redaction_columns() c where c.name = p_table;
  end if;
  return query execute format(
    'select jsonb_build_object(%1$s), %2$s, md5(%2$s::text), %6$s from %3$I x'
    ' where x.tenant = $1 and %4$s order by %5$s limit $2',
    v_position, v_texts, p_table,
    case when p_after is null then 'true' else format('(%s) > (%s)', v_keys, v_after) end, v_keys,
    redaction_scopes(p_table))
  using p_tenant, p_limit;
end $$;

-- Puts redacted texts in a row if it still holds what was read; says whether it did. Where that
-- would duplicate another row, the row is deleted, or loses the external id that makes it a
-- duplicate.
create function redaction_put_row(p_tenant int, p_table text, p_row jsonb) returns boolean
language plpgsql as $$
declare
  v_where text;
  v_cols text;
  v_old_texts text;
  v_new_texts jsonb := p_row -> 'now';
  v_rows int;
begin
  perform set_tenant(p_tenant);
  select string_agg(format('x.%I = %s', k.col, k.given), ' and ')
  into v_where from redaction_row_key(p_table, p_row -> 'place') k;
  select string_agg(quote_ident(c.col), ', '), string_agg(format('%L, x.%I', c.col, c.col), ', ')
  into v_cols, v_old_texts from redaction_columns() c where c.name = p_table;
  v_where := format('x.tenant = $1 and %s and md5(jsonb_build_object(%s)::text) = $2', v_where, v_old_texts);
  if p_table = 'engine_message' then perform engine_delete_redacted_images(p_tenant, p_row); end if;
  begin
    execute format('update %1$I x set (%2$s) = (select %2$s from jsonb_populate_record(x, $3))'
                   ' where %3$s', p_table, v_cols, v_where)
    using p_tenant, p_row ->> 'seen', v_new_texts;
    get diagnostics v_rows = row_count;
  exception when unique_violation then
    if v_new_texts ->> 'external_id' is not null then
      return redaction_put_row(p_tenant, p_table, jsonb_set(p_row, '{now,external_id}', 'null'));
    end if;
    execute format('delete from %I x where %s', p_table, v_where) using p_tenant, p_row ->> 'seen';
    return true;
  end;
  if v_rows > 0 and p_table = 'turn' then
    perform reindex_turns(p_tenant, jsonb_build_object(t.id,
      case when t.role = 'tool' then '' else p_row ->> 'words' end))
    from turn t where t.tenant = p_tenant and t.id = (p_row -> 'place' ->> 'id')::uuid;
  elsif v_rows > 0 and p_table = 'memory_version' then
    update memory_version v set words = to_tsvector('english', p_row ->> 'words')
    where v.tenant = p_tenant and v.memory = (p_row -> 'place' ->> 'memory')::uuid
      and v.version = (p_row -> 'place' ->> 'version')::int;
  end if;
  return v_rows > 0;
end $$;

-- Puts the redacted texts of a memory in place, as a new version; earlier versions are redacted
-- too. A node whose name is a secret is forgotten. False where the memory changed since it was
-- read.
create function redaction_put_memory(p_tenant int, p_tenant_name text, p_row jsonb, p_why text)
returns boolean
language plpgsql as $$
declare
  v_id uuid := p_row -> 'place' ->> 'id';
  v_texts jsonb := p_row -> 'now';
  v_old memory;
  v_new memory;
  v_is_node boolean;
  v_versioned boolean;
begin
  perform set_tenant(p_tenant);
  select m.* into v_old from memory m where m.tenant = p_tenant and m.id = v_id for update;
  if v_old.id is null or md5(redaction_texts(p_tenant, v_old)::text) <> p_row ->> 'seen' then
    return false;
  end if;
  perform delete_search_rows(p_tenant, v_old);
  delete from memory_tag t where t.tenant = p_tenant and t.memory = v_id;
  insert into memory_tag (tenant, tag, memory)
  select distinct p_tenant, t, v_id from jsonb_array_elements_text(v_texts -> 'tags') t;
  v_is_node := v_old.kind in ('file', 'entity');
  v_new := jsonb_populate_record(v_old, v_texts - 'tags');
  v_new.hash := decode(p_row ->> 'hash', 'hex');
  v_new.words := case when v_old.words = '' then '' else to_tsvector('english', p_row ->> 'words') end;
  v_new.terms := case when v_old.status = 'deleted' then 0 else word_count(v_new.words) end;
  if v_is_node then
    perform delete_derived(p_tenant, v_old);
    delete from anchor a where a.tenant = p_tenant and a.node = v_id;
    v_new.status := 'deleted';
  end if;
  v_versioned := not v_is_node and v_old.status <> 'deleted';
  if v_versioned then
    perform save_version(p_tenant, v_new, 'vault', p_why);
    v_new.version := v_old.version + 1;
    v_new.known_from := now();
    v_new.updated := now();
  end if;
  -- Memories that differed only by the secret remain apart; duplicate detection may merge them.
  perform from memory m
  where m.tenant = p_tenant and m.scope = v_new.scope and m.status = 'active' and m.id <> v_id
    and (m.key = v_new.key or m.hash = v_new.hash and coalesce(m.key, '') = coalesce(v_new.key, ''));
  if found then
    v_new.hash := sha256(v_new.hash || v_id::text::bytea);
    v_new.key := v_new.key || ' ' || v_new.short;
  end if;
  update memory m
  set status = v_new.status, content = v_new.content, summary = v_new.summary, key = v_new.key,
      git = v_new.git, metadata = v_new.metadata, hash = v_new.hash, words = v_new.words,
      terms = v_new.terms, version = v_new.version, known_from = v_new.known_from,
      updated = v_new.updated
  where m.tenant = p_tenant and m.id = v_id;
  -- Redaction is no confirmation.
  update memory m set confirmed = v_old.confirmed where m.tenant = p_tenant and m.id = v_id;
  if not v_versioned then return true; end if;
  perform index_words(p_tenant, v_old.doc, v_new.words, v_new.terms);
  perform enqueue_memory_event(p_tenant, p_tenant_name, event, v_id, v_new.version,
                               '{"Reverie-Bulk": "1"}')
  from unnest(array['edited', 'remembered']) event;
  return true;
end $$;

-- Claims a tenant whose texts are to be redacted and that no worker has.
create function redaction_claim(p_lease interval)
returns table (tenant int, tenant_name text, started timestamptz, table_name text, row_key jsonb)
language sql volatile security definer
begin atomic
  update vault_epoch e
  set lease_until = clock_timestamp() + p_lease, started = coalesce(e.started, clock_timestamp())
  from tenant t
  where t.id = e.tenant and e.tenant = (
    select d.tenant from vault_epoch d
    where d.finished is null and d.due <= clock_timestamp()
      and (d.lease_until is null or d.lease_until < clock_timestamp())
    order by d.due limit 1 for update skip locked)
  returning t.id, t.name, e.started, e.table_name, e.row_key;
end;
call run_across_tenants('redaction_claim(interval)');

-- Saves how far a run came and extends its lease; false where another worker has it.
create function redaction_save_progress(
  p_tenant int, p_started timestamptz, p_table_name text, p_row_key jsonb, p_rows_read int,
  p_rows_redacted int, p_lease interval
) returns boolean
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  update vault_epoch e
  set table_name = p_table_name, row_key = p_row_key, rows_read = e.rows_read + p_rows_read,
      rows_redacted = e.rows_redacted + p_rows_redacted, lease_until = clock_timestamp() + p_lease
  where e.tenant = p_tenant and e.started = p_started and e.finished is null;
  return found;
end $$;

-- Ends a run. All is done if it started p_grace after the last secret was put; otherwise another
-- one follows.
create function redaction_finish(p_tenant int, p_started timestamptz, p_grace interval) returns void
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  update vault_epoch e
  set runs = e.runs + 1, started = null, table_name = null, row_key = null, lease_until = null,
      -- What was requested during the run is not delayed.
      due = case when p_started < e.requested then clock_timestamp()
                 else greatest(clock_timestamp(), e.requested + p_grace) end,
      finished = case when p_started >= e.requested + p_grace then clock_timestamp() end
  where e.tenant = p_tenant and e.started = p_started;
  delete from vault_retired r
  where r.tenant = p_tenant and r.restore
    and exists (select from vault_epoch e where e.tenant = p_tenant and e.finished is not null);
end $$;
