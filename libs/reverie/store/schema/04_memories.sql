-- Memories and the rows that belong to each: tags, source turns, versions, uses.

-- The moment of a change: the given one (null: now), but after p_known_from, when what it ends
-- began; so also where the clock stepped back. It is not when the transaction began, which may have
-- waited for its locks while others changed the row.
create function next_moment(p_at timestamptz, p_known_from timestamptz) returns timestamptz
language sql volatile
return greatest(coalesce(p_at, clock_timestamp()), p_known_from + interval '1 microsecond');

-- A document number for the postings, in place of the longer uuid.
create sequence memory_doc;
grant usage on sequence memory_doc to reverie_app;

-- A memory as it is now; file and entity nodes of the graph are memories too. Its past is in
-- memory_version.
create table memory (
  tenant int not null,
  id uuid not null,
  doc bigint not null default nextval('memory_doc'),
  scope text not null,
  kind text not null,
  tier text not null,
  status text not null default 'active'
    check (status in ('active', 'superseded', 'archived', 'deleted')),
  key text,
  version int not null default 1,
  -- The version up to which chunks, vectors and edges were derived; lower than `version`: to be done.
  enriched_version int not null default 0,
  -- The version up to which edges and comparisons came with an imported file.
  imported_version int,
  content text not null,
  summary text,
  hash bytea not null,
  -- The lexemes, and how many words there are.
  words tsvector not null,
  terms int not null,
  confidence real not null check (confidence between 0 and 1),
  pinned boolean not null default false,
  session uuid,
  agent text,
  -- Who wrote it first: the agent, or else the key.
  actor text,
  source text not null,
  git jsonb,
  metadata jsonb not null default '{}' check (jsonb_typeof(metadata) = 'object'),
  valid_from timestamptz,
  valid_to timestamptz,
  superseded_by uuid,
  merged_into uuid,
  created timestamptz not null default clock_timestamp(),
  updated timestamptz not null default clock_timestamp(),
  -- Since when this version is known; earlier versions are in memory_version.
  known_from timestamptz not null default clock_timestamp(),
  -- When the content changed, was stated again, or its confidence rose; null: not since it was created.
  confirmed timestamptz,
  -- When somebody last said that it still holds: earlier commits no longer put it in doubt.
  checked timestamptz,
  short text generated always as (right(id::text, 8)) stored,
  primary key (tenant, id)
) partition by hash (tenant);
create unique index memory_key on memory (tenant, scope, key)
  where status = 'active' and key is not null;
create unique index memory_hash on memory (tenant, scope, hash, coalesce(key, ''))
  where status = 'active';
create unique index memory_doc_no on memory (tenant, doc);
create index memory_scope on memory (tenant, scope, id desc);
create index memory_kind on memory (tenant, kind, id desc);
create index memory_short on memory (tenant, short);
create index memory_terms on memory (tenant, terms) where terms > 0;
create index memory_pinned on memory (tenant, id) where pinned;
-- Those of kinds that are given at session start only if they are hot, and those that use has moved.
create index memory_hot on memory (tenant, id)
  where tier = 'hot' and kind in ('bug', 'spec', 'skill', 'session', 'reference', 'historical');
create index memory_moved on memory (tenant, id) where metadata ->> 'tier_by' = 'use';
create index memory_session on memory (tenant, session, created, id) where session is not null;
create index memory_unenriched on memory (tenant, id) where enriched_version < version;
create index memory_merged on memory (tenant, merged_into) where merged_into is not null;
create index memory_successor on memory (tenant, superseded_by) where superseded_by is not null;
-- Changes of a scope since its summary was written: what is active, and what no longer is.
create index memory_changed on memory (tenant, scope, updated) where status = 'active';
create index memory_gone on memory (tenant, scope, updated)
  where status in ('superseded', 'archived', 'deleted');
-- How often a key was written, superseded memories included.
create index memory_key_written on memory (tenant, scope, key) where key is not null;
create index memory_learned on memory (tenant, key text_pattern_ops, id)
  where key like 'learn:%' and status = 'active';
