"""Names that agents give to tools which only read or list something."""

from __future__ import annotations

READ_TOOLS = frozenset(
    {
        *("Read", "Glob", "Grep", "LS", "NotebookRead", "ToolSearch"),
        *("read", "glob", "grep", "list"),
        *("read_file", "read_files", "read_many_files", "list_directory", "list_files"),
        *("search_files", "search_file_content", "search_codebase", "codebase_search"),
        *("list_code_definition_names", "developer__tree"),
    }
)
BOOKKEEPING_TOOLS = frozenset(
    {
        *("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "BashOutput"),
        *("todowrite", "todoread", "update_todo_list", "write_todos"),
    }
)
