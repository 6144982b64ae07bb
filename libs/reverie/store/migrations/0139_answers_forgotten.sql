-- Where a kept answer has to go, what its request did is still known: sent again, it does nothing twice.

-- Forgets answers of some requests, and all of those that noted nothing of what they did.
create function answers_forget(p_tenant int, p_keys text[]) returns void
language plpgsql as $$
begin
  perform enter(p_tenant);
  delete from idempotency x
  where x.tenant = p_tenant and x.key = any(p_keys) and x.status is not null and x.effect is null;
  -- As long ago as if its taker had died: whoever comes next answers it anew.
  update idempotency x
  set status = null, body = null, headers = null, at = least(x.at, now() - interval '1 hour')
  where x.tenant = p_tenant and x.key = any(p_keys) and x.status is not null;
end $$;
grant execute on function answers_forget(int, text[]) to reverie_app;

-- As it was, but that a session which was started elsewhere is found by whoever starts it again; what
-- it was told at its start is forgotten.
create or replace function erase_quotes(p_tenant int, p_ids uuid[])
returns table (name text, gone bigint)
language plpgsql as $$
begin
  delete from outbox x where x.tenant = p_tenant and quoted(x.payload::text) && p_ids;
  get diagnostics gone = row_count;
  name := 'outbox';
  return next;
  delete from idempotency x where x.tenant = p_tenant
    and (x.status is not null and quoted(encode(x.body, 'escape')) && p_ids
         or quoted(x.effect::text) && p_ids);
  get diagnostics gone = row_count;
  name := 'idempotency';
  return next;
  perform answers_forget(p_tenant, array(
    select x.key from idempotency x where x.tenant = p_tenant and x.status is not null
      and x.route like '%/v1/sessions/start%'));
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
