import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { utf8 } from "../../../../src/base/text/utf8.ts"
import { EnvError } from "../../../../src/base/EnvError.ts"
import { connectTo, lines } from "../../../../src/spread/programs/process-node.ts"
import * as HistoryAgent from "../../../../src/agents/agent/HistoryAgent.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"
import { Recorder } from "../../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../../src/run/store/RunStore.ts"
import * as Runtime from "../../../../src/agents/training/Runtime.ts"
import { layer as textPrograms } from "../../../../src/agents/task/foreign/programs-node.ts"
import { root, withFolder, write } from "../../../command/cli/effect.ts"
import { isRunning } from "../../../command/cli/isRunning.ts"
import { python } from "../../../rl/env/foreign/python.ts"
import { disk } from "../../../run/store/disk.ts"
import { opened, problem } from "../opening.ts"
import { play, saying } from "../support.ts"

/** The text of a program that counts up to 3. `onStep` runs before the reply to a step. */
const program = (onStep = "") => `
import { createInterface } from "node:readline"
let at = 0
for await (const line of createInterface({ input: process.stdin })) {
  const { type, action } = JSON.parse(line)
  at = type === "reset" ? 0 : at + (action === "more" ? 1 : 0)
  if (type === "step") { ${onStep} }
  const seen = { observation: "At " + at + ".", actions: ["more", "wait"] }
  const reply = type === "open" ? { protocol: 1, tasks: 5 } : { ...seen, reward: at === 3 ? 1 : 0, done: at === 3 }
  process.stdout.write(JSON.stringify(reply) + "\\n")
}
`

const configOf = (file: string) => ({ type: "foreign", id: "count", command: [process.execPath, file] })

/** Writes the program, and plays its first task. */
const played = (text: string, more: object = {}) =>
  Effect.promise(() =>
    withFolder((folder) => {
      write(folder, "count.mjs", text)
      return Effect.runPromise(
        Effect.gen(function* () {
          const { tasks } = yield* opened({ ...configOf(join(folder, "count.mjs")), ...more })
          return yield* Effect.result(play(yield* tasks.at(0), saying("more")))
        }).pipe(Effect.provide(textPrograms)),
      )
    }),
  )

const failureOf = (onStep: string, more: object = {}) =>
  Effect.map(played(program(onStep), more), (result) =>
    result._tag === "Failure" ? result.failure.message : assert.fail("succeeded"),
  )

