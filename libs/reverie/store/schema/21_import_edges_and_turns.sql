-- Import of edges, versions, settings, sessions and turns from an exported file.

-- Imports one edge; an open one that would close a cycle is refused, with the path.
create function import_edge(
  p_tenant int, p_row jsonb, p_strategy text, p_reads text[], p_writes text[]
) returns jsonb
language plpgsql as $$
declare
  v_edge edge := jsonb_populate_record(null::edge, p_row);
  v_old edge;
  v_cycle uuid[];
begin
  perform from memory m where m.tenant = p_tenant and m.id = v_edge.src and m.status <> 'deleted'
    and scope_matches(p_writes, m.scope);
  if not found then
    return jsonb_build_object('outcome', 'refused', 'reason', 'from: no memory ' || v_edge.src);
  end if;
  perform from memory m where m.tenant = p_tenant and m.id = v_edge.dst and m.status <> 'deleted'
    and scope_matches(p_reads, m.scope);
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
  v_cycle := case when v_edge.known_to is null
    then edge_cycle(p_tenant, v_edge.src, v_edge.kind, v_edge.dst) end;
  if v_cycle is not null then
    return jsonb_build_object('outcome', 'refused', 'reason', format('would close a %s over %s',
      case v_edge.kind when 'depends_on' then 'ring of tasks that wait for each other'
                       else 'causal cycle' end, array_to_string(v_cycle, ', ')));
  end if;
  perform import_row('edge', p_row);
  return jsonb_build_object('outcome', 'created');
end $$;

-- Imports edges, one at a time under the lock of causal edges.
create function import_edges(
  p_tenant int, p_rows jsonb, p_strategy text, p_reads text[], p_writes text[]
) returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
begin
  perform set_tenant(p_tenant);
  perform pg_advisory_xact_lock(hashtext('reverie.causal'), p_tenant);
  for v_row in select * from jsonb_array_elements(p_rows) loop
    return next import_edge(p_tenant, v_row || jsonb_build_object('tenant', p_tenant), p_strategy,
                            p_reads, p_writes);
  end loop;
end $$;

-- Imports versions and file paths: rows that belong to a memory, and are refused where it is
-- missing. A version that is not before the memory's own is left out: it would stand in the way of
-- the next edit. The path of a file belongs to the project of its node.
create function import_dependent_rows(p_tenant int, p_table text, p_rows jsonb, p_writes text[])
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_owner memory;
begin
  perform set_tenant(p_tenant);
  if p_table not in ('memory_version', 'anchor', 'picture') then
    raise exception 'no belongings: %', p_table;
  end if;
  for v_row in select * from jsonb_array_elements(p_rows) loop
    select m.* into v_owner from memory m
    where m.tenant = p_tenant and m.id = coalesce(v_row ->> 'memory', v_row ->> 'node')::uuid
      and m.status <> 'deleted' and scope_matches(p_writes, m.scope);
    if not found then
      return next jsonb_build_object('outcome', 'refused', 'reason',
        'no memory ' || coalesce(v_row ->> 'memory', v_row ->> 'node') || ' that this key may write');
    elsif p_table = 'anchor' and (v_owner.kind <> 'file'
          or v_owner.scope <> 'project/' || (v_row ->> 'project')) then
      return next jsonb_build_object('outcome', 'refused', 'reason',
        'project: the memory ' || v_owner.id || ' is no file of this project');
    elsif (v_row ->> 'version')::int >= v_owner.version then
      return next jsonb_build_object('outcome', 'skipped');
    elsif import_row(p_table::regclass, v_row || case when p_table = 'picture' then jsonb_build_object(
        'tenant', p_tenant, 'data', '\x' || encode(decode(v_row ->> 'data', 'base64'), 'hex'))
      else jsonb_build_object(
        'tenant', p_tenant, 'words', to_tsvector('english', v_row ->> 'text')::text) end) then
      return next jsonb_build_object('outcome', 'created');
    else
      return next jsonb_build_object('outcome', 'skipped');
    end if;
  end loop;
end $$;

