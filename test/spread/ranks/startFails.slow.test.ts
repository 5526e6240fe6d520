import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Starts 40 ranks in a process that may open 40 files only, and prints how that ends. */
const script = `
import { Cause, Effect, Exit } from "effect"
import { startChild } from ${JSON.stringify(new URL("../../../src/spread/workers/process-node.ts", import.meta.url).href)}
const program = new URL(${JSON.stringify(new URL("./idle.ts", import.meta.url).href)})
const ranks = Array.from({ length: 40 }, (_, at) => at + 1)
const all = Effect.forEach(ranks, (rank) => startChild({ rank, program, task: "wait" }), { concurrency: "unbounded" }).pipe(
  Effect.flatMap((ends) => Effect.raceAllFirst(ends)),
  Effect.scoped,
)
const exit = await Effect.runPromiseExit(all)
process.stdout.write(Exit.isFailure(exit) ? Cause.pretty(exit.cause).split("\\n")[0] : "ended")
`

const waiting = (): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("test/spread/ranks/idle.ts")
    } catch {
      return false
    }
  })

describe.skipIf(process.platform !== "linux")("ranks that the system has no room for", () => {
  it("fail in one line that says what to do, and those that were started are ended", () => {
    const command = `ulimit -n 40; exec "$0" --input-type=module --eval "$1"`
    const { stdout, stderr } = spawnSync("bash", ["-c", command, process.execPath, script], {
      cwd: root,
      encoding: "utf8",
    })
    assert.match(stdout, /rank \d+: cannot start its process: .*; set ranks to a smaller number/, stderr)
    assert.deepStrictEqual(waiting(), [])
  })
})
