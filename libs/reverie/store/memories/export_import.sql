-- name: export_memory
-- Memories as lines after the key $5: of grants $2 within patterns $3; without deleted ones. A memory is
-- settled if its enrichment is done and all its linked memories are exported too.
select m.id, (hide_successors($1, to_jsonb(m), $2)
  - '{tenant,doc,words,terms,short,hash,enriched_version,imported_version}'::text[]
  || jsonb_build_object('type', 'memory', 'settled',
    greatest(m.enriched_version, coalesce(m.imported_version, 0)) >= m.version
    -- No `exists`: for many rows that would be a hash over all edges of the tenant.
    and coalesce((select false from edge e join memory o on o.tenant = $1 and o.id = e.dst
                  where e.tenant = $1 and e.src = m.id and e.known_to is null
                    and not (scope_matches($2, o.scope) and scope_matches($3, o.scope)) limit 1), true))
  || export_memory_details($1, m.id, $2))::text as line
from memory m
where m.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status <> 'deleted'
  and (m.kind not in ('file', 'entity') or node_is_visible($1, m.id, m.scope, $2))
  and ($5::text[] is null or m.id > ($5::text[])[1]::uuid)
order by m.id limit $4;

-- name: export_memory_version
-- Earlier versions of the exported memories, after the key $5: those of scopes that are exported.
select v.memory, v.version,
       (to_jsonb(v) - '{tenant,words}'::text[]
        || jsonb_build_object('type', 'memory_version', 'state', hide_successors($1, v.state, $2)))::text as line
from memory_version v join memory m on m.tenant = $1 and m.id = v.memory
where v.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status <> 'deleted'
  and scope_matches($2, coalesce(v.state ->> 'scope', m.scope))
  and scope_matches($3, coalesce(v.state ->> 'scope', m.scope))
  and (m.kind not in ('file', 'entity') or node_is_visible($1, m.id, m.scope, $2))
  and ($5::text[] is null or (v.memory, v.version) > (($5::text[])[1]::uuid, ($5::text[])[2]::int))
order by v.memory, v.version limit $4;

-- name: export_edge
-- Open and closed edges between exported memories, after the key $5.
select e.id, (to_jsonb(e) - 'tenant' || jsonb_build_object('type', 'edge'))::text as line
from edge e join memory a on a.tenant = $1 and a.id = e.src
            join memory b on b.tenant = $1 and b.id = e.dst
where e.tenant = $1 and scope_matches($2, a.scope) and scope_matches($3, a.scope) and a.status <> 'deleted'
  and scope_matches($2, b.scope) and scope_matches($3, b.scope) and b.status <> 'deleted'
  and ($5::text[] is null or e.id > ($5::text[])[1]::uuid)
order by e.id limit $4;

-- name: export_anchor
-- The paths of exported file nodes, after the key $5.
select n.node, (to_jsonb(n) - 'tenant' || jsonb_build_object('type', 'anchor'))::text as line
from anchor n join memory m on m.tenant = $1 and m.id = n.node
where n.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status <> 'deleted'
  and node_is_visible($1, m.id, m.scope, $2)
  and ($5::text[] is null or n.node > ($5::text[])[1]::uuid)
order by n.node limit $4;

-- name: export_picture
-- Pictures of exported memories, after the key $5, one at a time: they are large.
select p.memory, encode(p.hash, 'hex') as hash,
       jsonb_build_object('type', 'picture', 'memory', p.memory, 'created', p.created, 'media_type', p.media_type,
                          'data', translate(encode(p.data, 'base64'), E'\n', ''))::text as line
from picture p join memory m on m.tenant = $1 and m.id = p.memory
where p.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status <> 'deleted'
  and ($5::text[] is null or (p.memory, p.hash) > (($5::text[])[1]::uuid, decode(($5::text[])[2], 'hex')))
order by p.memory, p.hash limit least($4, 1);

