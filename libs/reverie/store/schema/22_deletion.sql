-- What follows a memory that is forgotten; deletion of scopes and tenants. The catalogue says what
-- belongs to them, so that no later table is left out.

-- A text for comparison: in lower case, with single spaces.
create function normalize_quote(p_text text) returns text
language sql immutable
return trim(regexp_replace(lower(p_text), '\s+', ' ', 'g'));

-- Whether a text contains all of another.
create function quotes_text(p_text text, p_other text) returns boolean
language sql immutable
return normalize_quote(p_text) = normalize_quote(p_other)
  or length(normalize_quote(p_other)) >= 20
     and position(normalize_quote(p_other) in normalize_quote(p_text)) > 0;

-- Whether one of the lines of a session's memory is in another text, or quotes it.
create function shares_line(p_text text, p_other text) returns boolean
language sql immutable
return exists (
  select from regexp_split_to_table(p_text, '\n') l
  cross join lateral (select regexp_replace(l, '^\s*(-|Session:)', '') as line) n
  where quotes_text(p_other, n.line) or quotes_text(n.line, p_other));

-- What was derived from a memory, and may quote it: insights that nobody approved or pinned, and its
-- convention.
create function find_derived_memories(p_tenant int, p_old memory) returns table (id uuid)
language sql stable
begin atomic
  select m.id from edge e join memory m on m.tenant = p_tenant and m.id = e.dst
  where e.tenant = p_tenant and e.src = (p_old).id and e.kind = 'led_to' and e.known_to is null
    and e.meta ->> 'evidence' = 'true' and m.source = 'reflection'
    and m.status in ('active', 'archived') and not m.pinned and m.confidence < 1
  union
  select m.id from memory m
  where m.tenant = p_tenant and m.scope = (p_old).scope and m.key = 'convention:' || (p_old).id
    and m.source = 'promotion' and m.status in ('active', 'superseded', 'archived')
    and not m.pinned and quotes_text(m.content, (p_old).content);
end;

-- What quotes a memory because a dream derived both from the same turns: the memory of the session,
-- and records that contain all of it. Only what may be written, and nothing that is pinned.
create function find_quoting_memories(p_tenant int, p_old memory, p_writes text[])
returns table (id uuid)
language sql stable
begin atomic
  select m.id from memory m
  where m.tenant = p_tenant and m.id in (
      select o.memory from memory_turn t
      join memory_turn o on o.tenant = p_tenant and o.turn = t.turn
      where t.tenant = p_tenant and t.memory = (p_old).id
      union all
      select k.id from memory k
      where k.tenant = p_tenant and k.scope = (p_old).scope and k.key = 'session:' || (p_old).session)
    and m.id <> (p_old).id and m.source = 'dream' and not m.pinned and m.merged_into is null
    and m.status in ('active', 'superseded', 'archived') and scope_matches(p_writes, m.scope)
    and case m.kind when 'session' then shares_line(m.content, (p_old).content) or exists (
                      select from memory_turn t join memory_turn o on o.tenant = p_tenant
                        and o.turn = t.turn and o.memory = m.id
                      where t.tenant = p_tenant and t.memory = (p_old).id)
                    else quotes_text(m.content, (p_old).content) end;
end;

-- Lets what may quote a memory follow it when it is forgotten or says something else: it is forgotten
-- or archived. What was merged into it is forgotten, too. What quotes it alone takes nothing else
-- along.
create function follow_evidence(
  p_tenant int, p_tenant_name text, p_old memory, p_writes text[], p_is_forgotten boolean,
  p_headers jsonb
) returns void
language plpgsql as $$
declare
  v_is_following boolean := current_setting('reverie.following', true) = 'on';
  v_following uuid;
