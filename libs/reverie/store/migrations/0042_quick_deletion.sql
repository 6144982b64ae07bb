-- Deletion finds postings by their words instead of reading all of them, and each step of it is a
-- batch.

create index memory_successor on memory (tenant, superseded_by) where superseded_by is not null;

-- Deletes the postings of memories by a condition on `x`, as `erase` takes one.
create function erase_words(p_tenant int, p_where text, p_ids uuid[], p_texts text[]) returns bigint
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_terms bigint[];
  v_docs bigint[];
  n bigint;
begin
  execute format(
    'select array_agg(term_no(w.lexeme)), array_agg(x.doc)'
    ' from memory x cross join lateral unnest(x.words) w where x.tenant = $1 and (%s)', p_where)
  into v_terms, v_docs using p_tenant, p_ids, p_texts;
  delete from posting p using unnest(v_terms, v_docs) k (term, doc)
  where p.tenant = p_tenant and p.term = k.term and p.doc = k.doc;
  get diagnostics n = row_count;
  return n;
end $$;

-- How each table loses the rows of a scope, all of them in one look at the catalogue: `scope` (it
-- names the scope), `ids` (it names what is deleted, in any column of ids), `project` (it names the
-- project), `number`, `quotes` (it quotes ids in texts), `never` (it is the tenant's). Null: nobody
-- has said.
create function table_ways() returns table (name text, way text)
language sql stable
begin atomic
  select c.name, case
    when c.name in ('api_key', 'vault_epoch') then 'never'
    when c.name in ('outbox', 'idempotency', 'recall_trace') then 'quotes'
    when bool_or(c.col = 'scope' and c.type = 'text') then 'scope'
    when c.name in (select n.part from numbered_parts() n) then 'number'
    when bool_or(c.col <> 'id' and c.type in ('uuid', 'uuid[]')) then 'ids'
    when bool_or(c.col = 'project') then 'project' end
  from table_columns() c group by c.name;
end;

create or replace function scope_way(p_table text) returns text
language sql stable
begin atomic
  select w.way from table_ways() w where w.name = p_table;
end;

-- What names deleted ids goes with them; what has a scope of its own stays and only forgets them.
create or replace function erase_named(p_tenant int, p_ids uuid[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  c record;
  v_where text;
  v_there boolean;
begin
  for c in select k.*, w.way from table_columns() k join table_ways() w on w.name = k.name
           where k.type in ('uuid', 'uuid[]') loop
    if c.way in ('ids', 'project') and (c.col <> 'id' or c.type <> 'uuid') then
      v_where := format(case c.type when 'uuid' then 'x.%I = any($2)' else 'x.%I && $2' end, c.col);
      -- Most name none, and to look is quicker than to find out what hangs on nothing.
      execute format('select exists (select from %I x where x.tenant = $1 and %s)', c.name, v_where)
        into v_there using p_tenant, p_ids;
      continue when not v_there;
      return query select * from erase(p_tenant, c.name, v_where, p_ids, null);
    elsif c.way = 'scope' and c.type = 'uuid' and not c.needed then
      execute format('update %1$I x set %2$I = null where x.tenant = $1 and x.%2$I = any($2)',
                     c.name, c.col) using p_tenant, p_ids;
    end if;
  end loop;
end $$;

-- Deletes rows of a table by a condition on `x` (`$1` the tenant, `$2` ids, `$3` patterns or names),
-- and what is found by their numbers or names their ids.
create or replace function erase(p_tenant int, p_table text, p_where text, p_ids uuid[],
                                 p_texts text[])
returns table (name text, gone bigint)
language plpgsql as $$
declare
  v_ids uuid[];
  v_numbers bigint[];
  v_number text := (select min(n.number) from numbered_parts() n where n.owner = p_table);
  v_has_id boolean := exists (select from table_columns() c where c.name = p_table
                                and c.col = 'id' and c.type = 'uuid');
  p record;
begin
  if p_table = 'memory' then
    name := 'posting';
    gone := erase_words(p_tenant, p_where, p_ids, p_texts);
    return next;
  end if;
  execute format(
    'with gone as (delete from %I x where x.tenant = $1 and (%s) returning %s as id, %s as number)'
    ' select count(*), array_agg(id), array_agg(number) from gone',
    p_table, p_where, case when v_has_id then 'x.id' else 'null::uuid' end,
    coalesce('x.' || quote_ident(v_number), 'null::bigint'))
  into gone, v_ids, v_numbers using p_tenant, p_ids, p_texts;
  if gone = 0 then return; end if;
  name := p_table;
  return next;
  for p in select n.part, n.col from numbered_parts() n
           where n.owner = p_table and n.part <> 'posting' loop
    execute format('delete from %I x where x.tenant = $1 and x.%I = any($2)', p.part, p.col)
      using p_tenant, v_numbers;
    get diagnostics gone = row_count;
    name := p.part;
    return next;
  end loop;
  if v_has_id then
    return query select * from erase_named(p_tenant, v_ids);
  end if;
end $$;

-- Deletes up to p_limit memories, else turns, else sessions, of the scopes that the patterns cover,
-- else rows of each other table of them and, where it is named, of the project. Nothing left: no row.
create or replace function scope_sweep(p_tenant int, p_patterns text[], p_project text, p_limit int)
returns table (name text, gone bigint)
language plpgsql as $$
declare
  v_ids uuid[];
  v_whose text;
  v_texts text[];
  t record;
begin
  perform enter(p_tenant);
  v_ids := array(select m.id from memory m where m.tenant = p_tenant and covers(p_patterns, m.scope)
                 order by m.id limit p_limit for update);
  if cardinality(v_ids) > 0 then
    return query select * from erase(p_tenant, 'memory', 'x.id = any($2)', v_ids, null);
    return query select * from erase_quotes(p_tenant, v_ids);
    return;
  end if;
  v_ids := array(select u.id from turn u join session s on s.tenant = p_tenant and s.id = u.session
                 where u.tenant = p_tenant and covers(p_patterns, s.scope) limit p_limit);
  if cardinality(v_ids) > 0 then
    return query select * from erase(p_tenant, 'turn', 'x.id = any($2)', v_ids, null);
    return;
  end if;
  v_ids := array(select s.id from session s
                 where s.tenant = p_tenant and covers(p_patterns, s.scope) limit p_limit);
  if cardinality(v_ids) > 0 then
    return query select * from erase(p_tenant, 'session', 'x.id = any($2)', v_ids, null);
    return query select * from erase_quotes(p_tenant, v_ids);
    return;
  end if;
  for t in select k.name as held, k.way from table_ways() k order by k.name loop
    v_whose := case
      when t.way = 'scope' then 'covers($3, y.scope)'
      when p_project is not null and t.way in ('ids', 'project') and exists (
        select from table_columns() c where c.name = t.held and c.col = 'project')
      then 'y.project = any($3)' end;
    v_texts := case when t.way = 'scope' then p_patterns else array[p_project] end;
    continue when v_whose is null;
    -- A tenant's rows lie in one partition, so that their place in it tells them apart.
    return query select * from erase(p_tenant, t.held, format(
      'x.ctid = any(array(select y.ctid from %I y where y.tenant = $1 and %s limit %s))',
      t.held, v_whose, p_limit), null, v_texts);
  end loop;
  delete from outbox x where x.tenant = p_tenant and covers(p_patterns, x.payload ->> 'scope');
  get diagnostics gone = row_count;
  if gone > 0 then name := 'outbox'; return next; end if;
end $$;
