import { assert, describe, it } from "vitest"
import { headerSize } from "../../../src/spread/programs/Connection.ts"
import { withoutFiles } from "./fewFiles.ts"

const before = `
import { Effect } from "effect"
import { connectTo } from ${JSON.stringify(new URL("../../../src/spread/programs/process-node.ts", import.meta.url).href)}
const replyOf = Effect.flatMap(connectTo("Own-v0", { command: ["cat"] })("env 0"), ({ send }) =>
  Effect.callback((resume) => send(Buffer.alloc(${headerSize}), 100, (reply) => resume(Effect.succeed(reply)))),
)
// The program replies with the request, which is an empty reply. What this loads needs files, too.
await Effect.runPromise(Effect.scoped(replyOf))`

describe.skipIf(process.platform !== "linux")("a program for whose pipes the system has no room", () => {
  it("fails its request, and not the whole process", () => {
    const body = `process.stdout.write((await Effect.runPromise(Effect.scoped(replyOf))).message)`
    const { stdout, stderr, status } = withoutFiles({ before, body })
    assert.match(stdout, /^Own-v0: cannot start its program: .*EMFILE$/, stderr)
    assert.strictEqual(status, 0)
  })
})
