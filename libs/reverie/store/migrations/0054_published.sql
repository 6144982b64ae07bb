-- Removes events that their writer published. The commit does not wait for the disk: one that comes
-- back after a crash is published again.
create function published(p_tenant int, p_ids uuid[]) returns void language plpgsql as $$
begin
  perform enter(p_tenant);
  perform set_config('synchronous_commit', 'off', true);
  delete from outbox where tenant = p_tenant and id = any (p_ids);
end $$;
grant execute on function published(int, uuid[]) to reverie_app;
