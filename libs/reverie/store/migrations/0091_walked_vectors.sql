-- Only the vectors of large tenants are in the index that is walked: to be put there takes longer than
-- all else that is derived of a memory, and those of a small tenant are compared one by one anyway.
-- A vector is put there some time after it came; until then it is compared too.

create procedure walk_vectors(p_table regclass) language plpgsql as $$
declare
  v_name text := (select c.relname from pg_class c where c.oid = p_table);
  v_old regclass;
begin
  for v_old in select i.indexrelid from pg_index i
               join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
               where i.indrelid = p_table and a.amname = 'hnsw' loop
    execute format('drop index %s', v_old);
  end loop;
  execute format('alter table %s add column walked boolean not null default false', p_table);
  execute format('create index %I on %s using hnsw (v halfvec_cosine_ops) where walked',
                 left(v_name, 58) || '_hnsw', p_table);
  execute format('create index %I on %s (tenant, chunk) where not walked',
                 left(v_name, 57) || '_fresh', p_table);
end $$;
revoke all on procedure walk_vectors(regclass) from public;

do $$
declare
  v_table regclass;
begin
  for v_table in select c.oid from pg_class c
                 where c.relnamespace = current_schema()::regnamespace and c.relkind = 'p'
                   and c.relname ~ '^vec_' loop
    call walk_vectors(v_table);
  end loop;
end $$;

-- Makes a model's vector table where it is missing. For whoever owns the schema.
create or replace procedure make_vectors(p_table text, p_dims int) language plpgsql as $$
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
  call walk_vectors(p_table::regclass);
end $$;
