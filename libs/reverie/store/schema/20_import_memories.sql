-- Import of memories from an exported file, under the rules that hold for new ones. Columns are
-- taken from the catalogue, so that later ones are imported too.

-- The columns of a table that a row has values for, as a list for an insert.
create function insertable_columns(p_table regclass, p_row jsonb) returns text
language sql stable
begin atomic
  select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
  from pg_attribute a
  where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    and p_row ? a.attname::text;
end;

-- Inserts a row unless it exists; says whether it did.
create function import_row(p_table regclass, p_row jsonb) returns boolean
language plpgsql as $$
declare
  v_columns text := insertable_columns(p_table, p_row);
  v_rows int;
begin
  execute format('insert into %1$s (%2$s) select %2$s from jsonb_populate_record(null::%1$s, $1)'
                 ' on conflict do nothing', p_table, v_columns) using p_row;
  get diagnostics v_rows = row_count;
  return v_rows > 0;
end $$;

-- Whether the grants cover a memory.
create function is_readable(p_tenant int, p_memory uuid, p_reads text[]) returns boolean
language sql stable
begin atomic
  select exists (select from memory m where m.tenant = p_tenant and m.id = p_memory
                   and scope_matches(p_reads, m.scope));
end;

-- A memory or an earlier version of it, without the ids of successors that the grants do not cover.
create function hide_successors(p_tenant int, p_row jsonb, p_reads text[]) returns jsonb
language sql stable
return p_row
  - case when p_row ->> 'superseded_by' is null
           or is_readable(p_tenant, (p_row ->> 'superseded_by')::uuid, p_reads) then ''
         else 'superseded_by' end
  - case when p_row ->> 'merged_into' is null
           or is_readable(p_tenant, (p_row ->> 'merged_into')::uuid, p_reads) then ''
         else 'merged_into' end;

-- The stale marks of a memory as an exported line has them: a mark that the grants do not cover the
-- origin of is left out, and other memories on the way are not named.
create function export_stale_marks(p_tenant int, p_memory uuid, p_reads text[]) returns jsonb
language sql stable
begin atomic
  select jsonb_agg(to_jsonb(k) - '{tenant,memory}'::text[] || jsonb_build_object(
      'node', case when is_readable(p_tenant, k.node, p_reads) then k.node end,
      'via', to_jsonb((mark_path(p_tenant, k, p_reads))[4:])) order by k.commit, k.path, k.origin)
  from stale_mark k
  where k.tenant = p_tenant and k.memory = p_memory and is_readable(p_tenant, k.origin, p_reads);
end;

-- What belongs to a memory beside its row, as an exported line has it; empty parts are left out.
create function export_memory_details(p_tenant int, p_memory uuid, p_reads text[]) returns jsonb
language sql stable
begin atomic
  select jsonb_strip_nulls(jsonb_build_object(
      'utterances', (select jsonb_agg(to_jsonb(s) - '{tenant,memory}'::text[] order by s.session)
               from session_utterance s where s.tenant = p_tenant and s.memory = p_memory),
      'usage', (select to_jsonb(u) - '{tenant,memory}'::text[]
               from memory_use u where u.tenant = p_tenant and u.memory = p_memory),
      'task', (select to_jsonb(t) - '{tenant,memory}'::text[]
               from task t where t.tenant = p_tenant and t.memory = p_memory),
      'stale', export_stale_marks(p_tenant, p_memory, p_reads)))
    || jsonb_build_object(
      'tags', array(select t.tag from memory_tag t
                    where t.tenant = p_tenant and t.memory = p_memory order by t.tag),
      'turns', array(select t.turn from memory_turn t
                     where t.tenant = p_tenant and t.memory = p_memory order by t.turn));
end;