create index memory_entity on memory (tenant, key) where kind = 'entity' and status = 'active';
-- Memories that were committed to a repository, which is evidence for a convention.
create index memory_committed on memory (tenant, id)
  where git ->> 'commit' is not null or source = 'agent_file';
call partition_by_tenant('memory');
call protect_tenant_table('memory');
call open_to_system('memory', 'select');

-- Tags as rows, because an array operator would not use an index under row-level security.
create table memory_tag (
  tenant int not null,
  tag text not null,
  memory uuid not null,
  primary key (tenant, memory, tag)
) partition by hash (tenant);
create index memory_tag_tag on memory_tag (tenant, tag, memory);
call partition_by_tenant('memory_tag');
call protect_tenant_table('memory_tag');

-- Pictures that a memory carries, by the SHA-256 of their bytes. Each memory has its own, so that rights and
-- forgetting are the memory's; what is written in them stands in its content.
create table picture (
  tenant int not null,
  memory uuid not null,
  hash bytea not null,
  media_type text not null,
  data bytea not null,
  created timestamptz not null default now(),
  primary key (tenant, memory, hash)
) partition by hash (tenant);
call partition_by_tenant('picture');
call protect_tenant_table('picture');

-- The turns that a memory was made of.
create table memory_turn (
  tenant int not null,
  memory uuid not null,
  turn uuid not null,
  primary key (tenant, memory, turn)
) partition by hash (tenant);
create index memory_turn_turn on memory_turn (tenant, turn);
call partition_by_tenant('memory_turn');
call protect_tenant_table('memory_turn');

-- What a memory was before each change: `state` holds its other columns, its tags and its task.
-- `actor` and `reason` describe the change that ended this version.
create table memory_version (
  tenant int not null,
  memory uuid not null,
  version int not null,
  content text not null,
  status text not null,
  actor text,
  reason text not null,
  known_from timestamptz not null,
  known_to timestamptz not null,
  state jsonb not null default '{}',
  words tsvector not null default '',
  primary key (tenant, memory, version)
) partition by hash (tenant);
create index memory_version_known on memory_version (tenant, known_from, known_to);
call partition_by_tenant('memory_version');
call protect_tenant_table('memory_version');

-- How often a memory was used and how much that boosts it, apart from the wide row. Ranking reads
-- the values of the last full hour, so that a repeated question has the same order.
create table memory_use (
  tenant int not null,
  memory uuid not null,
  count int not null default 0,
  last timestamptz,
  boost real not null default 0,
  hour timestamptz not null default date_trunc('hour', now()),
  last_at_hour_start timestamptz,
  boost_at_hour_start real not null default 0,
  primary key (tenant, memory)
) partition by hash (tenant);
call partition_by_tenant('memory_use');
call protect_tenant_table('memory_use');

-- Which session (or which key in which hour) has used which memory already: a use counts once.
create table memory_use_session (
  tenant int not null,
  used_by text not null,
  memory uuid not null,
  at timestamptz not null default now(),
  primary key (tenant, used_by, memory)
) partition by hash (tenant);
create index memory_use_session_at on memory_use_session (tenant, at);
call partition_by_tenant('memory_use_session');
call protect_tenant_table('memory_use_session');

-- How often a memory was stated in each session, which is the evidence for a convention; the nil
-- uuid stands for no session.
create table session_utterance (
  tenant int not null,
  memory uuid not null,
  session uuid not null,
  times int not null default 1,
  first timestamptz not null default now(),
  last timestamptz not null default now(),
  primary key (tenant, memory, session)
) partition by hash (tenant);
call partition_by_tenant('session_utterance');
call protect_tenant_table('session_utterance');

-- Confirms a memory when an update changes its content or raises its confidence. Stale marks,
-- renames and supersedes do not confirm.
create function stamp_confirmed() returns trigger
language plpgsql as $$
begin
  if new.hash <> old.hash or new.confidence > old.confidence then
    new.confirmed := clock_timestamp();
  end if;
  return new;
end $$;
create trigger memory_confirmed before update of confidence, hash on memory
  for each row execute function stamp_confirmed();

