-- The engine: agents, groups, what was said in them, and turns as work items.

-- An agent that the engine runs: its model, persona, tools and limits.
create table engine_agent (
  tenant int not null,
  name text not null,
  spec jsonb not null,
  updated timestamptz not null default now(),
  primary key (tenant, name)
);
call protect_tenant_table('engine_agent', p_readable => false);

-- Several agents in one conversation. The first of them is the default one. What is said is also
-- appended to `session`, which dreams digest.
create table engine_group (
  tenant int not null,
  id uuid not null,
  name text not null,
  session uuid not null,
  scope text not null,
  project text,
  agents text[] not null,
  answers text not null check (answers in ('default', 'everyone')),
  created timestamptz not null default now(),
  primary key (tenant, id)
);
call protect_tenant_table('engine_group', p_readable => false);

-- What was said in a group, in the order of `no`. An agent's answer names its turn.
create table engine_message (
  tenant int not null,
  no bigint generated always as identity,
  id uuid not null,
  group_id uuid not null,
  scope text not null,
  author text not null,
  content text not null,
  images uuid[] not null default '{}',
  turn uuid,
  at timestamptz not null default clock_timestamp(),
  primary key (tenant, id)
);
create index engine_message_group on engine_message (tenant, group_id, no);
create unique index engine_message_turn on engine_message (tenant, turn) where turn is not null;
call protect_tenant_table('engine_message', p_readable => false);

-- An image of a message, which the message names by its id.
create table engine_image (
  tenant int not null,
  id uuid not null,
  group_id uuid not null,
  scope text not null,
  media_type text not null,
  data bytea not null,
  primary key (tenant, id)
);
call protect_tenant_table('engine_image', p_readable => false);

-- The turns that one message caused, in whatever number of steps, with the sealed key of its author,
-- which is deleted once none of them is open.
create table engine_chain (
  tenant int not null,
  id uuid not null,
  group_id uuid not null,
  sealed_key bytea,
  sealing_key_id text,
  turns int not null default 0,
  open int not null default 0,
  tokens bigint not null default 0,
  micro_usd bigint not null default 0,
  at timestamptz not null default clock_timestamp(),
  primary key (tenant, id)
);
call protect_tenant_table('engine_chain', p_readable => false);

-- One agent's turn. `seen` is the last message that it answers to. `messages` are those of the model,
-- from the first request of this turn, as they stood after the last step.
create sequence engine_epoch;
grant usage on sequence engine_epoch to reverie_app;
create table engine_turn (
  tenant int not null,
  id uuid not null,
  group_id uuid not null,
  scope text not null,
  chain uuid not null,
  parent uuid,
  depth int not null,
  agent text not null,
  mode text not null,
  task text,
  seen bigint not null,
  status text not null default 'queued'
    check (status in ('queued', 'running', 'waiting', 'done', 'failed', 'stopped')),
  epoch bigint not null default 0,
  lease_until timestamptz,
  worker text,
  attempts int not null default 0,
  stop_requested boolean not null default false,
  messages jsonb not null default '[]',
  approvals jsonb not null default '{}',
  calls text[] not null default '{}',
  requests int not null default 0,
  tokens bigint not null default 0,
  micro_usd bigint not null default 0,
  outcome text,
  error text,
  created timestamptz not null default clock_timestamp(),
  ended timestamptz,
  primary key (tenant, id)
);
create index engine_turn_group on engine_turn (tenant, group_id, created);
create index engine_turn_kept on engine_turn (created)
  where messages <> '[]' or approvals <> '{}' or calls <> '{}' or task is not null or status = 'waiting';
create index engine_turn_chain on engine_turn (tenant, chain, created);
call protect_tenant_table('engine_turn', p_readable => false);

-- The tool calls of a turn that change something: begun before they are made, done with their result.
create table engine_effect (
  tenant int not null,
  turn uuid not null,
  call text not null,
  scope text not null,
  tool text not null,
  epoch bigint not null,
  result jsonb,
  at timestamptz not null default clock_timestamp(),
  primary key (tenant, turn, call)
);
create index engine_effect_at on engine_effect (at);
call protect_tenant_table('engine_effect', p_readable => false);

-- What a tenant spent in a day (UTC), by agent.
create table engine_spend (
  tenant int not null,
  day date not null,
  agent text not null,
  tokens bigint not null default 0,
  micro_usd bigint not null default 0,
  primary key (tenant, day, agent)
);
call protect_tenant_table('engine_spend', p_readable => false);

-- Adds turns of agents to a chain, each with its ticket. Returns {turns} or {problem}: `depth`,
-- `turns` (the chain is too long), `rate` (too many of one agent in a short time). p_limits: depth,
-- turns, rate, rate_seconds.
create function engine_add_turns(
  p_tenant int, p_tenant_name text, p_group uuid, p_chain uuid, p_parent uuid, p_depth int,
  p_targets jsonb, p_mode text, p_task text, p_seen bigint, p_limits jsonb, p_headers jsonb
) returns jsonb
language plpgsql as $$
declare
  v_chain engine_chain;
  t record;
