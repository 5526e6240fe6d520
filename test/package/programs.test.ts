import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, describe, it } from "vitest"
import { programsIn } from "../../scripts/bundle/programs.ts"

const folder = mkdtempSync(join(tmpdir(), "effect-programs-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Makes a folder of sources with a module `thread.ts` of this text and a program `worker-node.ts`. */
const sourceWith = (name: string, text: string): string => {
  const source = join(folder, name)
  mkdirSync(join(source, "pool"), { recursive: true })
  writeFileSync(join(source, "pool/thread.ts"), text)
  writeFileSync(join(source, "pool/worker-node.ts"), "")
  return source
}

describe("the programs with bundles of their own", () => {
  it("are all that the library starts as threads and processes", () =>
    assert.deepStrictEqual(programsIn(fileURLToPath(new URL("../../src", import.meta.url))), [
      "command/cli/userCode/watchThread",
      "rl/env/pool/worker-node",
      "spread/ranks/rank-node",
      "tensor/backend/machine-code-node",
      "trainer/engine/engine-node",
      "trainer/ranks/rank-node",
      "trainer/reference/reference-node",
      "trainer/tinker/training/training-node",
    ]))

  it("are named by calls, not by comments", () => {
    const text = `/**\n * programBeside(import.meta.url, "other-node")\n */\nstart(programBeside(import.meta.url, "worker-node"))\n`
    assert.deepStrictEqual(programsIn(sourceWith("comment", text)), ["pool/worker-node"])
  })

  it("must exist", () => {
    const source = sourceWith("missing", `start(programBeside(import.meta.url, "other-node"))\n`)
    assert.throws(() => programsIn(source), /pool\/thread\.ts: .* pool\/other-node\.ts/)
  })

  it("must be named in a way that the build can read", () => {
    const source = sourceWith("variable", `start(programBeside(import.meta.url, name))\n`)
    assert.throws(() => programsIn(source), /pool\/thread\.ts: .* which the build can read/)
  })
})
