/**
 * A small MCP server for tests, which speaks the protocol over stdin and stdout, or answers its messages one by one for a
 * server over HTTP. Its tools add, repeat, fail, never answer, or end the process.
 */
import { writeFileSync } from "node:fs"
import { createInterface } from "node:readline"

const object = (properties: object, required: ReadonlyArray<string>): object => ({
  type: "object",
  properties,
  required,
})
const number = { type: "number" }
const text = { type: "string" }

const tools = [
  {
    name: "sum",
    description: "Adds two numbers.",
    inputSchema: object({ first_one: number, b: number }, ["first_one", "b"]),
  },
  { name: "echo", inputSchema: object({ text }, ["text"]) },
  { name: "variable", description: "Reads a variable.", inputSchema: object({ name: text }, ["name"]) },
  { name: "broken", inputSchema: object({}, []) },
  { name: "hang", inputSchema: object({}, []) },
  { name: "leave", inputSchema: object({}, []) },
]

const resultOf = (name: unknown, given: Readonly<Record<string, unknown>>): object | undefined => {
  const said = (text: string, isError = false) => ({ content: [{ type: "text", text }], isError })
  if (name === "sum") return said(String(Number(given["first_one"]) + Number(given["b"])))
  if (name === "echo")
    return {
      content: [
        { type: "text", text: given["text"] },
        { type: "image", data: "", mimeType: "image/png" },
      ],
    }
  if (name === "variable") return said(process.env[String(given["name"])] ?? "not set")
  if (name === "broken") return said("the disk is full", true)
  if (name === "leave") process.exit(7)
  return undefined
}

/** Answers a message of the client; undefined if it gets no answer. */
export const answer = (line: string): object | undefined => {
  const { id, method, params = {} } = JSON.parse(line)
  if (id === undefined) return undefined
  const reply = (result: object): object => ({ jsonrpc: "2.0", id, result })
  if (method === "initialize") {
    const { protocolVersion } = params
    const serverInfo = { name: "for tests", version: "1" }
    return reply({ protocolVersion, capabilities: { tools: {} }, serverInfo })
  }
  if (method === "tools/list") {
    return params.cursor === undefined
      ? reply({ tools: tools.slice(0, 2), nextCursor: "more" })
      : reply({ tools: tools.slice(2) })
  }
  const result = resultOf(params.name, params.arguments ?? {})
  return result === undefined ? undefined : reply(result)
}

if (process.argv[1] === import.meta.filename) {
  const [, , pidFile] = process.argv
  if (pidFile !== undefined) writeFileSync(pidFile, String(process.pid))
  // When stdin is closed, nothing keeps the process alive.
  createInterface({ input: process.stdin }).on("line", (line) => {
    const message = answer(line)
    if (message !== undefined) process.stdout.write(`${JSON.stringify(message)}\n`)
  })
}