-- An exported line as a row, with what is derived from its text. Nodes and merged memories are in
-- no search, so nothing has to be derived for them.
create function prepare_imported_memory(p_tenant int, p_row jsonb) returns jsonb
language sql stable
return p_row || jsonb_build_object(
    'tenant', p_tenant, 'words', to_tsvector('english', p_row ->> 'text')::text,
    'terms', word_count(to_tsvector('english', p_row ->> 'text')),
    'hash', '\x' || (p_row ->> 'hash'))
  || case when p_row -> 'settled' = 'true' then jsonb_build_object('imported_version', p_row -> 'version')
          else '{}' end
  || case when p_row ->> 'kind' in ('file', 'entity') or p_row ->> 'merged_into' is not null
          then jsonb_build_object('enriched_version', p_row -> 'version') else '{}' end;

-- What counts when an imported memory is compared with the existing one; uses do not.
create function comparable_memory_state(p_tenant int, p_memory memory) returns jsonb
language sql stable
return to_jsonb(p_memory)
  - array['tenant', 'id', 'doc', 'words', 'terms', 'hash', 'short', 'version',
          'enriched_version', 'imported_version', 'updated', 'known_from']
  || export_memory_details(p_tenant, p_memory.id, '{*}') - 'usage';

-- Inserts what belongs to a memory. With p_only, whatever the line has of a part replaces the
-- existing part.
create function import_memory_details(p_tenant int, p_memory uuid, p_row jsonb, p_only boolean)
returns void
language plpgsql as $$
declare
  v_part record;
  v_row jsonb;
begin
  if p_only then
    delete from memory_tag t where t.tenant = p_tenant and t.memory = p_memory
      and not coalesce(p_row -> 'tags', '[]') ? t.tag;
    delete from memory_turn t where t.tenant = p_tenant and t.memory = p_memory
      and not coalesce(p_row -> 'turns', '[]') ? t.turn::text;
  end if;
  -- A line without `said` counts as one statement; nodes are never stated.
  perform add_memory_details(p_tenant, p_memory, case
    when p_row ->> 'kind' in ('file', 'entity') or p_row -> 'utterances' <> '[]' then p_row - 'hash'
    else p_row end);
  for v_part in
    select * from (values ('utterances', 'session_utterance'), ('usage', 'memory_use'), ('task', 'task'),
                          ('stale', 'stale_mark')) s (name, table_name)
    where p_row ? s.name
  loop
    if p_only then
      execute format('delete from %I where tenant = $1 and memory = $2', v_part.table_name)
        using p_tenant, p_memory;
    end if;
    for v_row in
      select e from jsonb_array_elements(case jsonb_typeof(p_row -> v_part.name)
        when 'array' then p_row -> v_part.name
        when 'object' then jsonb_build_array(p_row -> v_part.name) else '[]' end) e
    loop
      perform import_row(v_part.table_name::regclass,
                         v_row || jsonb_build_object('tenant', p_tenant, 'memory', p_memory));
    end loop;
  end loop;
end $$;

-- Gives an existing memory the state of the file, as a new version.
create function import_new_version(p_tenant int, p_old memory, p_row jsonb, p_actor text)
returns void
language plpgsql as $$
declare
  v_version int := greatest(p_old.version + 1, (p_row ->> 'version')::int);
  v_row jsonb := p_row - '{id,created}'::text[]
    || jsonb_build_object('version', v_version, 'known_from', now())
    || case when p_row ? 'imported_version'
            then jsonb_build_object('imported_version', v_version) else '{}' end
    || case when p_row ? 'enriched_version'
            then jsonb_build_object('enriched_version', v_version) else '{}' end;
  v_columns text := insertable_columns('memory', v_row);
  v_words tsvector := p_row ->> 'words';
begin
  perform save_version(p_tenant, p_old, p_actor, 'imported');
  execute format('update memory m set (%1$s) = (select %1$s from jsonb_populate_record(m, $3))'
                 ' where m.tenant = $1 and m.id = $2', v_columns) using p_tenant, p_old.id, v_row;
  -- A separate statement: one that also sets the confidence would confirm the memory now.
  update memory m set confirmed = (p_row ->> 'confirmed')::timestamptz
  where m.tenant = p_tenant and m.id = p_old.id and p_row ? 'confirmed';
  if p_row ->> 'merged_into' is null then
    perform unindex_words(p_tenant, p_old.doc, p_old.words);
  else
    perform delete_search_rows(p_tenant, p_old);
  end if;
  perform index_words(p_tenant, p_old.doc, v_words, word_count(v_words));
  perform import_memory_details(p_tenant, p_old.id, p_row, true);
