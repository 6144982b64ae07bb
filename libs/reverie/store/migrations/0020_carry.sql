-- Memories carried in from a file: rows as they were, under the rules that hold for new ones.
-- Columns are taken from the catalogue, so that what a table gains later is carried too.

create function carried(p_table regclass, p_row jsonb) returns text
language sql stable
begin atomic
  select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
  from pg_attribute a
  where a.attrelid = p_table and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    and p_row ? a.attname::text;
end;

-- Puts one row where none stands; says whether it did.
create function carry_row(p_table regclass, p_row jsonb) returns boolean
language plpgsql as $$
declare
  v_columns text := carried(p_table, p_row);
  v_rows int;
begin
  execute format('insert into %1$s (%2$s) select %2$s from jsonb_populate_record(null::%1$s, $1)'
                 ' on conflict do nothing', p_table, v_columns) using p_row;
  get diagnostics v_rows = row_count;
  return v_rows > 0;
end $$;

-- Tags and turns of a memory. `p_only`: these and no others.
create function carry_details(p_tenant int, p_memory uuid, p_row jsonb, p_only boolean) returns void
language plpgsql as $$
begin
  if p_only then
    delete from memory_tag t where t.tenant = p_tenant and t.memory = p_memory
      and not coalesce(p_row -> 'tags', '[]') ? t.tag;
    delete from memory_turn t where t.tenant = p_tenant and t.memory = p_memory
      and not coalesce(p_row -> 'turns', '[]') ? t.turn::text;
  end if;
  perform add_details(p_tenant, p_memory, p_row);
end $$;

-- What of a memory counts when a file is compared with what stands.
create function carried_state(p_tenant int, p_memory memory) returns jsonb
language sql stable
return to_jsonb(p_memory)
  - '{tenant,id,doc,words,terms,hash,short,version,enriched_version,updated,known_from}'::text[]
  || jsonb_build_object(
    'tags', array(select t.tag from memory_tag t
                  where t.tenant = p_tenant and t.memory = p_memory.id order by t.tag),
    'turns', array(select t.turn from memory_turn t
                   where t.tenant = p_tenant and t.memory = p_memory.id order by t.turn));

-- Gives a memory that stands the state of the file, as a new version.
create function carry_over(p_tenant int, p_old memory, p_row jsonb, p_who text) returns void
language plpgsql as $$
declare
  v_row jsonb := p_row - '{id,created}'::text[] || jsonb_build_object(
    'version', greatest(p_old.version + 1, (p_row ->> 'version')::int), 'known_from', now());
  v_columns text := carried('memory', v_row);
  v_words tsvector := p_row ->> 'words';
begin
  perform keep_version(p_tenant, p_old, p_who, 'imported');
  execute format('update memory m set (%1$s) = (select %1$s from jsonb_populate_record(m, $3))'
                 ' where m.tenant = $1 and m.id = $2', v_columns) using p_tenant, p_old.id, v_row;
  perform drop_words(p_tenant, p_old.doc, p_old.words);
  perform index_words(p_tenant, p_old.doc, v_words, word_count(v_words));
  perform carry_details(p_tenant, p_old.id, p_row, true);
end $$;

-- A memory that says the same as one that stands: sides are joined, the surer one counts.
create function carry_same(p_tenant int, p_old memory, p_row jsonb, p_strategy text, p_who text)
returns text
language plpgsql as $$
declare
  v_before jsonb := carried_state(p_tenant, p_old);
  v_now memory;
begin
  if p_strategy = 'skip' then return 'skipped'; end if;
  if p_strategy = 'replace' then
    perform carry_over(p_tenant, p_old, p_row, p_who);
  else
    update memory m
    set confidence = greatest(m.confidence, least(1, (p_row ->> 'confidence')::real + 0.05)),
        pinned = m.pinned or (p_row ->> 'pinned')::boolean,
        summary = coalesce(m.summary, p_row ->> 'summary'),
        git = coalesce(m.git, nullif(p_row -> 'git', 'null')),
        metadata = coalesce(nullif(p_row -> 'metadata', 'null'), '{}') || m.metadata
    where m.tenant = p_tenant and m.id = p_old.id;
    perform carry_details(p_tenant, p_old.id, p_row, false);
  end if;
  select m.* into v_now from memory m where m.tenant = p_tenant and m.id = p_old.id;
  return case when carried_state(p_tenant, v_now) = v_before then 'skipped' else 'updated' end;
end $$;

