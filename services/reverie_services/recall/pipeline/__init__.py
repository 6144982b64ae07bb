"""How a recall is answered: retrieve, expand, score, rerank, select."""
