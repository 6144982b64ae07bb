-- Summaries of scopes, and the memories that each version rests on.

-- The current summary of a scope.
create table summary (
  tenant int not null,
  scope text not null,
  version int not null default 1,
  content text not null,
  tokens int not null,
  updated timestamptz not null default now(),
  primary key (tenant, scope)
);
call protect_tenant_table('summary');

-- The memories that each version of a summary rests on, in the order of its lines, with their
-- versions. It has no text of its own, so nothing forgotten or redacted remains in it. `seen`:
-- changes up to then are included, null: look at everything again. `complete`: nothing was cut off.
create table summary_version (
  tenant int not null,
  scope text not null,
  version int not null,
  tokens int not null,
  created timestamptz not null default now(),
  run uuid,
  seen timestamptz,
  complete boolean not null,
  memories uuid[] not null,
  versions int[] not null,
  primary key (tenant, scope, version)
) partition by hash (tenant);
call partition_by_tenant('summary_version');
call protect_tenant_table('summary_version');

-- Puts a summary, as a new version where its text differs, with its sources ({run, seen, complete,
-- memories, versions}). The last 20 versions remain. False where the lease was lost.
create function put_summary(
  p_tenant int, p_scope text, p_epoch bigint, p_content text, p_tokens int, p_sources jsonb
) returns boolean
language plpgsql as $$
declare
  v_version int;
begin
  if not has_dream_lease(p_tenant, p_scope, p_epoch) then return false; end if;
  insert into summary as s (tenant, scope, content, tokens)
  values (p_tenant, p_scope, p_content, p_tokens)
  on conflict (tenant, scope) do update
    set content = excluded.content, tokens = excluded.tokens, version = s.version + 1,
        updated = now()
    where s.content <> excluded.content;
  select s.version into v_version from summary s
  where s.tenant = p_tenant and s.scope = p_scope;
  insert into summary_version as v (tenant, scope, version, tokens, run, seen, complete, memories,
                                    versions)
  select p_tenant, p_scope, v_version, p_tokens, t.run, t.seen, t.complete, t.memories, t.versions
  from jsonb_to_record(p_sources) t (run uuid, seen timestamptz, complete boolean, memories uuid[],
                                  versions int[])
  on conflict (tenant, scope, version) do update
    set seen = excluded.seen, complete = excluded.complete, memories = excluded.memories,
        versions = excluded.versions;
  delete from summary_version v
  where v.tenant = p_tenant and v.scope = p_scope and v.version <= v_version - 20;
  return true;
end $$;

-- The lines of summaries as their memories said them, of the newest or of some versions; `stands`:
-- the memory is active and still says it.
create function summary_lines(p_tenant int, p_scopes text[], p_versions int[])
returns table (scope text, version int, no bigint, memory uuid, cited_version int, kind text,
               content text, status text, stands boolean)
language sql stable
begin atomic
  select v.scope, v.version, x.no, m.id, x.version, coalesce(b.state ->> 'kind', m.kind),
         coalesce(b.content, m.content), m.status,
         m.status = 'active' and m.scope = v.scope and (b.content is null or b.content = m.content)
  from summary s
  join summary_version v on v.tenant = p_tenant and v.scope = s.scope
    and (p_versions is null and v.version = s.version or v.version = any(p_versions))
  cross join lateral unnest(v.memories, v.versions) with ordinality x (memory, version, no)
  join memory m on m.tenant = p_tenant and m.id = x.memory
  left join memory_version b on b.tenant = p_tenant and b.memory = m.id and b.version = x.version
  where s.tenant = p_tenant and scope_matches(p_scopes, s.scope);
end;
