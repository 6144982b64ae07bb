-- name: redaction_claim
-- Claims a tenant whose texts are to be redacted, for this caller alone.
select tenant, tenant_name, started as begun, table_name as part, row_key as place
from redaction_claim(make_interval(secs => $1));

-- name: redaction_page
-- Rows of a table after a place, with their texts.
select row_key as place, texts, seen, scopes from redaction_page($1, $2, $3, $4);

-- name: redaction_answers
-- Stored responses after a key, in order.
select key, body from idempotency where tenant = $1 and key > $2 and body is not null
order by key limit $3;

-- name: redaction_state
-- The progress of a tenant's redaction since a secret was last put.
select e.requested as requested_at, e.finished, e.runs as passes, e.rows_read as examined,
       e.rows_redacted as redacted
from vault_epoch e where e.tenant = $1 and e.requested is not null;
