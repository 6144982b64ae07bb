-- Texts that were stored before a value entered the vault are gone through once it has.

-- How far a tenant's texts were gone through. `wanted` is when a secret was last put, `begun` when
-- this passage started; `part` is the table and `place` the row it came to. A passage counts once it
-- began a while after the secret was put, for a write may have been under way without knowing of it.
alter table vault_epoch
  add column wanted timestamptz,
  add column begun timestamptz,
  add column due timestamptz,
  add column lease_until timestamptz,
  add column part text,
  add column place jsonb,
  add column looked bigint not null default 0,
  add column scrubbed bigint not null default 0,
  add column passages int not null default 0,
  add column finished timestamptz;
create index vault_epoch_due on vault_epoch (due) where finished is null;

-- A value that is only sealed anew keeps its version, and nothing is gone through for it.
create or replace function count_vault_change() returns trigger language plpgsql as $$
begin
  if (tg_op <> 'INSERT' and old.secret) or (tg_op <> 'DELETE' and new.secret) then
    insert into vault_epoch as e (tenant)
    values (case tg_op when 'DELETE' then old.tenant else new.tenant end)
    on conflict (tenant) do update set epoch = e.epoch + 1;
  end if;
  if tg_op <> 'DELETE' and new.secret and (tg_op = 'INSERT' or new.version <> old.version) then
    update vault_epoch e
    set wanted = clock_timestamp(), due = clock_timestamp(),
        looked = case when e.finished is null then e.looked else 0 end,
        scrubbed = case when e.finished is null then e.scrubbed else 0 end,
        passages = case when e.finished is null then e.passages else 0 end,
        finished = null
    where e.tenant = new.tenant;
  end if;
  return null;
end $$;

-- The columns besides those of memories in which a secret may stand.
create function scrub_columns() returns table (name text, col text)
language sql immutable
begin atomic
  select v.name, v.col from (values
    ('turn', 'content'), ('turn', 'tool'), ('turn', 'external_id'),
    ('memory_version', 'content'), ('memory_version', 'why'), ('memory_version', 'state'),
    ('session', 'external_id'), ('session', 'branch'), ('session', 'summary'),
    ('edge', 'meta'), ('summary', 'content'), ('git_event', 'body'), ('git_event', 'branch'),
    ('stale_mark', 'path'), ('stale_mark', 'subject'), ('api_key', 'label'),
    ('outbox', 'payload')) v (name, col);
end;

-- The primary key of a table less the tenant; `given` is each value of a place, as a literal.
create function scrub_key(p_table text, p_place jsonb)
returns table (col text, given text)
language sql stable
begin atomic
  select a.attname::text, format('%L::%s', p_place ->> a.attname::text, a.atttypid::regtype)
  from pg_index i
  cross join lateral unnest(i.indkey::int2[]) with ordinality k (no, ord)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.no
  where i.indrelid = p_table::regclass and i.indisprimary and a.attname <> 'tenant'
  order by k.ord;
end;

-- What of a memory may hold a secret, with its tags.
create function scrub_texts(p_tenant int, p_memory memory) returns jsonb
language sql stable
return jsonb_build_object(
  'content', p_memory.content, 'summary', p_memory.summary, 'key', p_memory.key,
  'git', p_memory.git, 'metadata', p_memory.metadata,
  'tags', array(select t.tag from memory_tag t
                where t.tenant = p_tenant and t.memory = p_memory.id order by t.tag));

-- Rows of a table after a place, in the order of its key, with their texts; `seen` tells whether they
-- changed since.
create function scrub_page(p_tenant int, p_table text, p_after jsonb, p_limit int)
returns table (place jsonb, texts jsonb, seen text)
language plpgsql as $$
declare
  v_keys text;
  v_named text;
  v_after text;
  v_texts text;