-- name: export_summary
-- The summaries of scopes, after the key $5.
select s.scope, (to_jsonb(s) - 'tenant' || jsonb_build_object('type', 'summary'))::text as line
from summary s
where s.tenant = $1 and scope_matches($2, s.scope) and scope_matches($3, s.scope)
  and ($5::text[] is null or s.scope > ($5::text[])[1])
order by s.scope limit $4;

-- name: export_scope_name
-- Names of scopes, after the key $5.
select n.scope, (to_jsonb(n) - 'tenant' || jsonb_build_object('type', 'scope_name'))::text as line
from scope_name n
where n.tenant = $1 and scope_matches($2, n.scope) and scope_matches($3, n.scope)
  and ($5::text[] is null or n.scope > ($5::text[])[1])
order by n.scope limit $4;

-- name: export_project_setting
-- Settings of projects, after the key $5; no links to projects that may not be read.
select p.project, p.name,
       (to_jsonb(p) - 'tenant' || jsonb_build_object('type', 'project_setting'))::text as line
from project_setting p
where p.tenant = $1 and scope_matches($2, 'project/' || p.project) and scope_matches($3, 'project/' || p.project)
  and (not p.name ^@ 'link/' or scope_matches($2, 'project/' || substr(p.name, 6)))
  and ($5::text[] is null or (p.project, p.name) > (($5::text[])[1], ($5::text[])[2]))
order by p.project, p.name limit $4;

-- name: export_session
-- Sessions of agent $6 (null: any), after the key $5.
select s.id, (to_jsonb(s) - '{tenant,own_scopes}'::text[] || jsonb_build_object(
         'type', 'session', 'summary', shown_summary($1, s.id, s.summary)))::text as line
from session s
where s.tenant = $1 and scope_matches($2, s.scope) and scope_matches($3, s.scope)
  and ($6::text is null or s.agent = $6) and ($5::text[] is null or s.id > ($5::text[])[1]::uuid)
order by s.id limit $4;

-- name: export_turn
-- Turns of the exported sessions, after the key $5.
select t.session, t.ordinal,
       (to_jsonb(t) - '{tenant,doc,terms}'::text[] || jsonb_build_object(
         'type', 'turn', 'content', shown_turn_text($1, t.id, t.content),
         'output', shown_turn_text($1, t.id, t.output)))::text as line
from turn t join session s on s.tenant = $1 and s.id = t.session
where t.tenant = $1 and scope_matches($2, s.scope) and scope_matches($3, s.scope)
  and ($6::text is null or s.agent = $6)
  and ($5::text[] is null or (t.session, t.ordinal) > (($5::text[])[1]::uuid, ($5::text[])[2]::int))
order by t.session, t.ordinal limit $4;

-- name: summaries_reset_seen
-- Summaries of the scopes $2 that have to look at all again: what was imported keeps its times.
update summary_version set seen = null
where tenant = $1 and scope = any($2::text[]) and seen is not null;

-- name: scope_note_memories
-- Active memories after (scope $4, id $5), in that order, as shown; without anchors.
select * from memory_view($1) m
where m.tenant = $1 and scope_matches($2, m.scope) and scope_matches($3, m.scope) and m.status = 'active'
  and m.kind not in ('file', 'entity')
  and ($4::text is null or (m.scope, m.id) > ($4, $5::uuid))
order by m.scope, m.id limit $6;

-- name: scope_note_edges
-- The open edges from memories of a list to other active ones in the notes.
select e.src, e.dst, e.kind from edge e join memory m on m.tenant = $1 and m.id = e.dst
where e.tenant = $1 and e.src = any($2::uuid[]) and e.known_to is null and m.status = 'active'
  and m.kind not in ('file', 'entity') and scope_matches($3, m.scope) and scope_matches($4, m.scope)
order by e.src, e.kind, e.dst;

-- name: scope_note_summary
-- The summary of a scope that the grants $3 cover.
select content from summary where tenant = $1 and scope = $2 and scope_matches($3, scope);

-- name: scope_note_forgotten_ids
-- Which of the short ids $3 belong to forgotten memories of a scope.
select short from memory
where tenant = $1 and scope = $2 and short = any($3::text[]) and status = 'deleted';
