-- While a table has no statistics, both indexes of open edges looked as good for either end, and each
-- look-up could read all edges of the tenant. By this one alone nothing can be found but by its end.
drop index edge_in;
create index edge_in on edge (dst, tenant, kind) where known_to is null;