begin
  for v_following in
    select d.id from find_derived_memories(p_tenant, p_old) d
    union
    select q.id from find_quoting_memories(p_tenant, p_old, p_writes) q
    where p_is_forgotten and not coalesce(v_is_following, false) and (p_old).kind <> 'session'
    union
    select k.id from memory k
    where p_is_forgotten and k.tenant = p_tenant and k.merged_into = (p_old).id
      and k.status <> 'deleted'
    order by 1
  loop
    perform set_config('reverie.following', 'on', true);
    perform memory_change(
      p_tenant, p_tenant_name, v_following, '{*}', '{*}', null,
      jsonb_build_object('status', case when p_is_forgotten then 'deleted' else 'archived' end),
      'reverie', 'its evidence ' || (p_old).id || ' changed',
      case when p_is_forgotten then 'forgotten' else 'archived' end, p_headers, false);
  end loop;
  perform set_config('reverie.following', case when v_is_following then 'on' else 'off' end, true);
end $$;

-- The tables that hold rows of tenants.
create function tenant_tables() returns table (name text)
language sql stable
begin atomic
  select c.relname::text
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
    and not c.relispartition and a.attname = 'tenant' and not a.attisdropped
  order by 1;
end;

-- The columns of these tables.
create function table_columns() returns table (name text, col text, type text, needed boolean)
language sql stable
begin atomic
  select t.name, a.attname::text, a.atttypid::regtype::text, a.attnotnull
  from tenant_tables() t
  join pg_class c on c.relname = t.name and c.relnamespace = current_schema()::regnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  order by 1, a.attnum;
end;

-- Tables that refer to rows by a number instead of an id: `part.col` holds `owner.number`.
create function number_references() returns table (owner text, number text, part text, col text)
language sql stable
begin atomic
  select * from (values ('memory', 'doc', 'posting', 'doc'), ('turn', 'doc', 'turn_posting', 'doc')) v
  union all
  select 'chunk', 'no', c.name, c.col from table_columns() c where c.col = 'chunk' and c.type = 'bigint';
end;

-- How each table loses the rows of a deleted scope: `scope` (it names the scope), `ids` (it names
-- deleted ids in some column), `project` (it names the project), `number` (by number_references),
-- `quotes` (it quotes ids in texts), `never` (it belongs to the tenant, or tells gateways of the
-- deletion). Null: undecided, which a test refuses.
create function erase_strategy() returns table (name text, strategy text)
language sql stable
begin atomic
  select c.name, case
    when c.name in ('api_key', 'console_session', 'vault_epoch', 'llm_usage_daily', 'audit',
                    'memory_change', 'engine_agent', 'engine_spend')
      then 'never'
    when c.name in ('outbox', 'idempotency', 'recall_trace') then 'quotes'
    when bool_or(c.col = 'scope' and c.type = 'text') then 'scope'
    when c.name in ('posting_entry', 'turn_posting_entry') then 'number'
    when c.name in (select n.part from number_references() n) then 'number'
    when bool_or(c.col <> 'id' and c.type in ('uuid', 'uuid[]')) then 'ids'
    when bool_or(c.col = 'project') then 'project' end
  from table_columns() c group by c.name;
end;

-- Deletes the postings of memories by a condition, as erase_rows() takes one. The bounds of a
-- document's entries are computed in advance: under row-level security an expression over a joined
-- row is no index condition, and all postings of a term would be read.
create function erase_postings(p_tenant int, p_where text, p_ids uuid[], p_texts text[])
returns bigint
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_terms int[];
  v_first bigint[];
  v_last bigint[];
  n bigint;
begin
  execute format(
    'select array_agg(term_hash(w.lexeme)::int), array_agg(x.doc << 28),'
    ' array_agg((x.doc << 28) | 268435455)'
    ' from memory x cross join lateral unnest(x.words) w where x.tenant = $1 and (%s)', p_where)
  into v_terms, v_first, v_last using p_tenant, p_ids, p_texts;
  delete from posting_entry p using unnest(v_terms, v_first, v_last) k (term, first, last)
  where p.tenant = p_tenant and p.term = k.term and p.entry >= k.first and p.entry <= k.last;
  get diagnostics n = row_count;
  return n;
end $$;

