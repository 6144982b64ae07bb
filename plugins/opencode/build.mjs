// Makes index.js: the module that `reverie setup opencode` writes, for every project.
import { readFileSync, writeFileSync } from "node:fs"

const here = new URL(".", import.meta.url)
const source = new URL("../../libs/reverie/agent/setup/plugin.js", here)
const text = readFileSync(source, "utf8")
  .replace("Written by `reverie setup`", "The plugin of OpenCode")
  .replace("__COMMAND__", JSON.stringify(["reverie", "hook"]))
  .replace("__OPTIONS__", JSON.stringify(["--agent", "opencode"]))
writeFileSync(process.argv[2] ?? new URL("index.js", here), text)
