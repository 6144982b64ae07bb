-- Postings carry BM25; a narrow table per embedding model carries meaning.

create table posting (
  tenant int not null,
  term bigint not null,
  doc bigint not null,
  tf smallint not null,
  len int not null,
  primary key (tenant, term, doc) include (tf, len)
) partition by hash (tenant);

create table turn_posting (
  tenant int not null,
  term bigint not null,
  doc bigint not null,
  tf smallint not null,
  len int not null,
  primary key (tenant, term, doc) include (tf, len)
) partition by hash (tenant);

-- A lexeme's number: 64 bits of its hash, so that no dictionary is written.
create function term_no(lexeme text) returns bigint
language sql immutable parallel safe return hashtextextended(lexeme, 0);

-- Occurrences in a document: what BM25 calls its length.
create function word_count(words tsvector) returns int
language sql immutable parallel safe
return (select coalesce(sum(cardinality(w.positions)), 0)::int from unnest(words) w);

create sequence chunk_no;

create table chunk (
  tenant int not null,
  no bigint not null default nextval('chunk_no'),
  memory uuid not null,
  ord int not null,
  start int not null,
  stop int not null,
  hash bytea not null,
  primary key (tenant, no)
) partition by hash (tenant);
create unique index chunk_memory on chunk (tenant, memory, ord);
create index chunk_hash on chunk (tenant, hash);

create table vec_bge_small_en_v1_5 (
  tenant int not null,
  chunk bigint not null,
  v halfvec(384) not null,
  primary key (tenant, chunk)
) partition by hash (tenant);
alter table vec_bge_small_en_v1_5 alter column v set storage plain;
create index vec_bge_small_en_v1_5_hnsw on vec_bge_small_en_v1_5 using hnsw (v halfvec_cosine_ops);