-- A memory whose id stands here already.
create function carry_known(p_tenant int, p_old memory, p_row jsonb, p_strategy text, p_who text)
returns text
language plpgsql as $$
declare
  v_new memory := jsonb_populate_record(p_old, p_row);
  v_state jsonb := carried_state(p_tenant, v_new)
    || jsonb_build_object('tags', coalesce(p_row -> 'tags', '[]'),
                          'turns', coalesce(p_row -> 'turns', '[]'));
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
create function carry_memory(p_tenant int, p_row jsonb, p_strategy text, p_who text,
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
                          valid_to = coalesce(m.valid_to, now()), updated = now()
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
  perform add_details(p_tenant, v_id, v_row);
  return jsonb_build_object('outcome', 'created', 'id', v_id);
end $$;

-- Memories of a file, each judged by itself; what is new or changed goes the slow way too.
create function carry_memories(p_tenant int, p_tenant_name text, p_rows jsonb, p_strategy text,
                               p_who text, p_writes text[], p_headers jsonb)
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_words tsvector;
  v_done jsonb;
begin
  perform enter(p_tenant);
  perform lock_identities(p_tenant, p_rows);
  for v_row in select * from jsonb_array_elements(p_rows) loop
    v_words := to_tsvector('english', v_row ->> 'text');
    v_row := v_row || jsonb_build_object('tenant', p_tenant, 'words', v_words::text,
      'terms', word_count(v_words), 'hash', '\x' || (v_row ->> 'hash'));
    v_done := carry_memory(p_tenant, v_row, p_strategy, p_who, p_writes);
    if v_done ->> 'outcome' in ('created', 'updated') then
      perform announce(p_tenant, gen_random_uuid(), 'memory.' || p_tenant_name || '.remembered',
        (select jsonb_build_object('id', m.id, 'version', m.version) from memory m
         where m.tenant = p_tenant and m.id = (v_done ->> 'id')::uuid), p_headers);
    end if;
    return next v_done;
  end loop;
end $$;

-- Edges of a file. An open causal one is refused where it would close a cycle, with the path.
create function carry_edge(p_tenant int, p_row jsonb, p_strategy text, p_reads text[],
                           p_writes text[])
returns jsonb
language plpgsql as $$
declare
  v_edge edge := jsonb_populate_record(null::edge, p_row);
  v_old edge;
  v_path uuid[];
begin
  perform from memory m where m.tenant = p_tenant and m.id = v_edge.src and m.status <> 'deleted'
    and covers(p_writes, m.scope);
  if not found then
    return jsonb_build_object('outcome', 'refused', 'reason', 'from: no memory ' || v_edge.src);
  end if;
  perform from memory m where m.tenant = p_tenant and m.id = v_edge.dst and m.status <> 'deleted'
    and covers(p_reads, m.scope);
  if not found then
    return jsonb_build_object('outcome', 'refused', 'reason', 'to: no memory ' || v_edge.dst);
  end if;
  select e.* into v_old from edge e
  where e.tenant = p_tenant and (e.id = v_edge.id or v_edge.known_to is null and e.known_to is null
    and e.src = v_edge.src and e.kind = v_edge.kind and e.dst = v_edge.dst) limit 1 for update;
  if v_old.id is not null then
    if p_strategy = 'skip' or v_old.known_to is not null or v_edge.weight = v_old.weight
       or p_strategy = 'merge' and v_edge.weight <= v_old.weight then
      return jsonb_build_object('outcome', 'skipped');
    end if;
    update edge e set weight = v_edge.weight where e.tenant = p_tenant and e.id = v_old.id;
    return jsonb_build_object('outcome', 'updated');
  end if;
  if v_edge.known_to is null and v_edge.kind in ('led_to', 'supersedes', 'learned_in', 'part_of') then
    v_path := case when v_edge.kind = 'led_to' then causal_path(p_tenant, v_edge.dst, v_edge.src)
                   else causal_path(p_tenant, v_edge.src, v_edge.dst) end;
    if v_path is not null then
      return jsonb_build_object('outcome', 'refused', 'reason',
        'would close a causal cycle over ' || array_to_string(v_path || v_path[1], ', '));
    end if;
  end if;
  perform carry_row('edge', p_row);
  return jsonb_build_object('outcome', 'created');
end $$;

create function carry_edges(p_tenant int, p_rows jsonb, p_strategy text, p_reads text[],
                            p_writes text[])
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
begin
  perform enter(p_tenant);
  perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
  for v_row in select * from jsonb_array_elements(p_rows) loop
    return next carry_edge(p_tenant, v_row || jsonb_build_object('tenant', p_tenant), p_strategy,
                           p_reads, p_writes);
  end loop;
end $$;

-- Versions and anchors: rows that belong to a memory that stands, or to none.
create function carry_belongings(p_tenant int, p_table text, p_rows jsonb, p_writes text[])
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_owner uuid;
begin
  perform enter(p_tenant);
  if p_table not in ('memory_version', 'anchor') then
    raise exception 'no belongings: %', p_table;
  end if;
  for v_row in select * from jsonb_array_elements(p_rows) loop
    v_owner := coalesce(v_row ->> 'memory', v_row ->> 'node');
    perform from memory m where m.tenant = p_tenant and m.id = v_owner and m.status <> 'deleted'
      and covers(p_writes, m.scope);
    if not found then
      return next jsonb_build_object('outcome', 'refused', 'reason', 'no memory ' || v_owner);
    elsif carry_row(p_table::regclass, v_row || jsonb_build_object(
        'tenant', p_tenant, 'words', to_tsvector('english', v_row ->> 'text')::text)) then
      return next jsonb_build_object('outcome', 'created');
    else
      return next jsonb_build_object('outcome', 'skipped');
    end if;
  end loop;
end $$;

create function carry_summaries(p_tenant int, p_rows jsonb, p_strategy text) returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_old summary;
  v_new summary;
begin
  perform enter(p_tenant);
  for v_row in select * from jsonb_array_elements(p_rows) loop
    if carry_row('summary', v_row || jsonb_build_object('tenant', p_tenant)) then
      return next jsonb_build_object('outcome', 'created');
      continue;
    end if;
    select s.* into v_old from summary s
    where s.tenant = p_tenant and s.scope = v_row ->> 'scope' for update;
    v_new := jsonb_populate_record(v_old, v_row);
    if p_strategy = 'skip' or v_new.content = v_old.content
       or p_strategy = 'merge' and v_new.updated <= v_old.updated then
      return next jsonb_build_object('outcome', 'skipped');
      continue;
    end if;
    update summary s
    set content = v_new.content, tokens = v_new.tokens, updated = v_new.updated,
        version = greatest(v_old.version + 1, v_new.version)
    where s.tenant = p_tenant and s.scope = v_old.scope;
    return next jsonb_build_object('outcome', 'updated');
  end loop;
end $$;

-- A session that stands, stands: its turns alone may be more.
create function carry_sessions(p_tenant int, p_rows jsonb) returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
begin
  perform enter(p_tenant);
  for v_row in select * from jsonb_array_elements(p_rows) loop
    if carry_row('session', v_row || jsonb_build_object('tenant', p_tenant)) then
      return next jsonb_build_object('outcome', 'created');
    else
      return next jsonb_build_object('outcome', 'skipped');
    end if;
  end loop;
end $$;

-- Turns of sessions that the key may write and whose agent is p_agent (null: any). What a session
-- counts is counted again.
create function carry_turns(p_tenant int, p_rows jsonb, p_agent text, p_writes text[])
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_words tsvector;
begin
  perform enter(p_tenant);
  perform from session s where s.tenant = p_tenant
    and s.id in (select (r ->> 'session')::uuid from jsonb_array_elements(p_rows) r)
  order by s.id for update;
  for v_row in select * from jsonb_array_elements(p_rows) loop
    perform from session s where s.tenant = p_tenant and s.id = (v_row ->> 'session')::uuid
      and (p_agent is null or s.agent = p_agent) and covers(p_writes, s.scope);
    if not found then
      return next jsonb_build_object('outcome', 'refused', 'reason',
                                     'no session ' || (v_row ->> 'session'));
      continue;
    end if;
    v_words := to_tsvector('english', v_row ->> 'text');
    if not carry_row('turn', v_row || jsonb_build_object('tenant', p_tenant,
                                                         'terms', word_count(v_words))) then
      return next jsonb_build_object('outcome', 'skipped');
      continue;
    end if;
    insert into turn_posting (tenant, term, doc, tf, len)
    select p_tenant, term_no(w.lexeme), t.doc, least(cardinality(w.positions), 32767), t.terms
    from turn t cross join lateral unnest(v_words) w
    where t.tenant = p_tenant and t.id = (v_row ->> 'id')::uuid
    on conflict do nothing;
    return next jsonb_build_object('outcome', 'created');
  end loop;
  update session s
  set turns = n.turns, pending = n.pending, pending_chars = n.chars
  from (select t.session, max(t.ord) + 1 as turns, count(*) filter (where t.run is null) as pending,
               coalesce(sum(length(t.content)) filter (where t.run is null), 0) as chars
        from turn t where t.tenant = p_tenant
          and t.session in (select (r ->> 'session')::uuid from jsonb_array_elements(p_rows) r)
        group by t.session) n
  where s.tenant = p_tenant and s.id = n.session;
end $$;
