"""Workers that digest conversations into memories and maintain the graph."""
