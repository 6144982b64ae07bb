-- Which migrations a database has is told to any role that may use the schema: a service of a newer
-- version waits until it has its own.
grant select on _yoyo_migration to public;
