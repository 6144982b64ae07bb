-- Under this key numbers that all tenants share (of a stream) are handed out as text that tells
-- nothing. Two random uuids carry 244 random bits; a tenant's marks end with it.
alter table tenant add column mark_key bytea not null
  default (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- Events on their way and kept answers that quote ids, and uses by sessions among them. What a
-- session was told at its start quotes memories without their ids, so none of those is kept.
create or replace function erase_quotes(p_tenant int, p_ids uuid[])
returns table (name text, gone bigint)
language plpgsql as $$
begin
  delete from outbox x where x.tenant = p_tenant and quoted(x.payload::text) && p_ids;
  get diagnostics gone = row_count;
  name := 'outbox';
  return next;
  delete from idempotency x where x.tenant = p_tenant and x.status is not null
    and (quoted(encode(x.body, 'escape')) && p_ids or x.route like '%/v1/sessions/start%');
  get diagnostics gone = row_count;
  name := 'idempotency';
  return next;
  delete from memory_use_session x
  where x.tenant = p_tenant and x.used_by in (select 'session ' || i from unnest(p_ids) i);
  get diagnostics gone = row_count;
  name := 'memory_use_session';
  return next;
end $$;
