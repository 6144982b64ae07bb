-- name: webhook_put
-- Sets the secret of a project's webhook; returns when it was first set.
insert into webhook as h (tenant, project, kind, sealed, key_id, actor)
values ($1, $2, $3, $4, $5, $6)
on conflict (tenant, project, kind) do update
  set sealed = excluded.sealed, key_id = excluded.key_id, actor = excluded.actor, updated = now()
returning project, kind, key_id, actor, created, updated;

-- name: webhook_list
-- The webhooks of projects that the caller may administer, after those of $4 and $5, without their
-- secrets.
select h.project, h.kind, h.key_id, h.actor, h.created, h.updated from webhook h
where h.tenant = $1 and scope_matches($2, 'project/' || h.project) and ($3::text is null or h.project = $3)
  and (h.project, h.kind) > ($4::text, $5::text)
order by h.project, h.kind limit $6;

-- name: webhook_delete
-- Deletes a webhook's secret.
delete from webhook h where h.tenant = $1 and h.project = $2 and h.kind = $3 returning h.project;
