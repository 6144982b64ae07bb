-- What is carried keeps what belongs to it, and is not linked or compared anew: the file has that.

-- The version up to which anchors, edges and comparisons with others came with a file.
alter table memory add column carried int;

create or replace function keep_version(p_tenant int, p_old memory, p_who text, p_why text)
returns void
language sql volatile
begin atomic
  insert into memory_version (tenant, memory, version, content, status, who, why, known_from,
                              known_to, words, state)
  values (p_tenant, p_old.id, p_old.version, p_old.content, p_old.status, p_who, p_why,
          p_old.known_from, greatest(now(), p_old.known_from), p_old.words,
          to_jsonb(p_old) - array['tenant', 'id', 'doc', 'version', 'content', 'status', 'words',
                                  'terms', 'enriched_version', 'carried', 'short', 'known_from']
          || jsonb_build_object('tags', array(
               select t.tag from memory_tag t
               where t.tenant = p_tenant and t.memory = p_old.id order by t.tag)));
end;

-- What belongs to a memory beside its row, as a line has it; what it has none of is left out.
create function carried_details(p_tenant int, p_memory uuid) returns jsonb
language sql stable
begin atomic
  select jsonb_strip_nulls(jsonb_build_object(
      'said', (select jsonb_agg(to_jsonb(s) - '{tenant,memory}'::text[] order by s.session)
               from memory_said s where s.tenant = p_tenant and s.memory = p_memory),
      'used', (select to_jsonb(u) - '{tenant,memory}'::text[]
               from memory_use u where u.tenant = p_tenant and u.memory = p_memory),
      'task', (select to_jsonb(t) - '{tenant,memory}'::text[]
               from task t where t.tenant = p_tenant and t.memory = p_memory),
      'stale', (select jsonb_agg(to_jsonb(k) - '{tenant,memory}'::text[] order by k.commit, k.path)
                from stale_mark k where k.tenant = p_tenant and k.memory = p_memory)))
    || jsonb_build_object(
      'tags', array(select t.tag from memory_tag t
                    where t.tenant = p_tenant and t.memory = p_memory order by t.tag),
      'turns', array(select t.turn from memory_turn t
                     where t.tenant = p_tenant and t.memory = p_memory order by t.turn));
end;

-- Puts what belongs to a memory. `p_only`: where the line says anything of a sort, that and no other.
create or replace function carry_details(p_tenant int, p_memory uuid, p_row jsonb, p_only boolean)
returns void
language plpgsql as $$
declare
  v_sort record;
  v_one jsonb;
begin
  if p_only then
    delete from memory_tag t where t.tenant = p_tenant and t.memory = p_memory
      and not coalesce(p_row -> 'tags', '[]') ? t.tag;
    delete from memory_turn t where t.tenant = p_tenant and t.memory = p_memory
      and not coalesce(p_row -> 'turns', '[]') ? t.turn::text;
  end if;
  -- Without a word of it a memory was said once; nodes never are.
  perform add_details(p_tenant, p_memory, case
    when p_row ->> 'kind' in ('file', 'entity') or p_row -> 'said' <> '[]' then p_row - 'hash'
    else p_row end);
  for v_sort in
    select * from (values ('said', 'memory_said'), ('used', 'memory_use'), ('task', 'task'),
                          ('stale', 'stale_mark')) s (name, tab)
    where p_row ? s.name
  loop
    if p_only then
      execute format('delete from %I where tenant = $1 and memory = $2', v_sort.tab)
        using p_tenant, p_memory;
    end if;
    for v_one in
      select e from jsonb_array_elements(case jsonb_typeof(p_row -> v_sort.name)
        when 'array' then p_row -> v_sort.name
        when 'object' then jsonb_build_array(p_row -> v_sort.name) else '[]' end) e
    loop
      perform carry_row(v_sort.tab::regclass,
                        v_one || jsonb_build_object('tenant', p_tenant, 'memory', p_memory));
    end loop;
  end loop;
end $$;

-- What of a memory counts when a file is compared with what stands; that it was used is no change.
create or replace function carried_state(p_tenant int, p_memory memory) returns jsonb
language sql stable
return to_jsonb(p_memory)
  - '{tenant,id,doc,words,terms,hash,short,version,enriched_version,carried,updated,known_from}'::text[]
  || carried_details(p_tenant, p_memory.id) - 'used';

