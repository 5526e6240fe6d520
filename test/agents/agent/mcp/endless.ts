/** An MCP server, over stdin and stdout or HTTP, whose list of tools never ends. */
import { createInterface } from "node:readline"
import type { Writable } from "node:stream"
import { answer } from "./server.ts"

/** Answers a message of the client. */
export const answerEndlessly = (line: string, output: Writable): void => {
  const { id, method } = JSON.parse(line)
  if (method !== "tools/list") {
    const message = answer(line)
    if (message !== undefined) output.write(`${JSON.stringify(message)}\n`)
    return
  }
  output.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[{"name":"`)
  const piece = "x".repeat(2 ** 20)
  const write = (): void => {
    while (output.write(piece));
    output.once("drain", write)
  }
  write()
}

if (process.argv[1] === import.meta.filename)
  createInterface({ input: process.stdin }).on("line", (line) => answerEndlessly(line, process.stdout))
