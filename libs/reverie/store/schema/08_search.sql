-- What search reads: postings for words, chunks with vectors for meaning. All of it is derived.

-- The number of a lexeme: 32 bits of its hash, so that no dictionary has to be written.
create function term_hash(lexeme text) returns bigint
language sql immutable parallel safe return hashtextextended(lexeme, 0) >> 32;

-- The number of word occurrences: what BM25 calls the length of a document.
create function word_count(words tsvector) returns int
language sql immutable parallel safe
return (select coalesce(sum(cardinality(w.positions)), 0)::int from unnest(words) w);

-- A posting in one number: document (35 bits), occurrences of the term (8: a tsvector holds at most
-- 255 positions) and document length (20). The entries of a term are thus in the order of
-- documents.
create function pack_posting(p_doc bigint, p_tf int, p_len int) returns bigint
language sql immutable parallel safe
return (p_doc << 28) | (least(p_tf, 255)::bigint << 20) | least(p_len, 1048575);

-- Which memories contain a term: the entries are packed by pack_posting(), and the key holds all of
-- it.
create table posting_entry (
  tenant int not null,
  term int not null,
  entry bigint not null,
  primary key (tenant, term, entry)
) partition by hash (tenant);
call partition_by_tenant('posting_entry');
call protect_tenant_table('posting_entry');

-- The same for turns, which are found before any dream has digested them.
create table turn_posting_entry (
  tenant int not null,
  term int not null,
  entry bigint not null,
  primary key (tenant, term, entry)
) partition by hash (tenant);
call partition_by_tenant('turn_posting_entry');
call protect_tenant_table('turn_posting_entry');

-- The postings of memories, unpacked.
create view posting with (security_invoker = true) as
select tenant, term, entry >> 28 as doc, ((entry >> 20) & 255)::smallint as tf,
       (entry & 1048575)::int as len
from posting_entry;
grant select, delete on posting to reverie_app;
grant select on posting to reverie_read;

-- The postings of turns, unpacked.
create view turn_posting with (security_invoker = true) as
select tenant, term, entry >> 28 as doc, ((entry >> 20) & 255)::smallint as tf,
       (entry & 1048575)::int as len
from turn_posting_entry;
grant select, delete on turn_posting to reverie_app;
grant select on turn_posting to reverie_read;

-- Passages of a memory that have a vector each: offsets into its content, and the hash of the
-- passage.
create sequence chunk_no;
grant usage on sequence chunk_no to reverie_app;
create table chunk (
  tenant int not null,
  no bigint not null default nextval('chunk_no'),
  memory uuid not null,
  ordinal int not null,
  start int not null,
  stop int not null,
  hash bytea not null,
  primary key (tenant, no)
) partition by hash (tenant);
create unique index chunk_memory on chunk (tenant, memory, ordinal);
create index chunk_hash on chunk (tenant, hash);
call partition_by_tenant('chunk');
call protect_tenant_table('chunk');

-- Weighted terms of chunks from a learned sparse model. They only rescore what was found otherwise,
-- so the primary key is their only index.
create table sparse_splade_tiny (
  tenant int not null,
  chunk bigint not null,
  v sparsevec(30522) not null,
  primary key (tenant, chunk)
) partition by hash (tenant);
call partition_by_tenant('sparse_splade_tiny');
call protect_tenant_table('sparse_splade_tiny');

-- Creates the vector table of an embedding model, where it is missing; for the owner of the schema.
-- Inserting into an HNSW index takes longer than all other derivation, so vectors are `indexed`
-- later and only in large tenants; the others are compared one by one.
create procedure create_vector_table(p_table text, p_dims int) language plpgsql as $$
begin
  if p_table !~ '^vec_[a-z0-9_]{1,58}$' then
    raise invalid_name using message = p_table;
  end if;
  if to_regclass(p_table) is not null then
    return;
  end if;
  execute format($table$
    create table %I (
      tenant int not null,
      chunk bigint not null,
      v halfvec(%s) not null,
      indexed boolean not null default false,
      primary key (tenant, chunk)
    ) partition by hash (tenant) $table$, p_table, p_dims);
  execute format('create index %I on %I using hnsw (v halfvec_cosine_ops) where indexed',
                 left(p_table, 58) || '_hnsw', p_table);
  execute format('create index %I on %I (tenant, chunk) where not indexed',
                 left(p_table, 57) || '_fresh', p_table);
  call partition_by_tenant(p_table::regclass);
  call protect_tenant_table(p_table::regclass);
end $$;
revoke all on procedure create_vector_table(text, int) from public;

-- The default model, and the one that ingest switches a tenant to whose memories are Chinese,
-- Japanese or Korean.
call create_vector_table('vec_bge_small_en_v1_5', 384);
alter table vec_bge_small_en_v1_5 alter column v set storage plain;
call create_vector_table('vec_multilingual_e5_small_q4_f5c3192d', 384);

-- Deletes what deleted chunks had: their weighted terms, and their vectors of other models than the
-- default one. Deleting a tenant empties every table anyway.
create function delete_chunk_vectors() returns trigger
language plpgsql as $$
declare
  v_tenant int;
  v_table text;