describe("a program that plays tasks", () => {
  it.effect("writes a line for each that it reads", () =>
    Effect.gen(function* () {
      const result = yield* played(program())
      assert.strictEqual(result._tag === "Success" ? result.success.score : result.failure.message, 1)
    }),
  )

  it.effect("ends the episode where it fails, ends, does not answer or writes something else", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* failureOf("console.error('out of fuel'); process.exit(3)"),
        "count: the process of its tasks ended with exit code 3: out of fuel",
      )
      assert.strictEqual(
        yield* failureOf("continue", { timeout_seconds: 1 }),
        "count: the process of its tasks did not answer within 1 seconds, so it was ended",
      )
      assert.match(
        yield* failureOf("console.log('a step')"),
        /replied to "step" by "a step"; expected an object of JSON in one line|that is no reply: "a step"/,
      )
      assert.match(
        yield* Effect.provide(problem({ ...configOf("x"), command: ["no-such-program"] }), textPrograms),
        /command: count: cannot start its program: no-such-program was not found/,
      )
    }),
  )

  it.effect.skipIf(spawnSync(python, ["--version"]).status !== 0)(
    "can be written in Python, and is played by agents",
    () =>
      Effect.gen(function* () {
        const script = join(root, "examples/foreign-envs/adventure.py")
        assert.isAtMost(readFileSync(script, "utf8").trim().split("\n").length, 60)
        const config = { type: "foreign", id: "adventure", command: [python, script], processes: 2 }
        /** Walks by the list of the possible actions: it takes and opens what it can. */
        const walker: Scripted.Script = ({ messages }) => {
          const told = messages.at(-1)?.content ?? ""
          const [, list = ""] = [...told.matchAll(/^Possible actions: (.*)$/gm)].at(-1) ?? []
          const actions = list.split(", ")
          return actions.find((action) => action === "take key") ?? actions[told.length % actions.length]
        }
        const run = Effect.gen(function* () {
          const train = yield* opened({ ...config, num_tasks: 6 })
          const validation = yield* opened({ ...config, num_tasks: 8, options: { rooms: 2 } })
          return yield* Runtime.run({
            agent: HistoryAgent.make({ model: "walker" }),
            train: train.tasks,
            validation: validation.tasks,
            runtime: { validationFreq: 3 },
          })
        }).pipe(
          Effect.provide(
            Layer.mergeAll(RunStore.memory().layer, Recorder.layerSilent, disk, Scripted.layer(walker), textPrograms),
          ),
        )
        const result = yield* run
        assert.strictEqual(result.validation?.episodes, 8)
        assert.isAbove(result.validation?.meanReturn ?? 0, 0.5)
        assert.strictEqual((yield* run).digest, result.digest)
        const broken = yield* opened({ ...config, num_tasks: 1, options: { rooms: "many" } }).pipe(
          Effect.flatMap(({ tasks }) => tasks.at(0)),
          Effect.flatMap((env) => play(env, saying("go north"))),
          Effect.flip,
          Effect.provide(textPrograms),
        )
        assert.match(broken.message, /^adventure-1: its program failed at "reset": TypeError/)
      }),
  )

  it.effect.skipIf(process.platform === "win32")(
    "ends with the processes that it has started, such as those of a shell",
    () =>
      Effect.gen(function* () {
        const pid = yield* Effect.scoped(
          Effect.gen(function* () {
            const shell = ["sh", "-c", "sleep 1000 & echo $!; wait"]
            const { send } = yield* connectTo("shell", { command: shell }, lines)("its tasks")
            return yield* Effect.callback<number>((resume) =>
              send(new Uint8Array(), 100, (reply) =>
                resume(reply instanceof EnvError ? Effect.die(reply) : Effect.succeed(Number(utf8.decode(reply.body)))),
              ),
            )
          }),
        )
        yield* Effect.promise(async () => {
          while (isRunning(pid)) await new Promise((resolve) => setImmediate(resolve))
        })
      }),
  )

  it("leaves no process when either side is killed", () =>
    withFolder(async (folder) => {
      write(folder, "count.mjs", program())
      write(
        folder,
        "run.ts",
        `
import { Effect } from ${JSON.stringify(import.meta.resolve("effect"))}
import { Datasets, Rng } from ${JSON.stringify(join(root, "src/index.ts"))}
import { platform } from ${JSON.stringify(join(root, "src/node.ts"))}
const config = ${JSON.stringify(configOf(join(folder, "count.mjs")))}
const episode = Effect.gen(function* () {
  const { tasks } = yield* Datasets.open(config, { baseDir: "." })
  const { step } = yield* Effect.flatMap(tasks.at(0), (env) => env.begin(Rng.stream(1)))
  console.log("ready")
  while (true) yield* Effect.delay(step("wait"), 10)
})
Effect.runPromise(Effect.scoped(episode).pipe(Effect.provide(platform))).catch((error) => { console.log(error.message); process.exit(1) })
`,
      )
      if (!existsSync("/proc/self/task")) return
      const started = async () => {
        const run = spawn(process.execPath, [join(folder, "run.ts")], { stdio: ["ignore", "pipe", "inherit"] })
        const lines = createInterface({ input: run.stdout })[Symbol.asyncIterator]()
        assert.strictEqual((await lines.next()).value, "ready")
        const children = readFileSync(`/proc/${run.pid}/task/${run.pid}/children`, "utf8").trim().split(" ").map(Number)
        assert.lengthOf(children, 1)
        return { run, lines, child: children[0] }
      }
      const { run, child } = await started()
      const ended = once(run, "exit")
      run.kill("SIGKILL")
      await ended
      while (isRunning(child)) await new Promise((resolve) => setImmediate(resolve))

      const other = await started()
      process.kill(other.child, "SIGKILL")
      assert.strictEqual((await other.lines.next()).value, "count: the process of its tasks ended by SIGKILL")
      if (other.run.exitCode === null) await once(other.run, "exit")
    }))
})