-- Gives a memory that stands the state of the file, as a new version.
create or replace function carry_over(p_tenant int, p_old memory, p_row jsonb, p_who text)
returns void
language plpgsql as $$
declare
  v_version int := greatest(p_old.version + 1, (p_row ->> 'version')::int);
  v_row jsonb := p_row - '{id,created}'::text[]
    || jsonb_build_object('version', v_version, 'known_from', now())
    || case when p_row ? 'carried' then jsonb_build_object('carried', v_version) else '{}' end
    || case when p_row ? 'enriched_version'
            then jsonb_build_object('enriched_version', v_version) else '{}' end;
  v_columns text := carried('memory', v_row);
  v_words tsvector := p_row ->> 'words';
begin
  perform keep_version(p_tenant, p_old, p_who, 'imported');
  execute format('update memory m set (%1$s) = (select %1$s from jsonb_populate_record(m, $3))'
                 ' where m.tenant = $1 and m.id = $2', v_columns) using p_tenant, p_old.id, v_row;
  -- By itself: a statement that names the confidence too would confirm it now.
  update memory m set confirmed = (p_row ->> 'confirmed')::timestamptz
  where m.tenant = p_tenant and m.id = p_old.id and p_row ? 'confirmed';
  perform drop_words(p_tenant, p_old.doc, p_old.words);
  perform index_words(p_tenant, p_old.doc, v_words, word_count(v_words));
  if p_row ->> 'merged_into' is not null then
    delete from vec_bge_small_en_v1_5 v using chunk c
    where v.tenant = p_tenant and c.tenant = p_tenant and c.memory = p_old.id and v.chunk = c.no;
    delete from chunk c where c.tenant = p_tenant and c.memory = p_old.id;
  end if;
  perform carry_details(p_tenant, p_old.id, p_row, true);
end $$;

-- A memory whose id stands here already.
create or replace function carry_known(p_tenant int, p_old memory, p_row jsonb, p_strategy text,
                                       p_who text)
returns text
language plpgsql as $$
declare
  v_new memory := jsonb_populate_record(p_old, p_row);
  v_state jsonb := carried_state(p_tenant, v_new)
    || jsonb_build_object('tags', coalesce(p_row -> 'tags', '[]'),
                          'turns', coalesce(p_row -> 'turns', '[]'))
    || (select coalesce(jsonb_object_agg(d.key, d.value), '{}') from jsonb_each(p_row) d
        where d.key in ('said', 'task', 'stale') and d.value not in ('null', '[]'));
begin
  if p_old.status = 'deleted' or p_strategy = 'skip'
     or p_strategy = 'merge' and v_new.updated <= p_old.updated
     or carried_state(p_tenant, p_old) = v_state then
    return 'skipped';
  end if;
  perform carry_over(p_tenant, p_old, p_row, p_who);
  return 'updated';
end $$;

-- One memory of a file. Answers {outcome: created|updated|skipped|refused, id?, reason?}; `id` is
-- the memory that it became, absent where it became none.
create or replace function carry_memory(p_tenant int, p_row jsonb, p_strategy text, p_who text,
                             p_writes text[])
returns jsonb
language plpgsql as $$
declare
  v_row jsonb := p_row;
  v_id uuid := p_row ->> 'id';
  v_old memory;
  v_other memory;
  v_key text := p_row ->> 'key';
  v_hash bytea := (p_row ->> 'hash')::bytea;
