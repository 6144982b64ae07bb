-- Weighted words of a learned sparse model, a row a chunk. They only judge what other arms found, so
-- they have no index but their key.

create table sparse_splade_tiny (
  tenant int not null,
  chunk bigint not null,
  v sparsevec(30522) not null,
  primary key (tenant, chunk)
) partition by hash (tenant);
call split_by_tenant('sparse_splade_tiny');
call protect('sparse_splade_tiny');

-- They go with their chunk, by whatever way that goes; a tenant that leaves has every table swept.
create function drop_weighted_words() returns trigger language plpgsql as $$
declare
  v_tenant int;
begin
  if current_setting('reverie.leaving', true) = 'on' then
    return null;
  end if;
  for v_tenant in select distinct g.tenant from gone g loop
    delete from sparse_splade_tiny s using gone g
    where s.tenant = v_tenant and g.tenant = v_tenant and s.chunk = g.no;
  end loop;
  return null;
end $$;

create trigger weighted_words_go after delete on chunk
  referencing old table as gone for each statement execute function drop_weighted_words();
