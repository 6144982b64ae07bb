-- What reads, writes and deletes postings does so in the narrow ones alone from here on. Those of
-- before are a view of them, of the same columns: services of the version before go on with it.

-- Who writes words has locked its memory or session before: it waits there, for whoever waited for the
-- postings would go on with tables that are no more.
lock table memory, session in exclusive mode;
lock table posting, turn_posting in access exclusive mode;

-- What was copied after it went goes again, unless it came back.
do $$
declare
  t record;
begin
  for t in select id from tenant_names() loop
    perform enter(t.id);
    delete from posting_entry e using posting_gone g
    where g.tenant = t.id and g.entries = 'posting_entry' and e.tenant = t.id
      and e.term = (g.term >> 32)::int and e.entry = posted(g.doc, g.tf, g.len)
      and not exists (select from posting p where p.tenant = t.id and p.term = g.term
                        and p.doc = g.doc and (p.tf, p.len) = (g.tf, g.len));
    delete from turn_posting_entry e using posting_gone g
    where g.tenant = t.id and g.entries = 'turn_posting_entry' and e.tenant = t.id
      and e.term = (g.term >> 32)::int and e.entry = posted(g.doc, g.tf, g.len)
      and not exists (select from turn_posting p where p.tenant = t.id and p.term = g.term
                        and p.doc = g.doc and (p.tf, p.len) = (g.tf, g.len));
  end loop;
  perform set_config('reverie.tenant', '', true);
end $$;

-- A lexeme's number: 32 bits of its hash, so that no dictionary is written.
create or replace function term_no(lexeme text) returns bigint
language sql immutable parallel safe return hashtextextended(lexeme, 0) >> 32;

-- Adds the words of one memory to the postings.
create or replace function index_words(p_tenant int, p_doc bigint, p_words tsvector, p_len int)
returns void
language sql volatile
begin atomic
  insert into posting_entry (tenant, term, entry)
  select p_tenant, term_no(w.lexeme)::int, posted(p_doc, cardinality(w.positions), p_len)
  from unnest(p_words) w
  on conflict do nothing;
end;

-- Removes the words of a memory from the postings; `p_words` as they were posted.
create or replace function drop_words(p_tenant int, p_doc bigint, p_words tsvector) returns void
language sql volatile
begin atomic
  delete from posting_entry p where p.tenant = p_tenant
    and p.entry between p_doc << 28 and (p_doc << 28) | 268435455
    and p.term = any (array(select term_no(w.lexeme)::int from unnest(p_words) w));
end;

-- Deletes the postings of memories by a condition on `x`, as `erase` takes one. The bounds of a
-- document's entries are reckoned beforehand: what is reckoned of a joined row may leak, and is no
-- condition of an index under row-level security, so that all postings of a term would be read.
create or replace function erase_words(p_tenant int, p_where text, p_ids uuid[], p_texts text[])
returns bigint
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_terms int[];
  v_first bigint[];
  v_last bigint[];
  n bigint;
begin
  execute format(
    'select array_agg(term_no(w.lexeme)::int), array_agg(x.doc << 28),'
    ' array_agg((x.doc << 28) | 268435455)'
    ' from memory x cross join lateral unnest(x.words) w where x.tenant = $1 and (%s)', p_where)
  into v_terms, v_first, v_last using p_tenant, p_ids, p_texts;
  delete from posting_entry p using unnest(v_terms, v_first, v_last) k (term, first, last)
  where p.tenant = p_tenant and p.term = k.term and p.entry >= k.first and p.entry <= k.last;
  get diagnostics n = row_count;
  return n;
end $$;

-- Puts the words of memories in their place ({id: text}), where they differ. Answers how many did.
create or replace function reindex_words(p_tenant int, p_texts jsonb) returns int
language plpgsql as $$
declare
  m memory;
  v_words tsvector;
  v_count int := 0;
begin
  perform enter(p_tenant);
  for m in
    select k.* from memory k
    where k.tenant = p_tenant and k.id in (select t::uuid from jsonb_object_keys(p_texts) t)
      and k.status <> 'deleted' and k.merged_into is null
    order by k.id for update
  loop
    v_words := to_tsvector('english', p_texts ->> m.id::text);
    if v_words <> m.words or m.terms <> word_count(v_words) then
      update memory k set words = v_words, terms = word_count(v_words)
      where k.tenant = p_tenant and k.id = m.id;
      v_count := v_count + 1;
    end if;
    -- Counts are part of the key: other ones of the same words go.
    delete from posting_entry p
    using (select distinct term_no(w.lexeme)::int as term from unnest(v_words) w) s
    where p.tenant = p_tenant and p.term = s.term
      and p.entry between m.doc << 28 and (m.doc << 28) | 268435455
      and p.entry not in (select posted(m.doc, cardinality(w.positions), word_count(v_words))
                          from unnest(v_words) w where term_no(w.lexeme) = p.term);
    perform index_words(p_tenant, m.doc, v_words, word_count(v_words));
  end loop;
  return v_count;
end $$;

