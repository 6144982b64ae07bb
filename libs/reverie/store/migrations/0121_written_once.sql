-- What a request with an idempotency key wrote is noted with the write itself: a request whose
-- answer was lost with its connection, after the commit, finds it when it is sent again.

alter table idempotency add column effect jsonb;

-- As remember_knowing, once for each request and place: items of one request that are written one
-- by one have a place each.
create function remember_once(p_tenant int, p_tenant_name text, p_items jsonb, p_headers jsonb,
                              p_epoch bigint, p_request text, p_place text)
returns setof jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
declare
  v_done jsonb;
begin
  perform enter(p_tenant);
  if p_request is not null then
    select i.effect -> p_place into v_done from idempotency i
    where i.tenant = p_tenant and i.key = p_request for update;
  end if;
  if v_done is null then
    select coalesce(jsonb_agg(one), '[]') into v_done
    from remember_knowing(p_tenant, p_tenant_name, p_items, p_headers, p_epoch) one;
    -- What changed nothing may be tried again.
    if p_request is not null and jsonb_path_exists(v_done, '$[*] ? (!exists(@.problem))') then
      update idempotency i
      set effect = coalesce(i.effect, '{}') || jsonb_build_object(p_place, v_done)
      where i.tenant = p_tenant and i.key = p_request;
    end if;
  end if;
  return query select * from jsonb_array_elements(v_done);
end $$;
grant execute on function remember_once(int, text, jsonb, jsonb, bigint, text, text)
  to reverie_app;
