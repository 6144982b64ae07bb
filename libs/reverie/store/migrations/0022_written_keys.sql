-- All memories of a key, superseded ones too: how often it was written is asked on writing.
create index memory_key_written on memory (tenant, scope, key) where key is not null;
