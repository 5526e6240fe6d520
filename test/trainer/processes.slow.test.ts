import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { filesIn } from "./ranks.ts"

const script = fileURLToPath(new URL("rankProcess.ts", import.meta.url))

interface RankProcess {
  readonly child: ChildProcess
  readonly lines: Array<string>
  /** Waits until a printed line passes the test. */
  readonly line: (test: (line: string) => boolean) => Promise<string>
  readonly ended: Promise<{ readonly code: number | null; readonly errors: string }>
}

const startRank = (outputs: string, store: string, rank: number): RankProcess => {
  const child = spawn(process.execPath, [script, outputs, store, String(rank), "3"], {
    stdio: ["ignore", "pipe", "pipe"],
  })
  const lines: Array<string> = []
  const listeners = new Set<() => void>()
  let errors = ""
  let rest = ""
  child.stdout.on("data", (data) => {
    const whole = (rest + String(data)).split("\n")
    rest = whole.pop() ?? ""
    lines.push(...whole.filter((line) => line !== ""))
    for (const listener of listeners) listener()
  })
  child.stderr.on("data", (data) => (errors += String(data)))
  const ended = new Promise<{ code: number | null; errors: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, errors })),
  )
  const line = (test: (line: string) => boolean): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = lines.find(test)
        if (found === undefined) return
        listeners.delete(look)
        resolve(found)
      }
      listeners.add(look)
      look()
      void ended.then(() => reject(new Error(`the rank ended: ${errors}`)))
    })
  return { child, lines, line, ended }
}

const stepOf = (line: string): number => Number(line.split(" ")[1])

describe("ranks in processes of their own, over a folder", () => {
  // Most of the time passes until a deadline, so both wait at once.
  it.concurrent.for([0, 1])(
    "notice that rank %i was killed, and begin again at the last checkpoint",
    async (victim) => {
      const directory = mkdtempSync(join(tmpdir(), "ranks-"))
      const outputs = join(directory, "outputs")
      const files = filesIn(outputs)
      const start = (store: string) => [0, 1, 2].map((rank) => startRank(outputs, join(directory, store), rank))
      const started: Array<RankProcess> = []
      try {
        files.add("run_a")
        const first = start("store-1")
        started.push(...first)
        await Promise.all(first.map(({ line }) => line((text) => stepOf(text) >= 3)))
        first[victim].child.kill("SIGKILL")
        for (const [rank, { ended }] of first.entries()) {
          const { code, errors } = await ended
          if (rank === victim) continue
          assert.strictEqual(code, 1)
          assert.match(errors, new RegExp(`rank ${victim} of 3 did not arrive within 15s`))
        }
        // Each rank printed the same steps as far as it came.
        const [one, other] = first.filter((_, rank) => rank !== victim).map(({ lines }) => lines)
        assert.deepStrictEqual(one.slice(0, other.length), other.slice(0, one.length))
        const last = Math.max(...first.flatMap(({ lines }) => lines.map(stepOf)))

        const second = start("store-2")
        started.push(...second)
        const lines = await Promise.all(second.map(({ line }) => line((text) => text !== "")))
        for (const line of lines) assert.isAbove(stepOf(line), last - 1)
      } finally {
        for (const { child } of started) child.kill("SIGKILL")
        await Promise.all(started.map(({ ended }) => ended))
        rmSync(directory, { recursive: true, force: true })
      }
    },
  )
})