-- The same for turns, which keep no words of their own: what is not among them is removed.
create or replace function reindex_turns(p_tenant int, p_texts jsonb) returns void
language plpgsql as $$
begin
  perform enter(p_tenant);
  with these as materialized (
    select t.id, t.doc, to_tsvector('english', p_texts ->> t.id::text) as words
    from turn t
    where t.tenant = p_tenant and t.id in (select k::uuid from jsonb_object_keys(p_texts) k)
  ), said as materialized (
    select term_no(w.lexeme)::int as term,
           posted(t.doc, cardinality(w.positions), word_count(t.words)) as entry
    from these t cross join lateral unnest(t.words) w
  ), counted as (
    update turn t set terms = word_count(k.words)
    from these k where t.tenant = p_tenant and t.id = k.id and t.terms <> word_count(k.words)
  ), gone as (
    delete from turn_posting_entry p
    where p.tenant = p_tenant and p.entry >> 28 in (select k.doc from these k)
      and not exists (select from said s where s.term = p.term and s.entry = p.entry)
  )
  insert into turn_posting_entry (tenant, term, entry)
  select p_tenant, s.term, s.entry from said s
  on conflict do nothing;
end $$;

-- Turns come with postings of their own. As before but for these.
create or replace function append_turns(p_tenant int, p_session uuid, p_turns jsonb, p_limits jsonb)
returns jsonb
language plpgsql as $$
declare
  v_session session;
  v_accepted int;
  v_segments int;
  v_chars bigint;
  v_due text;
begin
  perform enter(p_tenant);
  select s.* into v_session from session s
  where s.tenant = p_tenant and s.id = p_session for update;
  if not found then
    return jsonb_build_object('problem', 'not_found');
  end if;
  with incoming as (
    select i.*, row_number() over (partition by i.external_id order by i.place) as copy
    from rows from (jsonb_to_recordset(p_turns) as (
      id uuid, role text, content text, words text, tool text, external_id text, at timestamptz))
      with ordinality as i (id, role, content, words, tool, external_id, at, place)
  ), fresh as (
    select i.*, to_tsvector('english', i.words) as lexemes,
           row_number() over (order by i.place) as nth
    from incoming i
    where i.external_id is null or (i.copy = 1 and not exists (
      select from turn t where t.tenant = p_tenant and t.session = p_session
        and t.external_id = i.external_id))
  ), stored as (
    insert into turn (tenant, id, session, ord, role, content, tool, external_id, at, terms)
    select p_tenant, f.id, p_session, v_session.turns + f.nth - 1, f.role, f.content, f.tool,
           f.external_id, coalesce(f.at, clock_timestamp()), word_count(f.lexemes)
    from fresh f
    returning id, doc, terms, role, length(content) as chars
  ), posted as (
    insert into turn_posting_entry (tenant, term, entry)
    select p_tenant, term_no(w.lexeme)::int, posted(s.doc, cardinality(w.positions), s.terms)
    from stored s join fresh f using (id) cross join lateral unnest(f.lexemes) w
    on conflict do nothing
  )
  select count(*), count(*) filter (where role = 'user'), coalesce(sum(chars), 0)
  into v_accepted, v_segments, v_chars from stored;
  if v_accepted > 0 then
    update session s
    set turns = s.turns + v_accepted, pending = s.pending + v_accepted,
        pending_segments = s.pending_segments + v_segments,
        pending_chars = s.pending_chars + v_chars, appended = clock_timestamp(),
        fresh_turns = s.fresh_turns + v_accepted, fresh_segments = s.fresh_segments + v_segments,
        fresh_chars = s.fresh_chars + v_chars,
        fresh_since = coalesce(s.fresh_since, clock_timestamp())
    where s.tenant = p_tenant and s.id = p_session;
    if not exists (select from dream_job d where d.tenant = p_tenant and d.scope = v_session.scope
                     and d.parked is null and (d.lease_until is null or d.again)) then
      v_due := dream_threshold(p_tenant, v_session.scope, p_limits);
    end if;
  end if;
  return jsonb_build_object(
    'accepted', v_accepted,
    'duplicates', jsonb_array_length(p_turns) - v_accepted,
    'scope', v_session.scope,
    'pending', v_session.pending + v_accepted,
    'pending_chars', v_session.pending_chars + v_chars,
    'due', v_due);
end $$;

create or replace function carry_turns(p_tenant int, p_rows jsonb, p_agent text, p_writes text[])
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
    insert into turn_posting_entry (tenant, term, entry)
    select p_tenant, term_no(w.lexeme)::int, posted(t.doc, cardinality(w.positions), t.terms)
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

-- As before, and narrow postings are found by the number in them.
create or replace function table_ways() returns table (name text, way text)
language sql stable
begin atomic
  select c.name, case
    when c.name in ('api_key', 'vault_epoch', 'llm_day', 'audit') then 'never'
    when c.name in ('outbox', 'idempotency', 'recall_trace') then 'quotes'
    when bool_or(c.col = 'scope' and c.type = 'text') then 'scope'
    when c.name in ('posting_entry', 'turn_posting_entry') then 'number'
    when c.name in (select n.part from numbered_parts() n) then 'number'
    when bool_or(c.col <> 'id' and c.type in ('uuid', 'uuid[]')) then 'ids'
    when bool_or(c.col = 'project') then 'project' end
  from table_columns() c group by c.name;
end;

drop table posting, turn_posting, posting_gone;
drop function postings_changed();

create view posting with (security_invoker = true) as
select tenant, term, entry >> 28 as doc, ((entry >> 20) & 255)::smallint as tf,
       (entry & 1048575)::int as len
from posting_entry;
create view turn_posting with (security_invoker = true) as
select tenant, term, entry >> 28 as doc, ((entry >> 20) & 255)::smallint as tf,
       (entry & 1048575)::int as len
from turn_posting_entry;
grant select, delete on posting, turn_posting to reverie_app;
grant select on posting, turn_posting to reverie_read;
