-- Which embedding model a tenant's meaning goes by (null: the first), and all that were ever filled:
-- by name their vector table, dimensions, and what they made of the probe text.

alter table tenant add column model text;
alter table tenant add column models jsonb not null default '{}';

-- Makes a model's vector table where it is missing. For whoever owns the schema.
create procedure make_vectors(p_table text, p_dims int) language plpgsql as $$
begin
  if p_table !~ '^vec_[a-z0-9_]{1,58}$' then
    raise invalid_name using message = p_table;
  end if;
  if to_regclass(p_table) is not null then
    return;
  end if;
  execute format('create table %I (tenant int not null, chunk bigint not null, v halfvec(%s) not null,'
                 ' primary key (tenant, chunk)) partition by hash (tenant)', p_table, p_dims);
  call split_by_tenant(p_table::regclass);
  call protect(p_table::regclass);
  execute format('create index on %I using hnsw (v halfvec_cosine_ops)', p_table);
end $$;
revoke all on procedure make_vectors(text, int) from public;

-- The vectors of other models than the first go with their chunk too.
create or replace function drop_weighted_words() returns trigger language plpgsql as $$
declare
  v_tenant int;
  v_table text;
begin
  if current_setting('reverie.leaving', true) = 'on' then
    return null;
  end if;
  for v_tenant in select distinct g.tenant from gone g loop
    delete from sparse_splade_tiny s using gone g
    where s.tenant = v_tenant and g.tenant = v_tenant and s.chunk = g.no;
    for v_table in select m.value ->> 'vectors' from tenant t cross join lateral jsonb_each(t.models) m
                   where t.id = v_tenant loop
      execute format('delete from %I v using gone g'
                     ' where v.tenant = $1 and g.tenant = $1 and v.chunk = g.no', v_table)
      using v_tenant;
    end loop;
  end loop;
  return null;
end $$;
