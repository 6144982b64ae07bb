-- A gateway that keeps a tenant's vectors in memory asks which have come since: each says by which
-- transaction it was written, and all below the oldest one that a snapshot saw under way are in it.
-- Those from before were there before any gateway looked, and say nothing.

create procedure date_vectors(p_table regclass) language plpgsql as $$
declare
  v_name text := (select c.relname from pg_class c where c.oid = p_table);
begin
  execute format('alter table %s add column made xid8', p_table);
  execute format('alter table %s alter column made set default pg_current_xact_id()', p_table);
  execute format('create index %I on %s (tenant, made) where made is not null',
                 left(v_name, 58) || '_made', p_table);
end $$;

do $$
declare
  v_table regclass;
begin
  for v_table in select c.oid from pg_class c
                 where c.relnamespace = current_schema()::regnamespace and c.relkind = 'p'
                   and c.relname ~ '^vec_' loop
    call date_vectors(v_table);
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
  call date_vectors(p_table::regclass);
end $$;