begin
  perform enter(p_tenant);
  select string_agg(format('x.%I', k.col), ', '),
         string_agg(format('%L, x.%I', k.col, k.col), ', '), string_agg(k.given, ', ')
  into v_keys, v_named, v_after from scrub_key(p_table, p_after) k;
  if p_table = 'memory' then
    v_texts := 'scrub_texts($1, x)';
  else
    select format('jsonb_build_object(%s)', string_agg(format('%L, x.%I', c.col, c.col), ', '))
    into v_texts from scrub_columns() c where c.name = p_table;
  end if;
  return query execute format(
    'select jsonb_build_object(%1$s), %2$s, md5(%2$s::text) from %3$I x'
    ' where x.tenant = $1 and %4$s order by %5$s limit $2',
    v_named, v_texts, p_table,
    case when p_after is null then 'true' else format('(%s) > (%s)', v_keys, v_after) end, v_keys)
  using p_tenant, p_limit;
end $$;

-- Puts clean texts in a row's place if it still holds what was read; says whether it did. A twin that
-- this would make is removed, or loses the outer id by which it would be one.
create function scrub_row(p_tenant int, p_table text, p_row jsonb) returns boolean
language plpgsql as $$
declare
  v_here text;
  v_cols text;
  v_was text;
  v_now jsonb := p_row -> 'now';
  v_rows int;
begin
  perform enter(p_tenant);
  select string_agg(format('x.%I = %s', k.col, k.given), ' and ')
  into v_here from scrub_key(p_table, p_row -> 'place') k;
  select string_agg(quote_ident(c.col), ', '), string_agg(format('%L, x.%I', c.col, c.col), ', ')
  into v_cols, v_was from scrub_columns() c where c.name = p_table;
  v_here := format('x.tenant = $1 and %s and md5(jsonb_build_object(%s)::text) = $2', v_here, v_was);
  begin
    execute format('update %1$I x set (%2$s) = (select %2$s from jsonb_populate_record(x, $3))'
                   ' where %3$s', p_table, v_cols, v_here)
    using p_tenant, p_row ->> 'seen', v_now;
    get diagnostics v_rows = row_count;
  exception when unique_violation then
    if v_now ->> 'external_id' is not null then
      return scrub_row(p_tenant, p_table, jsonb_set(p_row, '{now,external_id}', 'null'));
    end if;
    execute format('delete from %I x where %s', p_table, v_here) using p_tenant, p_row ->> 'seen';
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

-- Takes out of a memory what is derived from its text: its words' postings, chunks and vectors.
create function scrub_derived(p_tenant int, p_old memory) returns void
language plpgsql as $$
begin
  perform drop_words(p_tenant, p_old.doc, p_old.words);
  delete from vec_bge_small_en_v1_5 v using chunk c
  where v.tenant = p_tenant and c.tenant = p_tenant and c.memory = p_old.id and v.chunk = c.no;
  delete from chunk c where c.tenant = p_tenant and c.memory = p_old.id;
end $$;

-- Puts the clean texts of a memory in their place, as a new version beside one that is clean too. A
-- node that is named by a secret is forgotten. Answers false where it changed since it was read.
create function scrub_memory(p_tenant int, p_tenant_name text, p_row jsonb, p_why text)
returns boolean
language plpgsql as $$
declare
  v_id uuid := p_row -> 'place' ->> 'id';
  v_now jsonb := p_row -> 'now';
  v_old memory;
  v_new memory;
  v_made boolean;
  v_kept boolean;
