-- A write says which secrets of the vault it was redacted by, which spares it asking for them.
-- Its plans are kept: each names the tenant, so that planning them anew, once a call, was half of
-- what a write took. None may read from end to end what was small when it was made.
create function remember_knowing(p_tenant int, p_tenant_name text, p_items jsonb, p_headers jsonb,
                                 p_epoch bigint)
returns setof jsonb
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off as $$
begin
  if p_epoch <> vault_epoch_of(p_tenant) then
    raise exception using errcode = 'RV002', message = 'the secrets of the vault changed';
  end if;
  return query select * from remember_all(p_tenant, p_tenant_name, p_items, p_headers);
end $$;
grant execute on function remember_knowing(int, text, jsonb, jsonb, bigint) to reverie_app;
