-- A gateway that keeps a tenant's postings in memory asks whose words have changed since: each memory
-- says by which transaction its words, or whether they are found, were last written, and all below
-- the oldest one that a snapshot saw under way are in it. Those from before say nothing.
alter table memory add column worded xid8;

create index memory_worded on memory (tenant, worded) where worded is not null;

create function date_words() returns trigger language plpgsql as $$
begin
  new.worded := pg_current_xact_id();
  return new;
end $$;

create trigger memory_worded before insert or update of words, terms, status on memory
for each row execute function date_words();

-- Keeps a memory as it is before a change. `state` holds the columns by name, its tags,
-- and of a task where it stood.
create or replace function keep_version(p_tenant int, p_old memory, p_who text, p_why text) returns void
language sql volatile
begin atomic
  insert into memory_version (tenant, memory, version, content, status, who, why, known_from,
                              known_to, words, state)
  values (p_tenant, p_old.id, p_old.version, p_old.content, p_old.status, p_who, p_why,
          p_old.known_from, greatest(now(), p_old.known_from), p_old.words,
          to_jsonb(p_old) - array['tenant', 'id', 'doc', 'version', 'content', 'status', 'words',
                                  'terms', 'enriched_version', 'carried', 'short', 'known_from',
                                  'worded']
          || jsonb_build_object('tags', array(
               select t.tag from memory_tag t
               where t.tenant = p_tenant and t.memory = p_old.id order by t.tag))
          || coalesce((select jsonb_build_object('task', jsonb_build_object(
               'state', k.state, 'claimed_by', k.claimed_by, 'claimed_until', k.claimed_until))
               from task k where k.tenant = p_tenant and k.memory = p_old.id), '{}'));
end;