begin
  perform set_tenant(p_tenant);
  -- Two turns of a chain that hand on at once are counted one after the other.
  select c.* into v_chain from engine_chain c where c.tenant = p_tenant and c.id = p_chain for update;
  for t in select * from jsonb_to_recordset(p_targets) as (id uuid, agent text) loop
    -- One that a killed worker added before is not added again.
    continue when exists (select from engine_turn x where x.tenant = p_tenant and x.id = t.id);
    if p_depth > (p_limits ->> 'depth')::int then
      return jsonb_build_object('problem', 'depth');
    elsif v_chain.turns >= (p_limits ->> 'turns')::int then
      return jsonb_build_object('problem', 'turns');
    elsif p_parent is not null and (p_limits ->> 'rate')::int <= (
      select count(*) from engine_turn x
      where x.tenant = p_tenant and x.chain = p_chain and x.agent = t.agent and x.parent is not null
        and x.created > clock_timestamp() - make_interval(secs => (p_limits ->> 'rate_seconds')::float8))
    then
      return jsonb_build_object('problem', 'rate');
    end if;
    insert into engine_turn (tenant, id, group_id, scope, chain, parent, depth, agent, mode, task, seen)
    select p_tenant, t.id, g.id, g.scope, p_chain, p_parent, p_depth, t.agent, p_mode, p_task, p_seen
    from engine_group g where g.tenant = p_tenant and g.id = p_group;
    update engine_chain c set turns = c.turns + 1, open = c.open + 1
    where c.tenant = p_tenant and c.id = p_chain;
    v_chain.turns := v_chain.turns + 1;
    perform engine_enqueue(p_tenant, p_tenant_name, t.id, t.id, p_headers);
  end loop;
  return '{}';
end $$;

-- Adds the ticket of a turn to the outbox.
create function engine_enqueue(
  p_tenant int, p_tenant_name text, p_turn uuid, p_event uuid, p_headers jsonb
) returns void
language sql volatile
begin atomic
  select enqueue_event(p_tenant, p_event, 'turn.' || p_tenant_name || '.' || p_turn || '.requested',
                       jsonb_build_object('turn', p_turn), p_headers);
end;

-- Stores what a user says in a group, and the turns that it causes.
create function engine_post(
  p_tenant int, p_tenant_name text, p_group uuid, p_message uuid, p_author text, p_content text,
  p_images jsonb, p_targets jsonb, p_mode text, p_sealed bytea, p_sealing_key_id text, p_limits jsonb,
  p_headers jsonb
) returns bigint
language plpgsql as $$
declare
  v_no bigint;
begin
  perform set_tenant(p_tenant);
  insert into engine_message (tenant, id, group_id, scope, author, content, images)
  select p_tenant, p_message, g.id, g.scope, p_author, p_content,
         array(select (i ->> 'id')::uuid from jsonb_array_elements(p_images) i)
  from engine_group g where g.tenant = p_tenant and g.id = p_group
  returning no into v_no;
  insert into engine_image (tenant, id, group_id, scope, media_type, data)
  select p_tenant, (i ->> 'id')::uuid, g.id, g.scope, i ->> 'media_type', decode(i ->> 'data', 'base64')
  from engine_group g cross join lateral jsonb_array_elements(p_images) i
  where g.tenant = p_tenant and g.id = p_group;
  insert into engine_chain (tenant, id, group_id, sealed_key, sealing_key_id)
  values (p_tenant, p_message, p_group, p_sealed, p_sealing_key_id);
  perform engine_add_turns(p_tenant, p_tenant_name, p_group, p_message, null, 0, p_targets, p_mode, null,
                           v_no, p_limits, p_headers);
  return v_no;
end $$;

-- Claims a turn under a new epoch, if it is open and nobody holds it. Returns null for one that is
-- over or waits for a person, and {held: seconds} for one that another worker holds.
create function engine_claim(p_tenant int, p_turn uuid, p_worker text, p_lease interval) returns jsonb
language plpgsql as $$
declare
  v_turn engine_turn;
begin
  perform set_tenant(p_tenant);
  select t.* into v_turn from engine_turn t where t.tenant = p_tenant and t.id = p_turn for update;
  if not found or v_turn.status not in ('queued', 'running') then
    return null;
  elsif v_turn.lease_until > clock_timestamp() then
    return jsonb_build_object('held', extract(epoch from v_turn.lease_until - clock_timestamp()));
  end if;
  update engine_turn t
  set status = 'running', epoch = nextval('engine_epoch'), worker = p_worker,
      attempts = t.attempts + 1, lease_until = clock_timestamp() + p_lease
  where t.tenant = p_tenant and t.id = p_turn
  returning t.* into v_turn;
  return to_jsonb(v_turn) || (
    select jsonb_build_object(
      'group_name', g.name, 'session', g.session, 'agents', g.agents, 'project', g.project,
      'spec', (select a.spec from engine_agent a where a.tenant = p_tenant and a.name = v_turn.agent),
      'sealed_key', encode(c.sealed_key, 'base64'), 'sealing_key_id', c.sealing_key_id,
      'is_first', v_turn.depth = 0 and not exists (
        select from engine_turn o
        where o.tenant = p_tenant and o.chain = v_turn.chain and o.depth = 0
          and (o.created, o.id) < (v_turn.created, v_turn.id)))
    from engine_group g join engine_chain c on c.tenant = p_tenant and c.id = v_turn.chain
    where g.tenant = p_tenant and g.id = v_turn.group_id);
