import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { freePort } from "../../servers/listen.ts"

/** Tells whether this machine has a Redis server; a test that needs one is skipped otherwise. */
export const hasRedis = spawnSync("redis-server", ["--version"]).status === 0

const ended = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
  })

/** Starts a Redis server of its own on a free port, and stops it with the scope. Returns its address. */
export const redisServer = Effect.gen(function* () {
  const port = yield* Effect.promise(() => freePort())
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "redis-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
  )
  const settings = { port, bind: "127.0.0.1", dir: directory, save: "", appendonly: "no" }
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(
        "redis-server",
        Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
        { stdio: ["ignore", "pipe", "inherit"] },
      ),
    ),
    (child) =>
      Effect.andThen(
        Effect.sync(() => child.kill()),
        ended(child),
      ),
  )
  yield* Effect.callback<void>((resume) => {
    let output = ""
    child.stdout.on("data", (data) => {
      output += String(data)
      if (output.includes("Ready to accept connections")) resume(Effect.void)
    })
    child.once("exit", (code) => resume(Effect.die(new Error(`redis-server ended with ${code}: ${output}`))))
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: Effect.andThen(
      Effect.sync(() => child.kill("SIGKILL")),
      ended(child),
    ),
  }
})
