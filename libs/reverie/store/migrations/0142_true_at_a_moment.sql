-- What else is asked of a memory may also be a moment at which it was true (`valid_at`).
create or replace function wanted(p_tenant int, p_memory uuid, p_tier text, p_at timestamptz,
                                  p_asked jsonb)
returns boolean
language sql stable
begin atomic
  select (p_asked->'tiers' is null or p_asked->'tiers' ? p_tier)
    and (p_asked->>'since' is null or p_at >= (p_asked->>'since')::timestamptz)
    and (p_asked->>'until' is null or p_at < (p_asked->>'until')::timestamptz)
    and (p_asked->>'valid_at' is null or exists (
      select from memory m
      where m.tenant = p_tenant and m.id = p_memory
        and coalesce(m.valid_from, '-infinity') <= (p_asked->>'valid_at')::timestamptz
        and (p_asked->>'valid_at')::timestamptz < coalesce(m.valid_to, 'infinity')))
    and (p_asked->'tags' is null or not exists (
      select from jsonb_array_elements_text(p_asked->'tags') t (tag)
      where not exists (select from memory_tag g
                        where g.tenant = p_tenant and g.memory = p_memory and g.tag = t.tag)))
    and (p_asked->'files' is null or exists (
      select from edge e join anchor a on a.tenant = p_tenant and a.node = e.dst
      where e.tenant = p_tenant and e.src = p_memory and e.kind = 'touches' and e.known_to is null
        and p_asked->'files' ? a.path));
end;