end $$;

-- Ends a turn once, stores its answer, and forgets the author's key with the last turn of a chain.
-- False if another worker has taken it over. `waiting` keeps it open.
create function engine_end(
  p_tenant int, p_turn uuid, p_epoch bigint, p_status text, p_outcome text, p_error text,
  p_message uuid, p_content text
) returns boolean
language plpgsql as $$
declare
  v_turn engine_turn;
begin
  perform set_tenant(p_tenant);
  update engine_turn t
  set status = p_status, outcome = p_outcome, error = p_error, lease_until = null,
      ended = case when p_status <> 'waiting' then clock_timestamp() end
  where t.tenant = p_tenant and t.id = p_turn and t.epoch = p_epoch and t.status = 'running'
  returning t.* into v_turn;
  if not found then return false; end if;
  if p_content <> '' then
    insert into engine_message (tenant, id, group_id, scope, author, content, turn)
    values (p_tenant, p_message, v_turn.group_id, v_turn.scope, v_turn.agent, p_content, p_turn);
  end if;
  if p_status <> 'waiting' then
    update engine_chain c
    set open = c.open - 1, sealed_key = case when c.open > 1 then c.sealed_key end
    where c.tenant = p_tenant and c.id = v_turn.chain;
  end if;
  return true;
end $$;

-- Reserves tokens and money for one request of a model, in one step with the check of every limit.
-- Returns the limit that forbids it, or null. p_limits: tenant_tokens, tenant_micro_usd, agent_tokens,
-- agent_micro_usd (a day) and chain_tokens, chain_micro_usd; null is none.
create function engine_reserve(
  p_tenant int, p_turn uuid, p_epoch bigint, p_tokens bigint, p_micro_usd bigint, p_limits jsonb
) returns text
language plpgsql as $$
declare
  v_turn engine_turn;
  v_day date := (now() at time zone 'utc')::date;
  v_exceeded text;
begin
  perform set_tenant(p_tenant);
  select t.* into v_turn from engine_turn t
  where t.tenant = p_tenant and t.id = p_turn and t.epoch = p_epoch;
  if not found then return 'lost'; end if;
  perform pg_advisory_xact_lock(hashtext('reverie.engine'), p_tenant);
  select l.name into v_exceeded
  from (
    select 'tenant' as holder, coalesce(sum(s.tokens), 0) as tokens, coalesce(sum(s.micro_usd), 0) as usd
    from engine_spend s where s.tenant = p_tenant and s.day = v_day
    union all
    select 'agent', coalesce(sum(s.tokens), 0), coalesce(sum(s.micro_usd), 0)
    from engine_spend s where s.tenant = p_tenant and s.day = v_day and s.agent = v_turn.agent
    union all
    select 'chain', c.tokens, c.micro_usd
    from engine_chain c where c.tenant = p_tenant and c.id = v_turn.chain
  ) u cross join lateral (values
    (u.holder || '_tokens', u.tokens + p_tokens),
    (u.holder || '_micro_usd', u.usd + p_micro_usd)) l (name, needed)
  where l.needed > (p_limits ->> l.name)::bigint
  order by 1 limit 1;
  if v_exceeded is null then
    perform engine_count(p_tenant, p_turn, p_tokens, p_micro_usd);
  end if;
  return v_exceeded;
end $$;

-- Counts tokens and money of a turn for its agent, its chain and its tenant.
create function engine_count(p_tenant int, p_turn uuid, p_tokens bigint, p_micro_usd bigint) returns void
language plpgsql as $$
declare
  v_turn engine_turn;
begin
  perform set_tenant(p_tenant);
  update engine_turn t set tokens = t.tokens + p_tokens, micro_usd = t.micro_usd + p_micro_usd
  where t.tenant = p_tenant and t.id = p_turn returning t.* into v_turn;
  -- Its group was deleted meanwhile.
  if not found then return; end if;
  update engine_chain c set tokens = c.tokens + p_tokens, micro_usd = c.micro_usd + p_micro_usd
  where c.tenant = p_tenant and c.id = v_turn.chain;
  insert into engine_spend as s (tenant, day, agent, tokens, micro_usd)
  values (p_tenant, (now() at time zone 'utc')::date, v_turn.agent, p_tokens, p_micro_usd)
  on conflict (tenant, day, agent) do update
    set tokens = s.tokens + excluded.tokens, micro_usd = s.micro_usd + excluded.micro_usd;
end $$;
