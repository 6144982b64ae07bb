-- name: export_memory
-- Memories as lines after id $4: of grants $2 within patterns $3; forgotten ones are none. One is
-- settled where its slow path is done and all that it links to is exported too.
select m.id, (to_jsonb(m)
  - '{tenant,doc,words,terms,words_xid,short,hash,enriched_version,imported_version}'::text[]
  || jsonb_build_object('type', 'memory', 'settled',
    greatest(m.enriched_version, coalesce(m.imported_version, 0)) >= m.version
    -- No `exists`: for many rows that would be a hash over all edges of the tenant.
    and coalesce((select false from edge e join memory o on o.tenant = $1 and o.id = e.dst
                  where e.tenant = $1 and e.src = m.id and e.known_to is null
                    and not (scope_matches($2, o.scope) and scope_matches($3, o.scope)) limit 1), true))
  || export_memory_details($1, m.id))::text as line
from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status <> 'deleted'
  and ($4::uuid is null or m.id > $4)
order by m.id limit $5;

-- name: export_memory_version
-- What the exported memories were before their changes, after ($4, $5).
select v.memory, v.version,
       (to_jsonb(v) - '{tenant,words}'::text[]
        || jsonb_build_object('type', 'memory_version'))::text as line
from memory_version v join memory m on m.tenant = $1 and m.id = v.memory
where v.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status <> 'deleted'
  and ($4::uuid is null or (v.memory, v.version) > ($4, $5::int))
order by v.memory, v.version limit $6;

-- name: export_edge
-- Open and closed edges between exported memories, after id $4.
select e.id, (to_jsonb(e) - 'tenant' || jsonb_build_object('type', 'edge'))::text as line
from edge e join memory a on a.tenant = $1 and a.id = e.src
            join memory b on b.tenant = $1 and b.id = e.dst
where e.tenant = $1 and scope_matches($2, a.scope) and scope_matches($3, a.scope) and a.status <> 'deleted'
  and scope_matches($2, b.scope) and scope_matches($3, b.scope) and b.status <> 'deleted'
  and ($4::uuid is null or e.id > $4)
order by e.id limit $5;

-- name: export_anchor
-- The paths of exported file nodes, after node $4.
select n.node, (to_jsonb(n) - 'tenant' || jsonb_build_object('type', 'anchor'))::text as line
from anchor n join memory m on m.tenant = $1 and m.id = n.node
where n.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status <> 'deleted'
  and ($4::uuid is null or n.node > $4)
order by n.node limit $5;

-- name: export_summary
-- The summaries of scopes, after scope $4.
select s.scope, (to_jsonb(s) - 'tenant' || jsonb_build_object('type', 'summary'))::text as line
from summary s
where s.tenant = $1 and scope_matches($2, s.scope) and scope_matches($3, s.scope)
  and ($4::text is null or s.scope > $4)
order by s.scope limit $5;

-- name: export_scope_name
-- What people call scopes, after scope $4.
select n.scope, (to_jsonb(n) - 'tenant' || jsonb_build_object('type', 'scope_name'))::text as line
from scope_name n
where n.tenant = $1 and scope_matches($2, n.scope) and scope_matches($3, n.scope)
  and ($4::text is null or n.scope > $4)
order by n.scope limit $5;

-- name: export_project_setting
-- What projects have set, after ($4, $5).
select p.project, p.name,
       (to_jsonb(p) - 'tenant' || jsonb_build_object('type', 'project_setting'))::text as line
from project_setting p
where p.tenant = $1 and scope_matches($2, 'project/' || p.project) and scope_matches($3, 'project/' || p.project)
  and ($4::text is null or (p.project, p.name) > ($4, $5::text))
order by p.project, p.name limit $6;

-- name: export_session
-- Sessions of agent $6 (null: any), after id $4.
select s.id, (to_jsonb(s) - 'tenant' || jsonb_build_object('type', 'session'))::text as line
from session s
where s.tenant = $1 and scope_matches($2, s.scope) and scope_matches($3, s.scope)
  and ($6::text is null or s.agent = $6) and ($4::uuid is null or s.id > $4)
order by s.id limit $5;

-- name: export_turn
-- Turns of the exported sessions, after ($4, $5).
select t.session, t.ord,
       (to_jsonb(t) - '{tenant,doc,terms}'::text[] || jsonb_build_object('type', 'turn'))::text as line
from turn t join session s on s.tenant = $1 and s.id = t.session
where t.tenant = $1 and scope_matches($2, s.scope) and scope_matches($3, s.scope)
  and ($7::text is null or s.agent = $7)
  and ($4::uuid is null or (t.session, t.ord) > ($4, $5::int))
order by t.session, t.ord limit $6;

-- name: import_memory
-- Memories of a file ($3) by strategy $4, for $5, whose grants are $6; answers each outcome.
select * from import_memories($1, $2, $3, $4, $5, $6, $7);

-- name: import_successors
-- Successors that a file names by ids which became others here ($2).
select import_successors($1, $2);

-- name: import_edge
-- Edges of a file ($2) by strategy $3 under grants to read $4 and write $5.
select * from import_edges($1, $2, $3, $4, $5);

-- name: import_dependent_rows
-- Versions or anchors ($2 is the table) of a file ($3) under the grants $4.
select * from import_dependent_rows($1, $2, $3, $4);

-- name: import_summary
-- Summaries of a file ($2) by strategy $3.
select * from import_summaries($1, $2, $3);

-- name: import_scope_name
-- Names of scopes of a file ($2); what stands stays.
select * from import_rows($1, 'scope_name', $2);

-- name: import_project_setting
-- What projects have set, of a file ($2), by strategy $3.
select * from import_project_settings($1, $2, $3);

-- name: import_session
-- Sessions of a file ($2); what stands stays.
select * from import_rows($1, 'session', $2);

-- name: import_turn
-- Turns of a file ($2), of agent $3 (null: any), under the grants $4.
select * from import_turns($1, $2, $3, $4);

-- name: summaries_reset_seen
-- Summaries of the scopes $2 that have to look at all again: what was imported keeps its times.
update summary_version set seen = null
where tenant = $1 and scope = any($2::text[]) and seen is not null;