end $$;

-- Handles a memory that says the same as an existing one: both are combined, and the greater
-- confidence wins. What a reader can see of that makes a new version.
create function import_duplicate(
  p_tenant int, p_old memory, p_row jsonb, p_strategy text, p_actor text
) returns text
language plpgsql as $$
declare
  v_before jsonb := comparable_memory_state(p_tenant, p_old);
  v_new memory := p_old;
  v_now memory;
begin
  if p_strategy = 'skip' then return 'skipped'; end if;
  if p_strategy = 'replace' then
    perform import_new_version(p_tenant, p_old, p_row, p_actor);
  else
    v_new.confidence := greatest(p_old.confidence, least(1, (p_row ->> 'confidence')::real + 0.05));
    v_new.pinned := p_old.pinned or coalesce((p_row ->> 'pinned')::boolean, false);
    v_new.summary := coalesce(p_old.summary, p_row ->> 'summary');
    v_new.git := coalesce(p_old.git, nullif(p_row -> 'git', 'null'));
    v_new.metadata := coalesce(nullif(p_row -> 'metadata', 'null'), '{}') || p_old.metadata;
    if v_new is distinct from p_old or has_new_tags(p_tenant, p_old.id, p_row) then
      perform save_version(p_tenant, p_old, p_actor, 'imported');
      update memory m
      set confidence = v_new.confidence, pinned = v_new.pinned, summary = v_new.summary,
          git = v_new.git, metadata = v_new.metadata, version = m.version + 1,
          enriched_version = m.enriched_version + (m.enriched_version = m.version)::int,
          imported_version = m.imported_version + (m.imported_version = m.version)::int
      where m.tenant = p_tenant and m.id = p_old.id;
    end if;
    perform import_memory_details(p_tenant, p_old.id, p_row, false);
  end if;
  select m.* into v_now from memory m where m.tenant = p_tenant and m.id = p_old.id;
  return case when comparable_memory_state(p_tenant, v_now) = v_before then 'skipped' else 'updated' end;
end $$;

-- Handles a memory whose id exists here already.
create function import_existing_memory(
  p_tenant int, p_old memory, p_row jsonb, p_strategy text, p_actor text
) returns text
language plpgsql as $$
declare
  v_new memory := jsonb_populate_record(p_old, p_row);
  v_state jsonb := comparable_memory_state(p_tenant, v_new)
    || jsonb_build_object('tags', coalesce(p_row -> 'tags', '[]'),
                          'turns', coalesce(p_row -> 'turns', '[]'))
    || (select coalesce(jsonb_object_agg(d.key, d.value), '{}') from jsonb_each(p_row) d
        where d.key in ('utterances', 'task', 'stale') and d.value not in ('null', '[]'));
begin
  if p_old.status = 'deleted' or p_strategy = 'skip'
     or p_strategy = 'merge' and v_new.updated <= p_old.updated
     or comparable_memory_state(p_tenant, p_old) = v_state then
    return 'skipped';
  end if;
  perform import_new_version(p_tenant, p_old, p_row, p_actor);
  return 'updated';
end $$;

-- Imports one memory. Returns {outcome: created|updated|skipped|refused, id?, reason?}; `id` is the
-- memory that it became. The key of an agent (p_agent) names no other author.
create function import_memory(
  p_tenant int, p_row jsonb, p_strategy text, p_actor text, p_agent text, p_writes text[]
) returns jsonb
language plpgsql as $$
declare
  v_row jsonb := case when p_agent is null then p_row else p_row - array['agent', 'actor'] end;
  v_id uuid := p_row ->> 'id';
  v_old memory;
  v_twin memory;
  v_key text := p_row ->> 'key';
  v_hash bytea := (p_row ->> 'hash')::bytea;
