-- Deletes the postings of memories by a condition on `x`, as `erase` takes one. The bounds of a
-- document's entries are reckoned beforehand: what is reckoned of a joined row may leak, and is no
-- condition of an index under row-level security, so that all postings of a term would be read.
create or replace function erase_words(p_tenant int, p_where text, p_ids uuid[], p_texts text[])
returns bigint
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_terms int[];
  v_first bigint[];
  v_last bigint[];
  n bigint;
begin
  execute format(
    'select array_agg(term_no(w.lexeme)::int), array_agg(x.doc << 28),'
    ' array_agg((x.doc << 28) | 268435455)'
    ' from memory x cross join lateral unnest(x.words) w where x.tenant = $1 and (%s)', p_where)
  into v_terms, v_first, v_last using p_tenant, p_ids, p_texts;
  delete from posting_entry p using unnest(v_terms, v_first, v_last) k (term, first, last)
  where p.tenant = p_tenant and p.term = k.term and p.entry >= k.first and p.entry <= k.last;
  get diagnostics n = row_count;
  return n;
end $$;
