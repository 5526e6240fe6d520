// A loop of one's own with the tools of an MCP server. `npx effect eval mcp-tools.ts` evaluates it; OPENAI_API_KEY has the key.
import { fileURLToPath } from "node:url"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { Evaluations, FunctionAgent } from "effect-rl"
import OpenAI from "openai"
import { questions } from "./questions.ts"

const program = fileURLToPath(new URL("mcp-server.ts", import.meta.url))

const mine = FunctionAgent.make("mcp-tools", async ({ text }, { lm, signal }) => {
  const openai = new OpenAI(await lm.connect())
  const server = new Client({ name: "sums", version: "1.0.0" })
  await server.connect(new StdioClientTransport({ command: process.execPath, args: [program] }))
  try {
    const tools = (await server.listTools()).tools.map(({ name, description = "", inputSchema: parameters }) => {
      const call = async (values: Record<string, unknown>) => {
        const { content } = await server.callTool({ name, arguments: values })
        return JSON.stringify(content)
      }
      return {
        type: "function" as const,
        function: { name, description, parameters, parse: JSON.parse, function: call },
      }
    })
    const messages = [{ role: "user" as const, content: text }]
    const runner = openai.chat.completions.runTools({ model: lm.name, messages, tools }, { signal })
    return (await runner.finalContent()) ?? ""
  } finally {
    await server.close()
  }
})

export default Evaluations.fromConfig({
  dataset: { items: questions, id_field: "id" },
  agent: { type: mine, lm_config: { model: "gpt-4.1-mini" } },
  scorers: ["exact", "tokens"],
})
