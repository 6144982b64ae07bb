// Written by `reverie setup`: hands the conversation over, and adds what memory knows of it.
import { spawn } from "node:child_process"

const COMMAND = __COMMAND__
const OPTIONS = __OPTIONS__
const WAIT_MILLISECONDS = 10000
// What memory knows of a file comes with it: a file is read before it is edited.
const FILE_TOOLS = new Set(["read", "edit", "write"])

/**
 * Runs `reverie hook EVENT`; resolves to the text for the model, empty after any failure.
 * @param {string} event
 * @param {object} payload
 * @returns {Promise<string>}
 */
function runHook(event, payload) {
  return new Promise((resolve) => {
    let answer = ""
    const words = [...COMMAND.slice(1), event, ...OPTIONS]
    const child = spawn(COMMAND[0], words, { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), WAIT_MILLISECONDS)
    const finish = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(answer).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    }
    child.on("error", finish)
    child.on("close", finish)
    child.stdout.on("data", (data) => (answer += data))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

/** @type {import("@opencode-ai/plugin").Plugin} */
export const ReveriePlugin = async ({ directory }) => {
  const sessions = new Set()
  /** @type {(event: string, session: string, fields: object) => Promise<string>} */
  const call = (event, session, fields) =>
    runHook(event, { session_id: session, cwd: directory, ...fields })

  return {
    "chat.message": async (input, output) => {
      const texts = output.parts.filter((part) => part.type === "text").filter((text) => !text.synthetic)
      if (texts.length === 0) return
      const session = input.sessionID
      const blocks = []
      if (!sessions.has(session)) {
        sessions.add(session)
        blocks.push(await call("SessionStart", session, { source: "startup" }))
      }
      const prompt = texts.map((part) => part.text).join("\n\n")
      const turn = { prompt, message_id: texts[0].id }
      blocks.push(await call("UserPromptSubmit", session, turn))
      const context = blocks.filter(Boolean).join("\n\n")
      if (context) {
        output.parts.push({ ...texts[0], id: `${texts[0].id}m`, text: context, synthetic: true })
      }
    },
    "tool.execute.after": async (input, output) => {
      await call("PostToolUse", input.sessionID, {
        tool_name: input.tool,
        tool_input: input.args,
        tool_use_id: input.callID,
        tool_response: { output: output.output, exit_code: output.metadata?.exit ?? 0 },
      })
      if (!FILE_TOOLS.has(input.tool)) return
      const action = { tool_name: input.tool, tool_input: input.args }
      const context = await call("PreToolUse", input.sessionID, action)
      if (context) output.output += `\n\n${context}`
    },
    event: async ({ event }) => {
      if (event.type === "message.part.updated") {
        const part = event.properties.part
        // The text of an answer is complete when it has an end; a prompt has none.
        if (part.type !== "text" || !part.time?.end) return
        const turn = { last_assistant_message: part.text, message_id: part.id }
        await call("Stop", part.sessionID, turn)
      } else if (event.type === "session.compacted") {
        await call("PreCompact", event.properties.sessionID, {})
      }
    },
    dispose: async () => {
      await Promise.all([...sessions].map((session) => call("SessionEnd", session, {})))
    },
  }
}
