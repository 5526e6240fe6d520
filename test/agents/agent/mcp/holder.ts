/** Starts the MCP server of the tests, prints the number of its tools, and waits until it is killed. */
import { Effect } from "effect"
import * as Mcp from "../../../../src/agents/agent/Mcp.ts"
import { platform } from "../../../../src/node.ts"

const [, , script = "", pidFile = ""] = process.argv
await Mcp.tools({ command: process.execPath, args: [script, pidFile] }).pipe(
  Effect.andThen(({ length }) => Effect.sync(() => console.log(length))),
  Effect.andThen(Effect.never),
  Effect.provide(platform),
  Effect.runPromise,
)
