import { assert, describe, it } from "vitest"
import { withoutFiles } from "../../../spread/programs/fewFiles.ts"

const before = `
import { Effect } from "effect"
import { deliver } from ${JSON.stringify(new URL("../../../../src/command/cli/alerts/deliver.ts", import.meta.url).href)}
const delivered = deliver({ command: "true" }, { event: "failed", run: "results/0001", name: "walk" })
// What this loads needs files, too.
await Effect.runPromise(delivered)`

describe.skipIf(process.platform !== "linux")("an alert for whose command the system has no room", () => {
  it("is a warning, and does not end the run", () => {
    const body = `await Effect.runPromise(delivered)
process.stdout.write(String(process.listenerCount("exit")))`
    const { stdout, stderr, status } = withoutFiles({ before, body })
    assert.match(stderr, /the alert to true failed: .*EMFILE/)
    assert.deepStrictEqual([stdout, status], ["0", 0])
  })
})