begin
  select m.* into v_old from memory m where m.tenant = p_tenant and m.id = v_id for update;
  if v_old.id is not null then
    if not covers(p_writes, v_old.scope) then
      return jsonb_build_object('outcome', 'refused', 'reason',
        'the id belongs to a memory that this key may not write');
    end if;
  end if;
  if v_row ->> 'status' = 'active' then
    select m.* into v_other from memory m
    where m.tenant = p_tenant and m.scope = v_row ->> 'scope' and m.status = 'active' and m.id <> v_id
      and (m.key = v_key or m.hash = v_hash and coalesce(m.key, '') = coalesce(v_key, ''))
    order by (m.key = v_key) desc nulls last limit 1 for update;
  end if;
  if v_old.id is not null and v_other.id is null then
    return jsonb_build_object('id', v_id, 'outcome',
      carry_known(p_tenant, v_old, v_row, p_strategy, p_who));
  end if;
  if v_other.hash = v_hash and v_old.id is null then
    return jsonb_build_object('id', v_other.id, 'outcome',
      carry_same(p_tenant, v_other, v_row - 'status', p_strategy, p_who));
  end if;
  if v_other.id is not null then
    if p_strategy = 'skip' then return jsonb_build_object('outcome', 'skipped', 'id', v_old.id); end if;
    if p_strategy = 'merge' and (v_row ->> 'updated')::timestamptz <= v_other.updated then
      v_row := v_row || jsonb_build_object('status', 'superseded', 'superseded_by', v_other.id);
    else
      perform keep_version(p_tenant, v_other, p_who, 'replaced by an import');
      update memory m set status = 'superseded', superseded_by = v_id, version = m.version + 1,
                          valid_to = coalesce(m.valid_to, now()), updated = now(), known_from = now()
      where m.tenant = p_tenant and m.id = v_other.id;
    end if;
    if v_old.id is not null then
      return jsonb_build_object('id', v_id, 'outcome',
        carry_known(p_tenant, v_old, v_row, p_strategy, p_who));
    end if;
  end if;
  if not carry_row('memory', v_row) then
    return jsonb_build_object('outcome', 'refused', 'reason', 'many writers change it at once');
  end if;
  select m.* into v_old from memory m where m.tenant = p_tenant and m.id = v_id;
  perform index_words(p_tenant, v_old.doc, v_old.words, v_old.terms);
  perform carry_details(p_tenant, v_id, v_row, false);
  return jsonb_build_object('outcome', 'created', 'id', v_id);
end $$;

-- A line as a row: what is derived of it, and what need not be derived again. Nodes and merged
-- memories are in no search, so that nothing is to be made of them.
create function carried_row(p_tenant int, p_row jsonb) returns jsonb
language sql stable
return p_row || jsonb_build_object(
    'tenant', p_tenant, 'words', to_tsvector('english', p_row ->> 'text')::text,
    'terms', word_count(to_tsvector('english', p_row ->> 'text')),
    'hash', '\x' || (p_row ->> 'hash'))
  || case when p_row -> 'settled' = 'true' then jsonb_build_object('carried', p_row -> 'version')
          else '{}' end
  || case when p_row ->> 'kind' in ('file', 'entity') or p_row ->> 'merged_into' is not null
          then jsonb_build_object('enriched_version', p_row -> 'version') else '{}' end;

-- Memories of a file, each judged by itself; what is new or changed goes the slow way too.
create or replace function carry_memories(p_tenant int, p_tenant_name text, p_rows jsonb,
                                          p_strategy text, p_who text, p_writes text[],
                                          p_headers jsonb)
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_done jsonb;
begin
  perform enter(p_tenant);
  perform set_config('timezone', 'UTC', true);  -- times as text are compared with the file's
  perform lock_identities(p_tenant, p_rows);
  for v_row in select carried_row(p_tenant, r) from jsonb_array_elements(p_rows) r loop
    v_done := carry_memory(p_tenant, v_row, p_strategy, p_who, p_writes);
    if v_done ->> 'outcome' in ('created', 'updated') and not v_row ? 'enriched_version' then
      perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.remembered',
        (select jsonb_build_object('id', m.id, 'version', m.version) from memory m
         where m.tenant = p_tenant and m.id = (v_done ->> 'id')::uuid), p_headers);
    end if;
    return next v_done;
  end loop;
end $$;

-- Where what is named as the successor of a memory ({id in the file: id here}) became another one.
create function carry_successors(p_tenant int, p_became jsonb) returns void
language sql volatile
begin atomic
  update memory m
  set superseded_by = coalesce((p_became ->> m.superseded_by::text)::uuid, m.superseded_by),
      merged_into = coalesce((p_became ->> m.merged_into::text)::uuid, m.merged_into)
  where m.tenant = p_tenant
    and (p_became ? m.superseded_by::text or p_became ? m.merged_into::text);
end;
