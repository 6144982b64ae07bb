"""Reading text: words for the index, chunks, Markdown, turns."""