begin
  perform enter(p_tenant);
  select m.* into v_old from memory m where m.tenant = p_tenant and m.id = v_id for update;
  if v_old.id is null or md5(scrub_texts(p_tenant, v_old)::text) <> p_row ->> 'seen' then
    return false;
  end if;
  perform scrub_derived(p_tenant, v_old);
  delete from memory_tag t where t.tenant = p_tenant and t.memory = v_id;
  insert into memory_tag (tenant, tag, memory)
  select distinct p_tenant, t, v_id from jsonb_array_elements_text(v_now -> 'tags') t;
  v_made := v_old.kind in ('file', 'entity');
  v_new := jsonb_populate_record(v_old, v_now - 'tags');
  v_new.hash := decode(p_row ->> 'hash', 'hex');
  v_new.words := case when v_old.words = '' then '' else to_tsvector('english', p_row ->> 'words') end;
  v_new.terms := case when v_old.status = 'deleted' then 0 else word_count(v_new.words) end;
  if v_made then
    perform drop_derived(p_tenant, v_old);
    delete from anchor a where a.tenant = p_tenant and a.node = v_id;
    v_new.status := 'deleted';
  end if;
  v_kept := not v_made and v_old.status <> 'deleted';
  if v_kept then
    perform keep_version(p_tenant, v_new, 'vault', p_why);
    v_new.version := v_old.version + 1;
    v_new.known_from := now();
    v_new.updated := now();
  end if;
  -- Two that differed by the secret alone stay two; the slow path may make them one.
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
  -- Nobody said it again.
  update memory m set confirmed = v_old.confirmed where m.tenant = p_tenant and m.id = v_id;
  if not v_kept then return true; end if;
  perform index_words(p_tenant, v_old.doc, v_new.words, v_new.terms);
  perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.' || event,
                   jsonb_build_object('id', v_id, 'version', v_new.version), '{}')
  from unnest(array['edited', 'remembered']) event;
  return true;
end $$;

-- Notes how far a passage came and keeps its lease; false where another has it.
create function scrub_came(p_tenant int, p_begun timestamptz, p_part text, p_place jsonb,
                           p_looked int, p_scrubbed int, p_lease interval)
returns boolean
language plpgsql as $$
begin
  perform enter(p_tenant);
  update vault_epoch e
  set part = p_part, place = p_place, looked = e.looked + p_looked,
      scrubbed = e.scrubbed + p_scrubbed, lease_until = clock_timestamp() + p_lease
  where e.tenant = p_tenant and e.begun = p_begun and e.finished is null;
  return found;
end $$;

-- Ends a passage: all is done if it began p_grace after the last secret was put, else another follows.
create function scrub_over(p_tenant int, p_begun timestamptz, p_grace interval) returns void
language plpgsql as $$
begin
  perform enter(p_tenant);
  update vault_epoch e
  set passages = e.passages + 1, begun = null, part = null, place = null, lease_until = null,
      due = greatest(clock_timestamp(), e.wanted + p_grace),
      finished = case when p_begun >= e.wanted + p_grace then clock_timestamp() end
  where e.tenant = p_tenant and e.begun = p_begun;
end $$;

create policy across on vault_epoch to reverie_system using (true);
grant select, update on vault_epoch to reverie_system;

-- A tenant whose texts are to be gone through and that nobody works on: it is this caller's.
create function scrub_claim(p_lease interval)
returns table (tenant int, tenant_name text, begun timestamptz, part text, place jsonb)
language sql volatile security definer
begin atomic
  update vault_epoch e
  set lease_until = clock_timestamp() + p_lease, begun = coalesce(e.begun, clock_timestamp())
  from tenant t
  where t.id = e.tenant and e.tenant = (
    select d.tenant from vault_epoch d
    where d.finished is null and d.due <= clock_timestamp()
      and (d.lease_until is null or d.lease_until < clock_timestamp())
    order by d.due limit 1 for update skip locked)
  returning t.id, t.name, e.begun, e.part, e.place;
end;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function scrub_claim(interval) set search_path = %I, public, pg_temp',
                 current_schema());
  alter function scrub_claim(interval) owner to reverie_system;
  revoke all on function scrub_claim(interval) from public;
  grant execute on function scrub_claim(interval) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;

-- What was stored before this came to be: once for all who have secrets.
do $$
declare
  t record;
begin
  for t in select id from tenant_names() loop
    perform enter(t.id);
    update vault_epoch e set wanted = now(), due = now()
    where e.tenant = t.id and exists (select from vault v where v.tenant = t.id and v.secret);
  end loop;
  perform set_config('reverie.tenant', '', true);
end $$;
