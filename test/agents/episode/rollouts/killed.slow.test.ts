import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import * as RolloutEngine from "../../../../src/agents/episode/rollouts/RolloutEngine.ts"
import { killedBatch } from "./killed.ts"

const script = fileURLToPath(new URL("./killed.ts", import.meta.url))
const sizeOf = (file: string): number => (existsSync(file) ? statSync(file).size : 0)

/** Runs the batch in a process, which is killed as soon as the file has grown. */
const killed = async (file: string, stay: number): Promise<NodeJS.Signals | null> => {
  const before = sizeOf(file)
  const child = spawn(process.execPath, [script, file, String(stay)], { stdio: ["ignore", "ignore", "inherit"] })
  const ended = new Promise<NodeJS.Signals | null>((resolve) => child.on("exit", (_, signal) => resolve(signal)))
  while (child.exitCode === null && sizeOf(file) === before) await setTimeout(1)
  child.kill("SIGKILL")
  return ended
}

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

describe("a batch in a process that is killed", () => {
  it("resumes at the end of its file, and gives the same bytes", async () => {
    const folder = mkdtempSync(join(tmpdir(), "effect-rl-killed-"))
    try {
      const write = (file: string) =>
        RolloutEngine.write(killedBatch(0), file).pipe(Effect.provide(files), Effect.runPromise)
      const file = join(folder, "killed.jsonl")
      for (const stay of [120, 240, 399]) assert.strictEqual(await killed(file, stay), "SIGKILL")
      const lines = readFileSync(file, "utf8").split("\n").length - 1
      const summary = await write(file)
      const untouched = join(folder, "untouched.jsonl")
      await write(untouched)
      assert.strictEqual(readFileSync(file, "utf8"), readFileSync(untouched, "utf8"))
      assert.deepStrictEqual(summary, { requests: 400, rollouts: 356, failed: 44, dropped: 0, resumed: lines })
      assert.isAbove(lines, 0)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
