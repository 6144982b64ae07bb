-- Forgetting: a forgotten memory is in no answer, as of no moment, and can be restored for a while;
-- then its text is erased. What remains is a row without text, so that no import and no dream brings
-- it back.

create index memory_forgotten on memory (known_from) where status = 'deleted' and content <> '';

-- The statements of a text: the sentences of its lines, without list marks and labels. Short ones and
-- single words, such as paths, are left out, because they may stand anywhere.
create function text_statements(p_text text) returns setof text
language sql immutable
begin atomic
  select distinct t.s from regexp_split_to_table(p_text, '\n') l
  cross join lateral regexp_split_to_table(
    regexp_replace(l, '^\s*(?:[-*]\s+)?(?:[A-Z][a-z ]{2,20}:\s+)?', ''), '(?<=[.!?。！？])\s+') w
  cross join lateral (select btrim(w) as s) t
  where length(t.s) >= 12 and (t.s ~ '\s' or t.s ~ '[^\x01-\x7f]');
end;

-- A text without statements, whatever their case and spaces; the longest first, for one may begin another.
create function mask_statements(p_text text, p_statements text[]) returns text
language plpgsql immutable strict as $$
declare
  v_statement text;
begin
  for v_statement in select s from unnest(p_statements) s order by length(s) desc loop
    p_text := regexp_replace(p_text, regexp_replace(
      regexp_replace(v_statement, '([][\\.^$*+?(){}|-])', '\\\1', 'g'), '\s+', '\\s+', 'g'),
      '[forgotten]', 'gi');
  end loop;
  return p_text;
end $$;

