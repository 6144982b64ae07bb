"""The gateway that agents talk to: recall, context, graph reads; it forwards the rest."""
