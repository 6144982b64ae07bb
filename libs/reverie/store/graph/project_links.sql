-- name: project_links
-- The links of the projects $2. Each half is a setting of its project; a link has both halves.
select p.project, q.project as linked,
       (p.value ->> 'discoverable')::bool and (q.value ->> 'discoverable')::bool as discoverable
from project_setting p
join project_setting q on q.tenant = $1 and q.project = substr(p.name, 6) and q.name = 'link/' || p.project
where p.tenant = $1 and p.project = any($2) and p.name ^@ 'link/'
order by p.project, q.project;
