-- Ingest moves a tenant whose memories are Chinese, Japanese or Korean to a model that reads them: so
-- that model's table stands, and a service may say of its own tenant which model it goes by.

call make_vectors('vec_multilingual_e5_small_q4_f5c3192d', 384);

grant update (model, models) on tenant to reverie_app;

-- The models that most tenants were moved to, for services to load before anybody asks by them.
create function models_in_use(p_limit int) returns table (model text)
language sql stable security definer
begin atomic
  select t.model from tenant t where t.model is not null
  group by t.model order by count(*) desc, t.model limit p_limit;
end;

do $$
begin
  execute format('grant create on schema %I to reverie_system', current_schema());
  execute format('alter function models_in_use(int) set search_path = %I, public, pg_temp',
                 current_schema());
  alter function models_in_use(int) owner to reverie_system;
  -- Nobody could call it before: this takes nothing away.
  execute 'revoke all on function models_in_use(int) from public';
  grant execute on function models_in_use(int) to reverie_app;
  execute format('revoke create on schema %I from reverie_system', current_schema());
end $$;

-- The chunks of memories ([{memory, first, pieces: [{start, stop, hash}]}]) with a vector of the model
-- each, and weighted words where there are any: those of a memory from its `first` on. Raises RV003 where
-- the tenant goes by another model; one that is switched meanwhile waits until this is committed, for
-- what fills the other model's vectors then could not see it.
create or replace function derive_chunks_all(p_tenant int, p_made jsonb, p_vectors halfvec[], p_words sparsevec[])
returns void
language plpgsql as $$
declare
  v_table text;
  v_nos bigint[];
  v_places int[];
begin
  perform pg_advisory_xact_lock_shared(hashtext('reverie.model'), p_tenant);
  select coalesce(t.models -> t.model ->> 'vectors', 'vec_bge_small_en_v1_5') into v_table
  from tenant t where t.id = p_tenant and not exists (
    select from jsonb_array_elements(p_made) a (one)
    where a.one ->> 'model' <> coalesce(t.model, 'bge-small-en-v1.5'));
  if not found then
    raise exception using errcode = 'RV003', message = 'the tenant goes by another model';
  end if;
  with gone as (
    delete from chunk c
    where c.tenant = p_tenant and c.memory = any (
      array(select (a.one ->> 'memory')::uuid from jsonb_array_elements(p_made) a (one)))
    returning c.no)
  select array_agg(g.no) into v_nos from gone g;
  if v_nos is not null then
    execute format('delete from %I where tenant = $1 and chunk = any ($2)', v_table)
    using p_tenant, v_nos;
  end if;
  with piece as materialized (
    select (a.one ->> 'memory')::uuid as memory, (p.n - 1)::int as ord, p.one,
           ((a.one ->> 'first')::int + p.n)::int as place
    from jsonb_array_elements(p_made) a (one)
    cross join lateral jsonb_array_elements(a.one -> 'pieces') with ordinality p (one, n)
  ), made as (
    insert into chunk (tenant, memory, ord, start, stop, hash)
    select p_tenant, p.memory, p.ord, (p.one ->> 'start')::int, (p.one ->> 'stop')::int,
           decode(p.one ->> 'hash', 'hex')
    from piece p order by p.place
    returning no, memory, ord)
  select array_agg(m.no order by p.place), array_agg(p.place order by p.place)
  into v_nos, v_places
  from made m join piece p on p.memory = m.memory and p.ord = m.ord;
  insert into sparse_splade_tiny (tenant, chunk, v)
  select p_tenant, u.no, p_words[u.place] from unnest(v_nos, v_places) u (no, place)
  where p_words[u.place] is not null;
  execute format('insert into %I (tenant, chunk, v)'
                 ' select $1, u.no, $4[u.place] from unnest($2, $3) u (no, place)', v_table)
  using p_tenant, v_nos, v_places, p_vectors;
end $$;