-- Deletes rows of a table by a condition on `x` ($1 the tenant, $2 ids, $3 patterns or names), and
-- whatever refers to them by number or id. Returns the number of rows by table.
create function erase_rows(p_tenant int, p_table text, p_where text, p_ids uuid[], p_texts text[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  v_ids uuid[];
  v_numbers bigint[];
  v_number text := (select min(n.number) from number_references() n where n.owner = p_table);
  v_has_id boolean := exists (select from table_columns() c where c.name = p_table
                                and c.col = 'id' and c.type = 'uuid');
  p record;
begin
  if p_table = 'memory' then
    name := 'posting';
    gone := erase_postings(p_tenant, p_where, p_ids, p_texts);
    return next;
  end if;
  execute format(
    'with deleted as (delete from %I x where x.tenant = $1 and (%s) returning %s as id, %s as number)'
    ' select count(*), array_agg(id), array_agg(number) from deleted',
    p_table, p_where, case when v_has_id then 'x.id' else 'null::uuid' end,
    coalesce('x.' || quote_ident(v_number), 'null::bigint'))
  into gone, v_ids, v_numbers using p_tenant, p_ids, p_texts;
  if gone = 0 then return; end if;
  name := p_table;
  return next;
  for p in select n.part, n.col from number_references() n
           where n.owner = p_table and n.part <> 'posting' loop
    execute format('delete from %I x where x.tenant = $1 and x.%I = any($2)', p.part, p.col)
      using p_tenant, v_numbers;
    get diagnostics gone = row_count;
    name := p.part;
    return next;
  end loop;
  if v_has_id then
    return query select * from erase_references(p_tenant, v_ids);
  end if;
end $$;

-- Deletes rows that name deleted ids; rows with a scope of their own only lose the reference.
create function erase_references(p_tenant int, p_ids uuid[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  c record;
  v_where text;
  v_exists boolean;
begin
  for c in select k.*, w.strategy from table_columns() k join erase_strategy() w on w.name = k.name
           where k.type in ('uuid', 'uuid[]') loop
    if c.strategy in ('ids', 'project') and (c.col <> 'id' or c.type <> 'uuid') then
      v_where := format(case c.type when 'uuid' then 'x.%I = any($2)' else 'x.%I && $2' end, c.col);
      -- Most tables have no such row, and this check is cheaper than looking for references to it.
      execute format('select exists (select from %I x where x.tenant = $1 and %s)', c.name, v_where)
        into v_exists using p_tenant, p_ids;
      continue when not v_exists;
      return query select * from erase_rows(p_tenant, c.name, v_where, p_ids, null);
    elsif c.strategy = 'scope' and c.type = 'uuid' and not c.needed then
      execute format('update %1$I x set %2$I = null where x.tenant = $1 and x.%2$I = any($2)',
                     c.name, c.col) using p_tenant, p_ids;
    end if;
  end loop;
end $$;

-- The uuids that a text quotes.
create function quoted_ids(p_text text) returns uuid[]
language sql immutable
return array(select m[1]::uuid from regexp_matches(
  lower(p_text), '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'g') m);

-- Deletes events, kept answers and uses that quote ids. Recall traces quote everything that was
-- considered, and answers to session starts quote texts without ids, so all of those are deleted.
-- What session starts wrote is kept, so that a repeated start finds its session.
create function erase_quotes(p_tenant int, p_ids uuid[])
returns table (name text, gone bigint)
language plpgsql as $$
begin
  delete from outbox x where x.tenant = p_tenant and quoted_ids(x.payload::text) && p_ids;
  get diagnostics gone = row_count;
  name := 'outbox';
  return next;
  delete from idempotency x where x.tenant = p_tenant
    and (x.status is not null and quoted_ids(encode(x.body, 'escape')) && p_ids
         or quoted_ids(x.effect::text) && p_ids);
  get diagnostics gone = row_count;
  name := 'idempotency';
  return next;
  perform forget_session_starts(p_tenant);
  delete from memory_use_session x
  where x.tenant = p_tenant and x.used_by in (select 'session ' || i from unnest(p_ids) i);
  get diagnostics gone = row_count;
  name := 'memory_use_session';
  return next;
  delete from recall_trace x where x.tenant = p_tenant;
  get diagnostics gone = row_count;
  name := 'recall_trace';
  return next;
end $$;

-- Deletes up to p_limit memories of the scopes that the patterns cover, then turns, then sessions,
-- then rows of every other table of these scopes and of the project, if one is named. Returns no
-- row when nothing is left.
create function scope_delete_batch(p_tenant int, p_patterns text[], p_project text, p_limit int)
returns table (name text, gone bigint)
language plpgsql as $$
declare
  v_ids uuid[];
  v_condition text;
  v_texts text[];
  t record;
begin
  perform set_tenant(p_tenant);
  v_ids := array(select m.id from memory m where m.tenant = p_tenant and scope_matches(p_patterns, m.scope)
                 order by m.id limit p_limit for update);
  if cardinality(v_ids) > 0 then
    return query select * from erase_rows(p_tenant, 'memory', 'x.id = any($2)', v_ids, null);
    return query select * from erase_quotes(p_tenant, v_ids);
    return;
  end if;
  v_ids := array(select u.id from turn u join session s on s.tenant = p_tenant and s.id = u.session
                 where u.tenant = p_tenant and scope_matches(p_patterns, s.scope) limit p_limit);
  if cardinality(v_ids) > 0 then
    return query select * from erase_rows(p_tenant, 'turn', 'x.id = any($2)', v_ids, null);
    return;
  end if;
  v_ids := array(select s.id from session s
                 where s.tenant = p_tenant and scope_matches(p_patterns, s.scope) limit p_limit);
  if cardinality(v_ids) > 0 then
    return query select * from erase_rows(p_tenant, 'session', 'x.id = any($2)', v_ids, null);
    return query select * from erase_quotes(p_tenant, v_ids);
    return;
  end if;
  for t in select k.name as table_name, k.strategy from erase_strategy() k order by k.name loop
    v_condition := case
      when t.strategy = 'scope' then 'scope_matches($3, y.scope)'
      when p_project is not null and t.strategy in ('ids', 'project') and exists (
        select from table_columns() c where c.name = t.table_name and c.col = 'project')
      then 'y.project = any($3)' end;
    v_texts := case when t.strategy = 'scope' then p_patterns else array[p_project] end;
    continue when v_condition is null;
    -- All rows of a tenant are in one partition, so ctid identifies them.
    return query select * from erase_rows(p_tenant, t.table_name, format(
      'x.ctid = any(array(select y.ctid from %I y where y.tenant = $1 and %s limit %s))',
      t.table_name, v_condition, p_limit), null, v_texts);
  end loop;
  delete from outbox x where x.tenant = p_tenant and scope_matches(p_patterns, x.payload ->> 'scope');
  get diagnostics gone = row_count;
  if gone > 0 then name := 'outbox'; return next; end if;
end $$;

-- Deletes up to p_limit rows of a tenant from one of its tables.
create function tenant_delete_batch(p_tenant int, p_table text, p_limit int) returns bigint
language plpgsql as $$
declare
  n bigint;
begin
  perform set_tenant(p_tenant);
  perform set_config('reverie.deleting_tenant', 'on', true);
  if not exists (select from tenant_tables() t where t.name = p_table) then
    raise undefined_table using message = p_table;
  end if;
  -- All rows of a tenant are in one partition, so ctid identifies them.
  execute format('delete from %1$I where tenant = $1 and ctid = any(array('
                 'select x.ctid from %1$I x where x.tenant = $1 limit $2))', p_table)
  using p_tenant, p_limit;
  get diagnostics n = row_count;
  return n;
end $$;

-- Deletes the tenant's row, after which the policy tenant_exists refuses new rows. Returns the
-- number of this transaction: once none older is running, no write is under way any more.
create function tenant_delete(p_tenant int) returns xid8
language plpgsql volatile security definer as $$
begin
  delete from tenant t where t.id = p_tenant
    and t.id = nullif(current_setting('reverie.tenant', true), '')::int;
  return pg_current_xact_id();
end $$;
call run_across_tenants('tenant_delete(int)');
