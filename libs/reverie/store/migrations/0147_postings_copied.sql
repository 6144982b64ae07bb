-- The postings that there were, beside whoever writes: nothing waits for this.

do $$
declare
  t record;
begin
  for t in select id from tenant_names() loop
    perform enter(t.id);
    insert into posting_entry (tenant, term, entry)
    select t.id, (p.term >> 32)::int, posted(p.doc, p.tf, p.len)
    from posting p where p.tenant = t.id order by 2, 3
    on conflict do nothing;
    insert into turn_posting_entry (tenant, term, entry)
    select t.id, (p.term >> 32)::int, posted(p.doc, p.tf, p.len)
    from turn_posting p where p.tenant = t.id order by 2, 3
    on conflict do nothing;
  end loop;
  perform set_config('reverie.tenant', '', true);
end $$;

analyze posting_entry;
analyze turn_posting_entry;
