-- What is done for the turns of all tenants: leases, what is forgotten with time, and images that are
-- erased.

call open_to_system('engine_chain', 'select, update');
call open_to_system('engine_turn', 'select, update');
call open_to_system('engine_effect', 'select, delete');
call open_to_system('engine_spend', 'select, delete');

-- Prolongs the leases of turns of all tenants that a worker holds under an epoch. Returns those that it
-- still holds. A row that is being written is left for the next time: nothing waits for a lock.
create function engine_renew(p_tenants int[], p_turns uuid[], p_epochs bigint[], p_lease interval)
returns table (id uuid, stop_requested boolean)
language sql volatile security definer
begin atomic
  with asked as (
    select * from unnest(p_tenants, p_turns, p_epochs) a (tenant, turn, epoch)
  ), free as (
    select t.tenant, t.id from engine_turn t join asked a
      on t.tenant = a.tenant and t.id = a.turn and t.epoch = a.epoch
    where t.status = 'running'
    for no key update of t skip locked
  ), renewed as (
    update engine_turn t set lease_until = clock_timestamp() + p_lease
    from free f where t.tenant = f.tenant and t.id = f.id
  )
  select t.id, t.stop_requested from engine_turn t join asked a
    on t.tenant = a.tenant and t.id = a.turn and t.epoch = a.epoch
  where t.status = 'running';
end;
call run_across_tenants('engine_renew(int[], uuid[], bigint[], interval)');

-- Forgets how turns older than p_age came about: the model's messages, tool calls and their results,
-- and what was spent by day. What was said stays. A turn that waited so long for a person ends, and its
-- ticket lets a worker tell of it. Of all tenants, at most p_limit of each; returns the number of turns.
create function engine_sweep(p_age interval, p_limit int default 1000) returns bigint
language plpgsql volatile security definer as $$
declare
  v_before timestamptz := clock_timestamp() - p_age;
  n bigint;
begin
  with expired as (
    update engine_turn t set status = 'stopped', outcome = 'expired', ended = clock_timestamp()
    where t.status = 'waiting' and (t.tenant, t.id) in (
      select o.tenant, o.id from engine_turn o
      where o.status = 'waiting' and o.created < v_before limit p_limit for update skip locked)
    returning t.tenant, t.id, t.chain
  ), left_open as (
    select e.tenant, e.chain, count(*) as n from expired e group by 1, 2
  ), closed as (
    update engine_chain c
    set open = c.open - l.n, sealed_key = case when c.open > l.n then c.sealed_key end
    from left_open l where c.tenant = l.tenant and c.id = l.chain
  )
  select count(engine_enqueue(e.tenant, a.name, e.id, gen_random_uuid(), '{}')) into n
  from expired e join tenant a on a.id = e.tenant;
  update engine_turn t set messages = '[]', approvals = '{}', calls = '{}', task = null
  where (t.tenant, t.id) in (
    select o.tenant, o.id from engine_turn o
    where o.created < v_before and o.status in ('done', 'failed', 'stopped')
      and (o.messages <> '[]' or o.approvals <> '{}' or o.calls <> '{}' or o.task is not null)
    limit p_limit);
  get diagnostics n = row_count;
  delete from engine_effect e where (e.tenant, e.turn, e.call) in (
    select o.tenant, o.turn, o.call from engine_effect o
    where o.at < v_before and not exists (
      select from engine_turn t
      where t.tenant = o.tenant and t.id = o.turn and t.status in ('queued', 'running', 'waiting'))
    limit p_limit);
  delete from engine_spend s where s.day < (v_before at time zone 'utc')::date;
  return n;
end $$;
call run_across_tenants('engine_sweep(interval, int)');

-- The lines of a message that say what its images show.
create function image_lines(p_content text) returns text[]
language sql immutable
return array(select m[1] from regexp_matches(p_content, '\[image: [^\]]*\]', 'g') m);

-- Messages with images that what is erased was made of, or that quote it: the bytes of an image cannot
-- be masked. p_statements, p_sources, p_scopes: as mask_quotations() takes them. Of a message in
-- p_sources count its description and the answers to it, too. Whoever adds a turn chooses its external
-- id, so one of another session says nothing of a message.
create function quoting_images(p_tenant int, p_statements text[], p_sources uuid[], p_scopes text[])
returns setof uuid
language sql stable
begin atomic
  with source as (
    select t.session, t.external_id as id from turn t where t.tenant = p_tenant and t.id = any(p_sources)
  )
  select m.id from engine_message m join engine_group g on g.tenant = p_tenant and g.id = m.group_id
  where m.tenant = p_tenant and m.images <> '{}' and (
    scope_matches(p_scopes, m.scope) and exists (
      select from unnest(p_statements) s where position(s in m.content) > 0)
    or exists (select from source s where s.session = g.session and (
      s.id in (m.id::text, m.id || '.images')
      or exists (select from engine_turn t where t.tenant = p_tenant and t.id::text = s.id
                 and t.group_id = m.group_id and t.chain = m.id)
      or mask_statements(m.content, p_statements) <> m.content)));
end;

-- Deletes the images of messages; returns their number.
create function engine_delete_images(p_tenant int, p_messages uuid[]) returns bigint
language plpgsql as $$
declare
  n bigint;
begin
  delete from engine_image i using engine_message m
  where m.tenant = p_tenant and m.id = any(p_messages)
    and i.tenant = p_tenant and i.id = any(m.images);
  get diagnostics n = row_count;
  update engine_message m set images = '{}' where m.tenant = p_tenant and m.id = any(p_messages);
  return n;
end $$;

-- Deletes the images of a message whose descriptions redaction changes: they show the secret too. None
-- where the message is not the one that was read any more: it is read and redacted again.
create function engine_delete_redacted_images(p_tenant int, p_row jsonb) returns void
language sql as $$
  select engine_delete_images(p_tenant, array[r.id]) from (
    select m.id from engine_message m
    where m.tenant = p_tenant and m.id = (p_row -> 'place' ->> 'id')::uuid
      and md5(jsonb_build_object('content', m.content)::text) = p_row ->> 'seen'
      and image_lines(m.content) <> image_lines(p_row -> 'now' ->> 'content')
    for update) r;
$$;
