-- Postings of half the size: the term in 32 bits, and document, occurrences and length in one number,
-- which are all in the key. Until the next migrations are through, whatever writes the postings of
-- before writes these too; what went meanwhile is noted, for it may be copied after it went.

-- A document (35 bits), how often it has the term (8: a tsvector holds no more than 255 places of one)
-- and how long it is (20), so that entries of a term are in the order of their documents.
create function posted(p_doc bigint, p_tf int, p_len int) returns bigint
language sql immutable parallel safe
return (p_doc << 28) | (least(p_tf, 255)::bigint << 20) | least(p_len, 1048575);

create table posting_entry (
  tenant int not null,
  term int not null,
  entry bigint not null,
  primary key (tenant, term, entry)
) partition by hash (tenant);
create table turn_posting_entry (
  tenant int not null,
  term int not null,
  entry bigint not null,
  primary key (tenant, term, entry)
) partition by hash (tenant);
create table posting_gone (
  tenant int not null,
  entries text not null,
  term bigint not null,
  doc bigint not null,
  tf int not null,
  len int not null
);
call split_by_tenant('posting_entry');
call split_by_tenant('turn_posting_entry');
call protect('posting_entry');
call protect('turn_posting_entry');
call protect('posting_gone');

create function postings_changed() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    execute format(
      'delete from %I e using went o where e.tenant = o.tenant and e.term = (o.term >> 32)::int'
      ' and e.entry = posted(o.doc, o.tf, o.len)', tg_argv[0]);
    insert into posting_gone (tenant, entries, term, doc, tf, len)
    select o.tenant, tg_argv[0], o.term, o.doc, o.tf, o.len from went o;
  end if;
  if tg_op <> 'DELETE' then
    execute format(
      'insert into %I (tenant, term, entry)'
      ' select n.tenant, (n.term >> 32)::int, posted(n.doc, n.tf, n.len) from came n'
      ' on conflict do nothing', tg_argv[0]);
  end if;
  return null;
end $$;

do $$
declare
  v_table text;
begin
  foreach v_table in array array['posting', 'turn_posting'] loop
    execute format('create trigger came after insert on %I referencing new table as came'
                   ' for each statement execute function postings_changed(%L)',
                   v_table, v_table || '_entry');
    execute format('create trigger went after delete on %I referencing old table as went'
                   ' for each statement execute function postings_changed(%L)',
                   v_table, v_table || '_entry');
    execute format('create trigger changed after update on %I'
                   ' referencing old table as went new table as came'
                   ' for each statement execute function postings_changed(%L)',
                   v_table, v_table || '_entry');
  end loop;
end $$;