-- Imports rows of a table. Sessions and names of scopes never change what exists; of summaries and
-- settings of projects, the strategy decides where one exists.
create function import_rows(p_tenant int, p_table text, p_rows jsonb, p_strategy text)
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_updated boolean;
begin
  perform set_tenant(p_tenant);
  if p_table not in ('session', 'scope_name', 'summary', 'project_setting') then
    raise exception 'rows of % are not imported this way', p_table;
  end if;
  for v_row in select r || jsonb_build_object('tenant', p_tenant) from jsonb_array_elements(p_rows) r
  loop
    if import_row(p_table::regclass, v_row) then
      return next jsonb_build_object('outcome', 'created');
      continue;
    end if;
    v_updated := false;
    if p_strategy <> 'skip' and p_table = 'summary' then
      update summary s
      set content = n.content, tokens = n.tokens, updated = n.updated,
          version = greatest(s.version + 1, n.version)
      from summary o cross join lateral jsonb_populate_record(o, v_row) n
      where o.tenant = p_tenant and o.scope = v_row ->> 'scope'
        and s.tenant = p_tenant and s.scope = o.scope and s.content <> n.content
        and (p_strategy <> 'merge' or n.updated > s.updated);
      v_updated := found;
    elsif p_strategy <> 'skip' and p_table = 'project_setting' then
      update project_setting s set value = n.value, updated = n.updated
      from project_setting o cross join lateral jsonb_populate_record(o, v_row) n
      where o.tenant = p_tenant and o.project = v_row ->> 'project' and o.name = v_row ->> 'name'
        and s.tenant = p_tenant and s.project = o.project and s.name = o.name
        and s.value <> n.value and (p_strategy <> 'merge' or n.updated > s.updated);
      v_updated := found;
    end if;
    return next jsonb_build_object('outcome', case when v_updated then 'updated' else 'skipped' end);
  end loop;
end $$;

-- Imports turns of sessions that the key may write and whose agent is p_agent (null: any), and
-- counts the pending turns of these sessions again.
create function import_turns(p_tenant int, p_rows jsonb, p_agent text, p_writes text[])
returns setof jsonb
language plpgsql as $$
declare
  v_row jsonb;
  v_words tsvector;
begin
  perform set_tenant(p_tenant);
  perform from session s where s.tenant = p_tenant
    and s.id in (select (r ->> 'session')::uuid from jsonb_array_elements(p_rows) r)
  order by s.id for update;
  update session s
  set own_scopes = array(select o from unnest(s.own_scopes) o where scope_matches(p_writes, o))
  where s.tenant = p_tenant
    and s.id in (select (r ->> 'session')::uuid from jsonb_array_elements(p_rows) r)
    and scope_matches(p_writes, s.scope)
    and exists (select from unnest(s.own_scopes) o where not scope_matches(p_writes, o));
  for v_row in select * from jsonb_array_elements(p_rows) loop
    perform from session s where s.tenant = p_tenant and s.id = (v_row ->> 'session')::uuid
      and (p_agent is null or s.agent = p_agent) and scope_matches(p_writes, s.scope);
    if not found then
      return next jsonb_build_object('outcome', 'refused', 'reason',
                                     'no session ' || (v_row ->> 'session'));
      continue;
    end if;
    v_words := to_tsvector('english', v_row ->> 'text');
    if not import_row('turn', v_row || jsonb_build_object('tenant', p_tenant,
                      'terms', word_count(v_words))) then
      return next jsonb_build_object('outcome', 'skipped');
      continue;
    end if;
    insert into turn_posting_entry (tenant, term, entry)
    select p_tenant, term_hash(w.lexeme)::int, pack_posting(t.doc, cardinality(w.positions), t.terms)
    from turn t cross join lateral unnest(v_words) w
    where t.tenant = p_tenant and t.id = (v_row ->> 'id')::uuid
    on conflict do nothing;
    return next jsonb_build_object('outcome', 'created');
  end loop;
  update session s
  set turns = n.turns, pending = n.pending, pending_segments = n.segments, pending_chars = n.chars
  from (select t.session, max(t.ordinal) + 1 as turns, count(*) filter (where t.run is null) as pending,
               count(*) filter (where t.run is null and t.role = 'user') as segments,
               coalesce(sum(length(t.content)) filter (where t.run is null), 0) as chars
        from turn t where t.tenant = p_tenant
          and t.session in (select (r ->> 'session')::uuid from jsonb_array_elements(p_rows) r)
        group by t.session) n
  where s.tenant = p_tenant and s.id = n.session;
end $$;

-- Limits what imported sessions say is new to the turns that came with them.
create function import_limit_new_turns(p_tenant int) returns void
language sql volatile
begin atomic
  update session s
  set new_turns = least(s.new_turns, s.pending), new_segments = least(s.new_segments, s.pending_segments),
      new_chars = least(s.new_chars, s.pending_chars),
      new_since = case when s.pending > 0 and s.new_turns > 0 then s.new_since end
  where s.tenant = p_tenant
    and (s.new_turns > s.pending or s.new_segments > s.pending_segments
         or s.new_chars > s.pending_chars);
end;