-- The same for the texts in a JSON value.
create function mask_json(p_value jsonb, p_statements text[]) returns jsonb
language plpgsql immutable strict as $$
begin
  return case jsonb_typeof(p_value)
    when 'string' then to_jsonb(mask_statements(p_value #>> '{}', p_statements))
    when 'array' then coalesce((
      select jsonb_agg(mask_json(e.value, p_statements) order by e.ordinality)
      from jsonb_array_elements(p_value) with ordinality e), '[]')
    when 'object' then coalesce((
      select jsonb_object_agg(e.key, mask_json(e.value, p_statements)) from jsonb_each(p_value) e), '{}')
    else p_value end;
end $$;

-- All that a memory says and said.
create function memory_texts(p_tenant int, p_memory memory) returns text
language sql stable
return concat_ws(E'\n', (p_memory).content, (p_memory).summary, (p_memory).metadata #>> '{record,problem}', (
  select string_agg(concat_ws(E'\n', v.content, v.state ->> 'summary', v.state #>> '{metadata,record,problem}'), E'\n')
  from memory_version v where v.tenant = p_tenant and v.memory = (p_memory).id));

-- The summary of a session as it is shown: without what was forgotten of it.
create function shown_summary(p_tenant int, p_session uuid, p_summary text) returns text
language sql stable
return coalesce((
  select mask_statements(p_summary, array_agg(s))
  from memory m cross join lateral text_statements(memory_texts(p_tenant, m)) s
  where p_summary is not null and m.tenant = p_tenant and m.session = p_session
    and m.status = 'deleted' and m.kind <> 'session'), p_summary);

-- The content of a turn as it is shown: without what forgotten memories were made of.
create function shown_turn_text(p_tenant int, p_turn uuid, p_content text) returns text
language sql stable
return coalesce((
  select mask_statements(p_content, array_agg(s))
  from memory_turn o join memory m on m.tenant = p_tenant and m.id = o.memory
  cross join lateral text_statements(memory_texts(p_tenant, m)) s
  where o.tenant = p_tenant and o.turn = p_turn and m.status = 'deleted' and m.kind <> 'session'),
  p_content);

-- A memory and those that were forgotten because of it.
create function forgotten_along(p_tenant int, p_memory uuid) returns setof uuid
language sql stable
begin atomic
  with recursive gone (id) as (
    select p_memory
    union
    select m.id from gone g
    join memory m on m.tenant = p_tenant and m.status = 'deleted'
    join memory_version v on v.tenant = p_tenant and v.memory = m.id and v.version = m.version - 1
      and v.actor = 'reverie' and v.reason = 'its evidence ' || g.id || ' changed'
  )
  select g.id from gone g;
end;

-- Makes a forgotten memory what it was before, as a new version, with its edges and stale marks.
create function undo_forgetting(
  p_tenant int, p_tenant_name text, p_old memory, p_actor text, p_why text, p_event uuid,
  p_headers jsonb
) returns void
language plpgsql as $$
declare
  v_edge edge;
begin
  perform save_version(p_tenant, p_old, p_actor, p_why);
  update memory m
  set version = m.version + 1, terms = word_count(m.words), status = coalesce((
        select v.status from memory_version v where v.tenant = p_tenant and v.memory = m.id
          and v.version = p_old.version - 1 and v.status <> 'deleted'), 'active')
  where m.tenant = p_tenant and m.id = p_old.id;
  perform index_words(p_tenant, p_old.doc, p_old.words, word_count(p_old.words));
  for v_edge in
    select e.* from edge e
    join memory o on o.tenant = p_tenant and o.id in (e.src, e.dst) and o.id <> p_old.id
    where e.tenant = p_tenant and p_old.id in (e.src, e.dst) and e.kind <> 'touches'
      and o.status <> 'deleted' and (e.known_to >= p_old.known_from or exists (
        -- The other end was forgotten first, and came back while this one was forgotten.
        select from memory_version v
        where v.tenant = p_tenant and v.memory = o.id and v.status = 'deleted'
          and v.known_from <= e.known_to and p_old.known_from < v.known_to))
    order by e.id
  loop
    perform link(p_tenant, gen_random_uuid(), v_edge.src, v_edge.kind, v_edge.dst, v_edge.weight,
                 v_edge.meta, v_edge.actor);
  end loop;
  update stale_mark s set cleared = null
  where s.tenant = p_tenant and p_old.id in (s.memory, s.origin) and s.cleared >= p_old.known_from;
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'restored', p_old.id, p_old.version + 1,
                               p_headers, p_event);
  perform enqueue_memory_event(p_tenant, p_tenant_name, 'remembered', p_old.id, p_old.version + 1,
                               p_headers);
end $$;

-- Restores a memory that was forgotten less than p_kept ago, and what was forgotten because of it,
-- except where something else has its key or content by now. Returns what restore_memory() does.
create function restore_forgotten(
  p_tenant int, p_tenant_name text, p_memory uuid, p_reads text[], p_writes text[], p_actor text,
  p_event uuid, p_headers jsonb, p_kept interval
) returns jsonb
language plpgsql as $$
declare
  v_old memory;
  v_other memory;
begin
  select m.* into v_old from memory m
  where m.tenant = p_tenant and m.id = p_memory and m.status = 'deleted' and m.content <> ''
    and m.known_from > clock_timestamp() - p_kept and m.kind not in ('file', 'entity')
    and scope_matches(p_reads, m.scope)
  for update;
  if not found then
    return jsonb_build_object('problem', 'not_found');
  elsif not scope_matches(p_writes, v_old.scope) then
    return jsonb_build_object('problem', 'forbidden', 'scope', v_old.scope);
  end if;
  begin
    perform undo_forgetting(p_tenant, p_tenant_name, v_old, p_actor, 'restored', p_event, p_headers);
  exception when unique_violation then
    return jsonb_build_object('problem', 'twin', 'id', find_twin(p_tenant, v_old));
  end;
  for v_other in
    select m.* from memory m
    where m.tenant = p_tenant and m.status = 'deleted' and m.content <> ''
      and m.id in (select forgotten_along(p_tenant, p_memory))
    order by m.id for update
  loop
    begin
      perform undo_forgetting(p_tenant, p_tenant_name, v_other, p_actor,
                              'restored with ' || p_memory, gen_random_uuid(), p_headers);
    exception when unique_violation then null;
    end;
  end loop;
  return jsonb_build_object('version', v_old.version + 1, 'status', (
    select m.status from memory m where m.tenant = p_tenant and m.id = p_memory));
end $$;

-- Forgotten memories whose time is over, of all tenants.
create function forgotten_due(p_kept interval, p_limit int)
returns table (tenant int, id uuid)
language sql stable security definer
begin atomic
  select m.tenant, m.id from memory m
  where m.status = 'deleted' and m.content <> '' and m.known_from <= clock_timestamp() - p_kept
  order by m.known_from limit p_limit;
end;
call run_across_tenants('forgotten_due(interval, int)');

-- Forgets the memories of ids or of a scope that have one of the keys, the tag and the status (each null for
-- all), at most p_limit; a merged one goes with what it went into. Returns {forgotten: [{id, version, events}],
-- more}, or {problem: forbidden, scope}, and then nothing was written.
create function forget_memories(
  p_tenant int, p_tenant_name text, p_reads text[], p_writes text[], p_ids uuid[], p_scope text,
  p_keys text[], p_tag text, p_status text[], p_limit int, p_actor text, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_ids uuid[];
  v_id uuid;
  v_scope text;
  v_result jsonb;
  v_forgotten jsonb[] := '{}';
begin
  perform set_tenant(p_tenant);
  -- Locked in one order for all, so that two calls wait for each other.
  v_ids := array(
    select m.id from memory m
    where m.tenant = p_tenant and m.status <> 'deleted' and m.kind not in ('file', 'entity')
      and m.merged_into is null and scope_matches(p_reads, m.scope)
      and (p_ids is null or m.id = any(array(
        select merge_target(p_tenant, i, null) from unnest(p_ids) i)))
      and (p_scope is null or m.scope = p_scope) and (p_keys is null or m.key = any(p_keys))
      and (p_status is null or m.status = any(p_status))
      and (p_tag is null or exists (select from memory_tag t
           where t.tenant = p_tenant and t.tag = p_tag and t.memory = m.id))
    order by m.id limit p_limit + 1 for update);
  select m.scope into v_scope from memory m
  where m.tenant = p_tenant and m.id = any(v_ids) and not scope_matches(p_writes, m.scope) limit 1;
  if found then
    return jsonb_build_object('problem', 'forbidden', 'scope', v_scope);
  end if;
  foreach v_id in array v_ids[:p_limit] loop
    -- One that was evidence of another took that along: it is not found any more.
    v_result := memory_change(p_tenant, p_tenant_name, v_id, p_reads, p_writes, null,
                              '{"status": "deleted"}', p_actor, 'forgotten', 'forgotten', p_headers, false);
    if v_result ? 'version' then
      v_forgotten := v_forgotten || (v_result || jsonb_build_object('id', v_id));
    end if;
  end loop;
  return jsonb_build_object('forgotten', to_jsonb(v_forgotten), 'more', cardinality(v_ids) > p_limit);
end $$;

-- The columns of other rows that may quote a memory.
create function quoting_columns() returns table (name text, col text, is_json boolean)
language sql stable
begin atomic
  select c.name, c.col, t.type = 'jsonb' from redaction_columns() c
  join table_columns() t on t.name = c.name and t.col = c.col
  where (c.col in ('content', 'reason', 'summary', 'subject', 'meta', 'body', 'payload', 'facts',
                   'output') or c.name in ('engine_group', 'engine_turn', 'engine_effect'))
    and (c.name, c.col) <> ('memory_version', 'content');
end;

-- An SQL expression for mask_quotations(): whether a row `x` belongs to one of the sessions $5, as the
-- session itself, or as the engine's group of it with all that was said there.
create function sessions_condition_of(p_table text) returns text
language sql immutable
return case p_table
  when 'session' then 'x.id = any($5)'
  when 'engine_group' then 'x.session = any($5)'
  when 'engine_effect' then 'exists (select from engine_turn t join engine_group g on g.tenant = $1'
    ' and g.id = t.group_id where t.tenant = $1 and t.id = x.turn and g.session = any($5))'
  else case when p_table in ('engine_message', 'engine_turn') then
    'exists (select from engine_group g where g.tenant = $1 and g.id = x.group_id'
    ' and g.session = any($5))' else 'false' end end;

-- Takes statements out of the texts that quote them, in rows that the grants p_scopes cover and in the
-- sessions of the turns p_sources; out of these turns whatever their case and spaces. An image goes
-- with what quotes it. Returns the number of rows by table.
create function mask_quotations(p_tenant int, p_statements text[], p_sources uuid[], p_scopes text[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  c record;
  v_quoted text[] := array(
    select substr(to_json(s)::text, 2, length(to_json(s)::text) - 2) from unnest(p_statements) s);
  v_sessions uuid[] := array(
    select distinct t.session from turn t where t.tenant = p_tenant and t.id = any(p_sources));
  v_turns uuid[];
begin
  name := 'engine_image';
  gone := engine_delete_images(p_tenant, array(
    select quoting_images(p_tenant, p_statements, p_sources, p_scopes)));
  if gone > 0 then return next; end if;
  for c in select * from quoting_columns() q where (q.name, q.col) <> ('turn', 'content') loop
    execute format(
      case when c.is_json
        then 'update %1$I x set %2$I = mask_json(x.%2$I, $2)'
             ' where x.tenant = $1 and (%4$s and mask_json(x.%2$I, $2) <> x.%2$I'
             ' or exists (select from unnest($3) s where position(s in x.%2$I::text) > 0) and (%3$s))'
        else 'update %1$I x set %2$I = mask_statements(x.%2$I, $2)'
             ' where x.tenant = $1 and (%4$s and mask_statements(x.%2$I, $2) <> x.%2$I'
             ' or exists (select from unnest($2) s where position(s in x.%2$I) > 0) and (%3$s))' end,
      c.name, c.col,
      format('not exists (select from unnest(%s) r where not scope_matches($4, r))',
             redaction_scopes(c.name)), sessions_condition_of(c.name))
    using p_tenant, p_statements, v_quoted, p_scopes, v_sessions;
    get diagnostics gone = row_count;
    name := c.name;
    if gone > 0 then return next; end if;
  end loop;
  delete from recall_trace x
  where x.tenant = p_tenant and exists (
    select from unnest(p_statements) s
    where quotes_text(x.query, s) or quotes_text(s, x.query))
    and (x.session = any(v_sessions)
      or not exists (select from unnest(x.scopes) r where not scope_matches(p_scopes, r)));
  get diagnostics gone = row_count;
  name := 'recall_trace';
  if gone > 0 then return next; end if;
  with masked as (
    update turn t set content = mask_statements(t.content, p_statements)
    where t.tenant = p_tenant and (t.id = any(p_sources) or exists (
        select from unnest(p_statements) s where position(s in t.content) > 0)
        and exists (select from session x where x.tenant = p_tenant and x.id = t.session
                      and scope_matches(p_scopes, x.scope)))
      and mask_statements(t.content, p_statements) <> t.content
    returning t.id
  ) select array_agg(m.id), count(*) into v_turns, gone from masked m;
  name := 'turn';
  if gone > 0 then
    perform reindex_masked_turns(p_tenant, v_turns);
    return next;
  end if;
end $$;

-- Puts the words of turns in place after their texts changed.
create function reindex_masked_turns(p_tenant int, p_turns uuid[]) returns void
language sql volatile
begin atomic
  select reindex_turns(p_tenant, coalesce(jsonb_object_agg(
    t.id, case when t.role = 'tool' then '' else t.content end), '{}'))
  from turn t where t.tenant = p_tenant and t.id = any(p_turns);
end;

-- The nodes that only these memories touch.
create function lone_nodes(p_tenant int, p_memories uuid[]) returns uuid[]
language sql stable
return array(
  select distinct e.dst from edge e
  join memory n on n.tenant = p_tenant and n.id = e.dst and n.kind in ('file', 'entity')
  where e.tenant = p_tenant and e.src = any(p_memories) and e.kind = 'touches'
    and not exists (select from edge o where o.tenant = p_tenant and o.dst = e.dst
                      and o.src <> all(p_memories))
    and not exists (select from edge o where o.tenant = p_tenant and o.src = e.dst
                      and o.dst <> all(p_memories)));

-- Erases a forgotten memory with those that were forgotten because of it: rows that belong to them,
-- nodes that only they touch, and every quotation where the grants p_scopes (null: of its own scope)
-- cover it. A row without text remains of each. Returns the number of rows by table, and none where
-- nothing was left to erase.
create function erase_memory(p_tenant int, p_memory uuid, p_scopes text[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  v_ids uuid[];
  v_nodes uuid[];
  v_statements text[];
  v_old memory;
begin
  perform set_tenant(p_tenant);
  v_ids := array(
    select m.id from memory m
    where m.tenant = p_tenant and m.id in (select forgotten_along(p_tenant, p_memory))
      and m.status = 'deleted' and m.content <> ''
    order by m.id for update);
  if cardinality(v_ids) = 0 then return; end if;
  v_statements := array(
    select distinct s from (
      select memory_texts(p_tenant, m) as text from memory m
      where m.tenant = p_tenant and m.id = any(v_ids) and (m.kind <> 'session' or m.id = p_memory)
    ) x cross join lateral text_statements(x.text) s);
  return query select * from mask_quotations(p_tenant, v_statements, array(
    select o.turn from memory_turn o join memory m on m.tenant = p_tenant and m.id = o.memory
    where o.tenant = p_tenant and o.memory = any(v_ids) and m.kind <> 'session'),
    coalesce(p_scopes, array(
      select m.scope from memory m where m.tenant = p_tenant and m.id = p_memory)));
  update summary_narrative n
  set content = coalesce((
    select jsonb_agg(x.item order by x.no)
    from jsonb_array_elements(n.content) with ordinality x (item, no)
    where not x.item -> 'memories' ?| v_ids::text[]), '[]')
  where n.tenant = p_tenant and exists (
    select from jsonb_array_elements(n.content) x (item) where x.item -> 'memories' ?| v_ids::text[]);
  v_nodes := lone_nodes(p_tenant, v_ids);
  for v_old in select m.* from memory m where m.tenant = p_tenant and m.id = any(v_ids) loop
    perform delete_search_rows(p_tenant, v_old);
  end loop;
  perform idempotency_forget_answers(p_tenant, array(
    select x.key from idempotency x
    where x.tenant = p_tenant and x.status is not null
      and quoted_ids(encode(x.body, 'escape')) && (v_ids || v_nodes)));
  return query select * from erase_references(p_tenant, v_ids || v_nodes);
  return query select * from erase_rows(p_tenant, 'memory', 'x.id = any($2)', v_nodes, null);
  update memory m
  set content = '', summary = null, key = null, hash = sha256(uuid_send(m.id)), words = '', terms = 0,
      confidence = 0, pinned = false, session = null, agent = null, actor = null, git = null,
      metadata = '{}', valid_from = null, valid_to = null, superseded_by = null, merged_into = null
  where m.tenant = p_tenant and m.id = any(v_ids);
  name := 'memory';
  gone := cardinality(v_ids);
  return next;
end $$;

-- Active and other memories that still contain one of the statements of a text.
create function memories_quoting(p_tenant int, p_reads text[], p_text text, p_limit int)
returns setof uuid
language sql stable
begin atomic
  select m.id from memory m
  where m.tenant = p_tenant and m.status <> 'deleted' and scope_matches(p_reads, m.scope)
    and exists (select from text_statements(p_text) s where position(s in m.content) > 0)
  order by m.id desc limit p_limit;
end;