begin
  select m.* into v_old from memory m where m.tenant = p_tenant and m.id = v_id for update;
  if v_old.id is not null and not scope_matches(p_writes, v_old.scope) then
    return jsonb_build_object('outcome', 'refused', 'reason',
      'the id belongs to a memory that this key may not write');
  end if;
  if v_row ->> 'status' = 'active' then
    select m.* into v_twin from memory m
    where m.tenant = p_tenant and m.scope = v_row ->> 'scope' and m.status = 'active' and m.id <> v_id
      and (m.key = v_key or m.hash = v_hash and coalesce(m.key, '') = coalesce(v_key, ''))
    order by (m.key = v_key) desc nulls last limit 1 for update;
  end if;
  if v_old.id is not null and v_twin.id is null then
    return jsonb_build_object('id', v_id, 'outcome',
      import_existing_memory(p_tenant, v_old, v_row, p_strategy, p_actor));
  end if;
  if v_twin.hash = v_hash and v_old.id is null then
    return jsonb_build_object('id', v_twin.id, 'outcome',
      import_duplicate(p_tenant, v_twin, v_row - 'status', p_strategy, p_actor));
  end if;
  if v_twin.id is not null then
    if p_strategy = 'skip' then return jsonb_build_object('outcome', 'skipped', 'id', v_old.id); end if;
    if p_strategy = 'merge' and (v_row ->> 'updated')::timestamptz <= v_twin.updated then
      v_row := v_row || jsonb_build_object('status', 'superseded', 'superseded_by', v_twin.id);
    else
      perform supersede(p_tenant, v_twin, v_id, p_actor, 'replaced by an import');
    end if;
    if v_old.id is not null then
      return jsonb_build_object('id', v_id, 'outcome',
        import_existing_memory(p_tenant, v_old, v_row, p_strategy, p_actor));
    end if;
  end if;
  if v_row ->> 'status' = 'active' and v_row ->> 'kind' not in ('file', 'entity')
     and v_twin.id is null and full_at(p_tenant) is not null then
    return jsonb_build_object('outcome', 'refused', 'reason', 'this tenant holds as many memories as it may');
  end if;
  if not import_row('memory', v_row || case when p_agent is null then '{}'
      else jsonb_build_object('agent', p_agent, 'actor', p_actor) end) then
    return jsonb_build_object('outcome', 'refused', 'reason', 'many writers change it at once');
  end if;
  select m.* into v_old from memory m where m.tenant = p_tenant and m.id = v_id;
  perform index_words(p_tenant, v_old.doc, v_old.words, v_old.terms);
  perform import_memory_details(p_tenant, v_id, v_row, false);
  return jsonb_build_object('outcome', 'created', 'id', v_id);
end $$;

-- Imports memories one by one; new and changed ones are enriched unless the file has all of it.
create function import_memories(
  p_tenant int, p_tenant_name text, p_rows jsonb, p_strategy text, p_actor text, p_agent text,
  p_writes text[], p_headers jsonb
) returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_result jsonb;
begin
  perform set_tenant(p_tenant);
  perform set_config('timezone', 'UTC', true);  -- times are compared as text with the file's
  perform lock_identities(p_tenant, p_rows);
  for v_row in select prepare_imported_memory(p_tenant, r) from jsonb_array_elements(p_rows) r loop
    v_result := import_memory(p_tenant, v_row, p_strategy, p_actor, p_agent, p_writes);
    if v_result ->> 'outcome' in ('created', 'updated') and not v_row ? 'enriched_version' then
      perform enqueue_memory_event(p_tenant, p_tenant_name, 'remembered', m.id, m.version, p_headers)
      from memory m where m.tenant = p_tenant and m.id = (v_result ->> 'id')::uuid;
    end if;
    return next v_result;
  end loop;
end $$;

-- Follows memories that became others here ({id in the file: id here}) where they are named as
-- successors.
create function import_successors(p_tenant int, p_became jsonb) returns void
language sql volatile
begin atomic
  update memory m
  set superseded_by = coalesce((p_became ->> m.superseded_by::text)::uuid, m.superseded_by),
      merged_into = coalesce((p_became ->> m.merged_into::text)::uuid, m.merged_into)
  where m.tenant = p_tenant
    and (p_became ? m.superseded_by::text or p_became ? m.merged_into::text);
end;
