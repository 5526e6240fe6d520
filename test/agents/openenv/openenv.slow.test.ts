import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CartPole } from "../../../src/index.ts"
import { servedNumbers } from "../../../src/rl/env/openenv/ServedNumbers.ts"
import { makeServers } from "../../../src/spread/openenv/connect-node.ts"
import { OpenEnvServers } from "../../../src/spread/openenv/OpenEnvServers.ts"
import { has, python } from "../../rl/env/foreign/python.ts"
import { freePort } from "../../servers/listen.ts"
import { opened } from "../task/opening.ts"
import { play } from "../task/support.ts"
import { served } from "./support.ts"

const script = fileURLToPath(new URL("openenv_reference.py", import.meta.url))

/** Starts the server of OpenEnv until the scope closes, and waits until it answers. */
const reference = (sessions: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const port = await freePort()
      const child = spawn(python, [script, "serve", String(port), String(sessions)], { stdio: "inherit" })
      const url = `http://127.0.0.1:${port}`
      const answers = () =>
        fetch(`${url}/health`).then(
          ({ ok }) => ok,
          () => false,
        )
      while (child.exitCode === null && !(await answers())) await new Promise(setImmediate)
      return { child, url }
    }),
    ({ child }) =>
      Effect.promise(async () => {
        child.kill()
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
      }),
  ).pipe(Effect.map(({ url }) => url))

describe.runIf(has("openenv.core", "uvicorn"))("OpenEnv's own server and client", () => {
  it.live("are played by our agents, whose sessions are limited at both ends", () =>
    Effect.gen(function* () {
      const url = yield* reference(2)
      const config = { type: "openenv", id: "guess", url, sessions: 4, num_tasks: 8 }
      const { tasks } = yield* Effect.provideServiceEffect(opened(config), OpenEnvServers, makeServers)
      const envs = yield* Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7], tasks.at)
      const played = yield* Effect.forEach(
        envs,
        (env) => play(env, (_, step) => (step === 0 ? "a lot" : String(step - 1))),
        { concurrency: "unbounded" },
      )
      for (const { score, terminated, observations } of played) {
        assert.deepStrictEqual([score, terminated], [1, true])
        assert.strictEqual(observations[0], "Guess.")
        assert.include(observations[1] ?? "", "number: expected a value of type integer")
        assert.strictEqual(observations.at(-1), "Right.")
      }
      const failure = yield* Effect.flip(play(envs[0], () => "100"))
      assert.strictEqual(failure.message, "guess-1: its server failed at step 1 with EXECUTION_ERROR: far too high")
    }).pipe(Effect.scoped),
  )

  it.live("plays an env of ours", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* servedNumbers(CartPole.env))
      const child = spawn(python, [script, "play", url], { stdio: ["ignore", "pipe", "inherit"] })
      const pieces: Array<Uint8Array> = []
      child.stdout.on("data", (piece: Uint8Array) => pieces.push(piece))
      yield* Effect.promise(() => once(child, "close"))
      const { episodes, refused } = JSON.parse(Buffer.concat(pieces).toString())
      assert.isAbove(episodes[0].seen.length, 9)
      assert.strictEqual(episodes[0].return, episodes[0].seen.length - 1)
      assert.deepStrictEqual(episodes[0].state, { episode_id: "seven", step_count: episodes[0].seen.length - 1 })
      assert.deepStrictEqual(episodes[1], episodes[0])
      assert.strictEqual(refused, "Server error: Invalid message (code: VALIDATION_ERROR)")
    }).pipe(Effect.scoped),
  )
})
