-- name: replica_state
-- The replayed bytes of the log; whether the server follows a primary (or is one); its delay in seconds.
select
  (case when pg_is_in_recovery() then coalesce(pg_last_wal_replay_lsn(), '0/0')
        else pg_current_wal_insert_lsn() end - '0/0'::pg_lsn)::bigint as replayed,
  not pg_is_in_recovery() or exists (select from pg_stat_wal_receiver) as follows,
  case when not pg_is_in_recovery() or pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
       else coalesce(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()), 0)
  end::float8 as behind;
