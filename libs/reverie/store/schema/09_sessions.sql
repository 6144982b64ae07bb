-- Sessions, their turns, and what was given to each session.

-- A conversation of an agent. `pending_*` counts turns that no dream has digested; `new_*` counts
-- what came since a worker last looked, so that a topic left open is not counted again. Each user
-- message begins a segment.
create table session (
  tenant int not null,
  id uuid not null,
  external_id text,
  agent text not null,
  user_name text,
  project text,
  branch text,
  scope text not null,
  turns int not null default 0,
  pending int not null default 0,
  pending_segments int not null default 0,
  pending_chars bigint not null default 0,
  new_turns int not null default 0,
  new_segments int not null default 0,
  new_chars bigint not null default 0,
  new_since timestamptz,
  appended timestamptz not null default now(),
  started timestamptz not null default now(),
  ended timestamptz,
  summary text,
  -- The group of agents that it joined, which share the scope session/<group>.
  group_name text,
  -- The scopes of its user and its agent that its dreams may write, because its key may.
  own_scopes text[] not null default '{}',
  primary key (tenant, id)
) partition by hash (tenant);
create unique index session_external on session (tenant, agent, external_id)
  where external_id is not null;
create index session_scope on session (tenant, scope, id) where pending > 0;
create index session_idle on session (appended) where pending > 0;
call partition_by_tenant('session');
call protect_tenant_table('session');
call open_to_system('session', 'select');

-- One message of a session; `run` is the dream that digested it. `doc` is its number in the
-- postings.
create sequence turn_doc;
grant usage on sequence turn_doc to reverie_app;
create table turn (
  tenant int not null,
  id uuid not null,
  session uuid not null,
  ordinal int not null,
  doc bigint not null default nextval('turn_doc'),
  role text not null check (role in ('user', 'assistant', 'tool', 'system')),
  content text not null,
  tool text,
  external_id text,
  at timestamptz not null,
  terms int not null,
  run uuid,
  output text,
  primary key (tenant, id)
) partition by hash (tenant);
create unique index turn_ord on turn (tenant, session, ordinal);
create unique index turn_external on turn (tenant, session, external_id)
  where external_id is not null;
create unique index turn_doc_no on turn (tenant, doc);
create index turn_undigested on turn (tenant, session, ordinal) where run is null;
call partition_by_tenant('turn');
call protect_tenant_table('turn');

-- The memories that a session was given: in parallel lists their ids, a checksum of what each said
-- then (`marks`), weights, and the last turn at which each was in the set. Deleted with any of
-- them. `version` begins at the time in microseconds, so that no version comes twice, even after a
-- deletion.
create table active_memory_set (
  tenant int not null,
  session uuid not null,
  version bigint not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
  turn int not null default 0,
  members uuid[] not null,
  marks int[] not null,
  weights real[] not null,
  seen int[] not null,
  updated timestamptz not null default now(),
  primary key (tenant, session),
  check (cardinality(members) <= 1000)
) partition by hash (tenant);
create index active_memory_set_updated on active_memory_set (tenant, updated);
call partition_by_tenant('active_memory_set');
call protect_tenant_table('active_memory_set');

-- When a session's turn was last checked for corrections of memories, and the hash of that turn.
create table session_correction (
  tenant int not null,
  session uuid not null,
  at timestamptz not null default now(),
  turn_hash bytea not null,
  primary key (tenant, session)
);
call protect_tenant_table('session_correction');

-- Appends turns once, with their postings, and counts them. Returns {accepted, duplicates, scope,
-- pending, pending_chars, due} or {problem: not_found}; `due` says why the scope should dream, and
-- is null while it need not or while a dream is already requested.
create function append_turns(
  p_tenant int, p_session uuid, p_turns jsonb, p_limits jsonb, p_writes text[]
) returns jsonb
language plpgsql as $$
declare
  v_session session;
  v_accepted int;
  v_segments int;
  v_chars bigint;
  v_due text;
begin
  perform set_tenant(p_tenant);
  select s.* into v_session from session s
  where s.tenant = p_tenant and s.id = p_session for update;
  if not found then
    return jsonb_build_object('problem', 'not_found');
  end if;
  -- Its dreams may write only what everybody may write who added to it.
  if exists (select from unnest(v_session.own_scopes) o where not scope_matches(p_writes, o)) then
    update session s
    set own_scopes = array(select o from unnest(s.own_scopes) o where scope_matches(p_writes, o))
    where s.tenant = p_tenant and s.id = p_session;
  end if;
  with incoming as (
    select i.*, row_number() over (partition by i.external_id order by i.place) as copy
    from rows from (jsonb_to_recordset(p_turns) as (
      id uuid, role text, content text, words text, tool text, external_id text, at timestamptz,
      output text))
      with ordinality as i (id, role, content, words, tool, external_id, at, output, place)
  ), fresh as (
    select i.*, to_tsvector('english', i.words) as lexemes,
           row_number() over (order by i.place) as nth
    from incoming i
    where i.external_id is null or (i.copy = 1 and not exists (
      select from turn t where t.tenant = p_tenant and t.session = p_session
        and t.external_id = i.external_id))
  ), stored as (
    insert into turn (tenant, id, session, ordinal, role, content, tool, external_id, at, terms,
                      output)
    select p_tenant, f.id, p_session, v_session.turns + f.nth - 1, f.role, f.content, f.tool,
           f.external_id, coalesce(f.at, clock_timestamp()), word_count(f.lexemes), f.output
    from fresh f
    returning id, doc, terms, role, length(content) as chars
  ), posted as (
    insert into turn_posting_entry (tenant, term, entry)
    select p_tenant, term_hash(w.lexeme)::int, pack_posting(s.doc, cardinality(w.positions), s.terms)
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
        new_turns = s.new_turns + v_accepted, new_segments = s.new_segments + v_segments,
        new_chars = s.new_chars + v_chars,
        new_since = coalesce(s.new_since, clock_timestamp())
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
