"""Fills a database with one tenant of 40,000 memories and several small ones."""

from __future__ import annotations

import psycopg

from tests.support.store_setup import PATH

BIG = 40_000
SMALL = 200
VECTORS = 24_000

_MEMORIES = """
insert into memory (tenant, id, scope, kind, tier, key, enriched_version, content, hash, words,
                    terms, confidence, source, session, created)
select %(tenant)s, uuidv7(make_interval(secs => n - %(count)s)),
       'project/p' || n %% 20, (array['decision','bug','lesson','context'])[1 + n %% 4], 'warm',
       case when n %% 50 = 0 then 'key-' || n end, case when n %% 5000 = 0 then 0 else 1 end,
       w.text || repeat(' and what was learned of it', 6), sha256(n::text::bytea),
       to_tsvector('english', w.text), 10, 0.8, 'test',
       case when n %% 100 < 2 then lpad(to_hex(n / 100), 32, '0')::uuid end,
       now() - make_interval(secs => %(count)s - n)
from generate_series(1, %(count)s) n
cross join lateral (
  select string_agg('w' || floor(power(
    %(words)s::float8, ((n * 7919 + k * 104729) %% 10007) / 10007::float8))::int, ' ') as text
  from generate_series(1, 10) k
) w
"""

_REST = """
insert into posting_entry (tenant, term, entry)
select m.tenant, term_hash(w.lexeme)::int, pack_posting(m.doc, cardinality(w.positions), m.terms)
from memory m cross join lateral unnest(m.words) w where m.tenant = %(tenant)s
order by 1, 2, 3;

insert into memory_tag (tenant, tag, memory)
select tenant, 'tag' || doc %% 300, id from memory where tenant = %(tenant)s;

insert into edge (tenant, id, src, kind, dst)
select a.tenant, gen_random_uuid(), a.id, k.kind, b.id
from memory a join memory b on b.tenant = a.tenant and b.doc = a.doc - 7
cross join (values ('led_to'), ('relates_to')) k (kind)
where a.tenant = %(tenant)s;

insert into stale_mark (tenant, memory, commit, path, grade, score, change, subject,
                        committed_at, event)
select tenant, id, 'c0ffee', 'src/a.py', 'stale', 0.6, 'changed', 'Change a', now(),
       gen_random_uuid()
from memory where tenant = %(tenant)s and doc %% 1000 = 1;

insert into chunk (tenant, memory, ordinal, start, stop, hash)
select tenant, id, 0, 0, length(content), hash
from memory where tenant = %(tenant)s order by id desc limit %(vectors)s;

with base as materialized (
  select b, array_agg((random() - 0.5)::real)::halfvec(384) as v
  from generate_series(1, 200) b, generate_series(1, 384) d group by b
)
insert into vec_bge_small_en_v1_5 (tenant, chunk, v, indexed)
select c.tenant, c.no, x.v + y.v, c.n > 100
from (select tenant, no, row_number() over (order by no) as n from chunk
      where tenant = %(tenant)s) c
join base x on x.b = 1 + c.n %% 200 join base y on y.b = 1 + (c.n / 200) %% 200;

insert into session (tenant, id, agent, scope, turns, pending)
select tenant, session, 'agent', min(scope), 20, 20
from memory where tenant = %(tenant)s and session is not null group by tenant, session;

insert into turn (tenant, id, session, ordinal, role, content, at, terms, run)
select s.tenant, gen_random_uuid(), s.id, o, 'user', 'what was said', now(), 3,
       case when o < 15 then gen_random_uuid() end
from session s, generate_series(0, 19) o where s.tenant = %(tenant)s;

insert into outbox (tenant, id, subject, payload, headers, at)
select %(tenant)s, gen_random_uuid(), 'memory.x.remembered', '{}', '{}', now() - interval '1 hour'
from generate_series(1, %(vectors)s);
"""

_NEIGHBOURS = """
create temp table neighbour as
select %(big)s + n as tenant from generate_series(1000, 20000) n
where satisfies_hash_partition('memory'::regclass, (
        select count(*)::int from pg_inherits where inhparent = 'memory'::regclass), (
        select substring(tableoid::regclass::text from '[0-9]+$')::int from memory
        where tenant = %(big)s limit 1), %(big)s + n)
limit %(many)s;

insert into memory (tenant, id, scope, kind, tier, enriched_version, content, hash, words, terms,
                    confidence, source)
select tenant, gen_random_uuid(), 'global', 'lesson', 'warm', 1, 'small ' || n,
       sha256((tenant || ' ' || n)::text::bytea), '', 0, 0.8, 'test'
from neighbour cross join generate_series(1, 50) n;

insert into chunk (tenant, memory, ordinal, start, stop, hash)
select m.tenant, m.id, 0, 0, 1, m.hash from memory m join neighbour b on b.tenant = m.tenant;

insert into vec_bge_small_en_v1_5 (tenant, chunk, v)
select c.tenant, c.no, array_fill(1.0 / (1 + c.no %% 97)::real, '{384}')::real[]::halfvec(384)
from chunk c join neighbour b on b.tenant = c.tenant;
"""
NEIGHBOURS = 500
"""Tenants in the big one's partition, of 50 memories each: on average its tenants are small."""


def load(admin_url: str, tenant: int, count: int, vectors: int) -> None:
    """Fills a tenant with `count` memories and what belongs to them."""
    values = {"tenant": tenant, "count": count, "vectors": vectors, "words": count // 4}
    with psycopg.connect(admin_url, options=PATH) as connection:
        connection.execute(_MEMORIES, values)
        for statement in _REST.split(";\n")[:-1]:
            connection.execute(statement.encode(), values)


def load_all(admin_url: str, big: int, small: list[int]) -> None:
    """The big tenant and the small ones. The vector index is built afterwards, with few links."""
    with psycopg.connect(admin_url, options=PATH, autocommit=True) as connection:
        connection.execute("drop index vec_bge_small_en_v1_5_hnsw")
        for tenant in small:
            load(admin_url, tenant, SMALL, 50)
        load(admin_url, big, BIG, VECTORS)
        for statement in _NEIGHBOURS.split(";\n")[:-1]:
            connection.execute(statement.encode(), {"big": big, "many": NEIGHBOURS})
        connection.execute("set maintenance_work_mem = '128MB'")
        connection.execute(
            "create index vec_bge_small_en_v1_5_hnsw on vec_bge_small_en_v1_5"
            " using hnsw (v halfvec_cosine_ops) with (m = 4, ef_construction = 12) where indexed"
        )
        connection.execute("vacuum analyze")