begin
  if current_setting('reverie.deleting_tenant', true) = 'on' then
    return null;
  end if;
  for v_tenant in select distinct d.tenant from deleted d loop
    delete from sparse_splade_tiny s using deleted d
    where s.tenant = v_tenant and d.tenant = v_tenant and s.chunk = d.no;
    for v_table in select m.value ->> 'vectors' from tenant t cross join lateral jsonb_each(t.models) m
                   where t.id = v_tenant loop
      execute format('delete from %I v using deleted d'
                     ' where v.tenant = $1 and d.tenant = $1 and v.chunk = d.no', v_table)
      using v_tenant;
    end loop;
  end loop;
  return null;
end $$;
create trigger chunk_vectors_deleted after delete on chunk
  referencing old table as deleted for each statement execute function delete_chunk_vectors();

-- Adds the words of one memory to the postings.
create function index_words(p_tenant int, p_doc bigint, p_words tsvector, p_len int) returns void
language sql volatile
begin atomic
  insert into posting_entry (tenant, term, entry)
  select p_tenant, term_hash(w.lexeme)::int, pack_posting(p_doc, cardinality(w.positions), p_len)
  from unnest(p_words) w
  on conflict do nothing;
end;

-- Removes the words of a memory from the postings; p_words must be as they were indexed.
create function unindex_words(p_tenant int, p_doc bigint, p_words tsvector) returns void
language sql volatile
begin atomic
  delete from posting_entry p where p.tenant = p_tenant
    and p.entry between p_doc << 28 and (p_doc << 28) | 268435455
    and p.term = any (array(select term_hash(w.lexeme)::int from unnest(p_words) w));
end;

-- Deletes all that search finds a memory by: postings, chunks and vectors.
create function delete_search_rows(p_tenant int, p_old memory) returns void
language plpgsql as $$
begin
  perform unindex_words(p_tenant, p_old.doc, p_old.words);
  delete from vec_bge_small_en_v1_5 v using chunk c
  where v.tenant = p_tenant and c.tenant = p_tenant and c.memory = p_old.id and v.chunk = c.no;
  delete from chunk c where c.tenant = p_tenant and c.memory = p_old.id;
end $$;

-- Deletes all that is derived from a forgotten memory, closes its edges and clears its stale marks.
create function delete_derived(p_tenant int, p_old memory) returns void
language plpgsql as $$
begin
  perform delete_search_rows(p_tenant, p_old);
  update edge e set known_to = next_moment(null, e.known_from)
  where e.tenant = p_tenant and p_old.id in (e.src, e.dst) and e.known_to is null;
  update stale_mark s set cleared = clock_timestamp()
  where s.tenant = p_tenant and s.memory = p_old.id and s.cleared is null;
end $$;

-- Puts the words of memories ({id: text}) and their postings in place, where they differ from the
-- text. Returns the number of memories that changed.
create function reindex_words(p_tenant int, p_texts jsonb) returns int
language plpgsql as $$
declare
  m memory;
  v_words tsvector;
  v_count int := 0;
begin
  perform set_tenant(p_tenant);
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
    -- An entry holds counts, so entries of the same words with other counts are deleted.
    delete from posting_entry p
    using (select distinct term_hash(w.lexeme)::int as term from unnest(v_words) w) s
    where p.tenant = p_tenant and p.term = s.term
      and p.entry between m.doc << 28 and (m.doc << 28) | 268435455
      and p.entry not in (select pack_posting(m.doc, cardinality(w.positions), word_count(v_words))
                          from unnest(v_words) w where term_hash(w.lexeme) = p.term);
    perform index_words(p_tenant, m.doc, v_words, word_count(v_words));
  end loop;
  return v_count;
end $$;

-- The same for turns, which do not store their words: postings that the texts do not give are
-- deleted.
create function reindex_turns(p_tenant int, p_texts jsonb) returns void
language plpgsql as $$
begin
  perform set_tenant(p_tenant);
  with these as materialized (
    select t.id, t.doc, to_tsvector('english', p_texts ->> t.id::text) as words
    from turn t
    where t.tenant = p_tenant and t.id in (select k::uuid from jsonb_object_keys(p_texts) k)
  ), said as materialized (
    select term_hash(w.lexeme)::int as term,
           pack_posting(t.doc, cardinality(w.positions), word_count(t.words)) as entry
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

-- How far a rebuild of derived rows came, so that an interrupted one continues.
create table reindex_progress (
  tenant int not null,
  part text not null,
  after uuid not null,
  primary key (tenant, part)
);
call protect_tenant_table('reindex_progress', p_readable => false);

-- How a recall came to its answer, for a short while. The question is text, so that redaction finds
-- it; `details` is the rest, compressed: ids and numbers only. `trace` is shared by all calls of a
-- request. `delivered_at`: when a hook confirmed that it wrote out what preflow gave.
create table recall_trace (
  tenant int not null,
  id uuid not null,
  trace uuid,
  at timestamptz not null,
  actor text not null,
  session uuid,
  agent text,
  scopes text[] not null,
  query text not null,
  request jsonb not null,
  details bytea not null,
  delivered_at timestamptz,
  primary key (tenant, id)
) partition by hash (tenant);
create index recall_trace_request on recall_trace (tenant, trace);
create index recall_trace_at on recall_trace (at);
call partition_by_tenant('recall_trace');
call protect_tenant_table('recall_trace');
call open_to_system('recall_trace', 'select, update, delete');