-- Lets a version begin at the moment at which save_version() ended the one before, so that reading
-- as of a moment finds exactly one.
create function begin_version() returns trigger
language plpgsql as $$
begin
  for attempt in 1..2 loop
    select v.known_to into new.known_from from memory_version v
    where v.tenant = old.tenant and v.memory = old.id and v.version = old.version;
    exit when found;
    perform save_version(old.tenant, old, null, 'changed');
  end loop;
  if new.updated = old.updated then new.updated := new.known_from; end if;
  return new;
end $$;
create trigger memory_begin_version before update of version on memory
  for each row when (new.version <> old.version) execute function begin_version();

-- Adds the tags and source turns of an item to its memory, and counts one more statement of it.
create function add_memory_details(p_tenant int, p_memory uuid, p_item jsonb) returns void
language sql volatile
begin atomic
  insert into memory_tag (tenant, tag, memory)
  select p_tenant, t, p_memory from jsonb_array_elements_text(coalesce(p_item -> 'tags', '[]')) t
  on conflict do nothing;
  insert into memory_turn (tenant, memory, turn)
  select p_tenant, p_memory, t::uuid
  from jsonb_array_elements_text(coalesce(p_item -> 'turns', '[]')) t
  on conflict do nothing;
  insert into session_utterance as s (tenant, memory, session)
  select p_tenant, p_memory,
         coalesce((p_item ->> 'session')::uuid, '00000000-0000-0000-0000-000000000000')
  where p_item ? 'hash'
  on conflict (tenant, memory, session) do update set times = s.times + 1, last = now();
end;

-- Counts each use once per reader, and boosts the used memories and, less, their strongest
-- neighbours. A session that was deleted uses nothing. Returns the number of new uses.
create function record_memory_uses(
  p_tenant int, p_by text[], p_memories uuid[], p_reads text[], p_boost real,
  p_neighbour_boost real, p_fan_out int
) returns int
language plpgsql as $$
declare
  v_by text[];
  v_memories uuid[];
begin
  perform set_tenant(p_tenant);
  with new_use as (
    insert into memory_use_session (tenant, used_by, memory)
    select p_tenant, g.by, m.id
    from unnest(p_by, p_memories) g (by, memory)
    join memory m on m.tenant = p_tenant and m.id = g.memory
    where scope_matches(p_reads, m.scope) and m.status <> 'deleted'
      and (not starts_with(g.by, 'session ') or exists (
        select from session s where s.tenant = p_tenant and s.id = substr(g.by, 9)::uuid))
    order by m.id, g.by
    on conflict do nothing
    returning used_by, memory
  ) select array_agg(used_by), array_agg(memory) into v_by, v_memories from new_use;
  if v_memories is null then return 0; end if;
  insert into memory_use as u (tenant, memory, count, last, boost)
  select p_tenant, b.memory, sum(b.used), max(b.at), sum(b.boost)
  from (
    select x.by, x.memory, max(x.used) as used, max(x.at) as at, max(x.boost) as boost
    from (
      select f.by, f.memory, 1 as used, now() as at, p_boost as boost
      from unnest(v_by, v_memories) f (by, memory)
      union all
      select f.by, n.other, 0, null, p_neighbour_boost
      from unnest(v_by, v_memories) f (by, memory) cross join lateral (
        select e.other from (
          select dst as other, weight from edge
          where tenant = p_tenant and src = f.memory and known_to is null and kind <> 'touches'
          union all
          select src, weight from edge
          where tenant = p_tenant and dst = f.memory and known_to is null and kind <> 'touches'
        ) e join memory m on m.tenant = p_tenant and m.id = e.other
        where m.status = 'active' and scope_matches(p_reads, m.scope)
        order by e.weight desc, e.other limit p_fan_out
      ) n
    ) x
    group by x.by, x.memory
  ) b
  group by b.memory order by b.memory
  on conflict (tenant, memory) do update set
    count = u.count + excluded.count,
    last = coalesce(excluded.last, u.last),
    boost = least(1, u.boost + excluded.boost),
    last_at_hour_start = case when u.hour < excluded.hour then u.last else u.last_at_hour_start end,
    boost_at_hour_start = case when u.hour < excluded.hour then u.boost else u.boost_at_hour_start end,
    hour = excluded.hour;
  return cardinality(v_memories);
end $$;
