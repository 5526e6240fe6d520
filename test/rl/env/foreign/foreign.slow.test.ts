import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import type { AsyncBatchEnv } from "../../../../src/rl/env/BatchEnv.ts"
import type { Env } from "../../../../src/rl/env/Env.ts"
import { EnvError } from "../../../../src/base/EnvError.ts"
import { command, type CommandEnvOptions } from "../../../../src/rl/env/foreign/command-node.ts"
import * as Gymnasium from "../../../../src/rl/env/foreign/gymnasium-node.ts"
import { layer as foreignEnvs } from "../../../../src/rl/env/foreign/layer-node.ts"
import { fromConfig } from "../../../../src/rl/env/fromConfig.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { Recorder } from "../../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../../src/run/store/RunStore.ts"
import * as Train from "../../../../src/rl/train/Train.ts"
import { root, until, withFolder, write } from "../../../command/cli/effect.ts"
import { isRunning } from "../../../command/cli/isRunning.ts"
import { withVariables } from "../../../command/cli/withVariables.ts"
import { keep } from "../../train/inMemory.ts"
import { resumable } from "../../train/resumable.ts"

const script = join(root, "examples/foreign-envs/corridor.mjs")
const corridor = (options: Partial<CommandEnvOptions> = {}): Env =>
  command([process.execPath, script], { id: "corridor", ...options })

const opened = (env: Env, numEnvs: number) =>
  Effect.flatMap(Batch.open(env, numEnvs), (batch) =>
    batch.isAsync === true ? Effect.succeed(batch) : Effect.die(`${env.id} steps at once`),
  )

const random = (numEnvs: number, step: number) =>
  Int32Array.from({ length: numEnvs }, (_, index) => (stream(3, step, index).uniform() < 0.8 ? 1 : 0))

/** All that can be seen of a batch in some steps. */
const trace = Effect.fnUntraced(function* (batch: AsyncBatchEnv, steps: number) {
  const rows: Array<unknown> = []
  for (let step = 0; step < steps; step++) {
    yield* batch.step(random(batch.numEnvs, step))
    const { observations, rewards, terminated, truncated, finalObservations } = batch
    const finals = Array.from(finalObservations, (seen, index) => (terminated[index] | truncated[index] ? seen : null))
    rows.push([[...observations], [...rewards], [...terminated], [...truncated], finals])
  }
  return rows
})

const thrown = (make: () => unknown): string => {
  try {
    make()
  } catch (error) {
    if (error instanceof EnvError) return error.message
    throw error
  }
  return "nothing"
}

/** The text of an env's program in JavaScript, whose description and replies to steps are these. */
const program = (onStep: string, description = "{}") => `
import { readSync, writeSync } from "node:fs"
const read = (size) => {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at < size;) { const n = readSync(0, bytes, at, size - at); if (n === 0) process.exit(); at += n }
  return bytes
}
const reply = (status, body) => {
  const header = Buffer.alloc(8)
  header.writeUInt32LE(body.length, 0)
  header.writeUInt32LE(status, 4)
  writeSync(1, Buffer.concat([header, body]))
}
const description = { protocol: 1, observationType: "float32", maxSteps: null,
  observationSpace: { type: "Box", shape: [1], low: 0, high: 1 }, actionSpace: { type: "Discrete", n: 2 }, ...${description} }
for (let steps = 0; ; ) {
  const header = read(8)
  const body = read(header.readUInt32LE(0))
  if (header.readUInt32LE(4) === 0) reply(0, Buffer.from(JSON.stringify(description)))
  else if (body[body.length - 1] === 3) reply(0, Buffer.alloc(10))
  else { steps++; ${onStep} }
}
`

describe("an env that a program steps", () => {
  it.effect("does not depend on the number of processes, and continues from a snapshot", () =>
    Effect.gen(function* () {
      const one = yield* opened(corridor(), 5)
      yield* one.reset(7, "env")
      const rows = yield* trace(one, 120)
      assert.isTrue(rows.some((row) => JSON.stringify(row).includes("1,")))
      const three = yield* opened(corridor({ processes: 3 }), 5)
      yield* three.reset(7, "env")
      assert.deepStrictEqual(yield* trace(three, 120), rows)
      const resumed = yield* opened(corridor({ processes: 2 }), 5)
      yield* resumed.restore(one.snapshot())
      assert.deepStrictEqual(yield* trace(resumed, 60), yield* trace(one, 60))
      yield* one.restart(Uint8Array.of(0, 1, 0, 0, 1))
      yield* three.reset(7, "env")
      assert.deepStrictEqual(yield* trace(three, 120), rows)
    }),
  )

  it.effect("learns, validates and resumes with the same bits, also from a config", () =>
    Effect.gen(function* () {
      const settings = {
        numEnvs: 4,
        algorithm: Ppo.make({ nsteps: 32, epochs: 1 }),
        totalSteps: 1024,
        validation: { everySteps: 512, episodes: 3 },
      }
      const { whole, resumed } = yield* resumable({ ...settings, env: corridor() }, 300, { env: corridor({}) })
      assert.strictEqual(resumed.digest, whole.digest)
      const config = { name: "ForeignEnv", command: [process.execPath, script], id: "corridor" }
      const configured = yield* fromConfig(config, { source: "train.yaml" }).pipe(Effect.provide(foreignEnvs))
      const { result } = yield* keep({ ...settings, env: configured })
      assert.strictEqual(result.digest, whole.digest)
      const error = yield* Effect.flip(fromConfig(config, { source: "train.yaml" }))
      assert.include(error.message, "corridor: its program needs a process, which this platform doesn't have")
    }),
  )

  it.effect.skipIf(spawnSync("cc", ["--version"]).status !== 0)("can be written in C", () =>
    Effect.promise(() =>
      withFolder(async (folder) => {
        const binary = join(folder, "corridor")
        const source = join(root, "examples/foreign-envs/corridor.c")
        const compiled = spawnSync("cc", ["-O2", "-Wall", "-Werror", "-o", binary, source], { encoding: "utf8" })
        assert.strictEqual(compiled.stderr, "")
        const traceOf = (env: Env) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const batch = yield* opened(env, 3)
              yield* batch.reset(1)
              return yield* trace(batch, 200)
            }).pipe(Effect.scoped),
          )
        assert.deepStrictEqual(await traceOf(command([binary], { id: "corridor" })), await traceOf(corridor()))
      }),
    ),
  )

  it("says what is missing or wrong when it is made", () =>
    withFolder(async (folder) => {
      const made = (text: string) => {
        write(folder, "env.mjs", text)
        return thrown(() => command([process.execPath, join(folder, "env.mjs")], { id: "mine" }))
      }
      assert.strictEqual(
        thrown(() => command(["no-such-program"], { id: "mine" })),
        "mine: cannot start its program: no-such-program was not found",
      )
      assert.match(
        thrown(() => Gymnasium.env("CartPole-v1", { python: "no-such-python" })),
        /no-such-python was not found; install Python 3.9 or later, then: python3 -m pip install gymnasium/,
      )
      assert.match(made("throw new Error('broken')"), /^mine: its program \(.*\) ended with exit code 1: Node.js v/)
      assert.match(
        made(`console.log("hello");${program("")}`),
        /^mine: its program \(.*\) wrote something to its standard output that is no reply: "hello"; only replies belong there/,
      )
      assert.match(made(program("", "{ protocol: 2 }")), /speaks version 2 of the protocol; effect-rl speaks version 1/)
      assert.match(made(program("", "{ maxSteps: 1.5 }")), /its program describes it wrongly: .*maxSteps/s)
      const text = program("", '{ actionSpace: { type: "Graph" } }')
      assert.match(
        made(text),
        /its actions are a Graph space, which is not supported; expected Box, Discrete, MultiDiscrete, MultiBinary/,
      )
    }))

  it("leaves no process of a program that has described no env", () =>
    withFolder(async (folder) => {
      const pid = join(folder, "pid")
      // A process in the background keeps the outputs open.
      const line = `sleep 1000 & echo $! > ${pid}`
      const message = thrown(() => command(["sh", "-c", line], { id: "mine" }))
      assert.match(message, /^mine: its program \(sh .*\) ended with exit code 0$/)
      // It has been killed, and may still be ending.
      await until(() => !isRunning(Number(readFileSync(pid, "utf8"))))
    }))

  it.effect("starts a program with the options of Node that were meant for it, and for nothing between", () =>
    Effect.scoped(
      Effect.gen(function* () {
        // As a debugger's options do, these make every Node write to its standard error.
        const options = "--require=/nowhere/debugger.cjs"
        yield* withVariables({ NODE_OPTIONS: options })
        const described = () =>
          command(["sh", "-c", "echo options $NODE_OPTIONS >&2; exit 3"], { id: "mine", variables: ["NODE_OPTIONS"] })
        assert.strictEqual(
          thrown(described),
          `mine: its program (sh -c echo options $NODE_OPTIONS >&2; exit 3) ended with exit code 3: options ${options}`,
        )
      }),
    ),
  )

  it.effect("says in which step a program failed, sent a wrong reply, ended or did not answer", () =>
    Effect.promise(() =>
      withFolder(async (folder) => {
        const failure = async (onStep: string, timeoutSeconds = 60) => {
          write(folder, "env.mjs", program(onStep))
          const env = command([process.execPath, join(folder, "env.mjs")], { id: "mine", timeoutSeconds })
          return Effect.runPromise(
            Effect.gen(function* () {
              const batch = yield* opened(env, 1)
              yield* batch.reset(1)
              return yield* Effect.flip(batch.step(Int32Array.of(0)))
            }).pipe(Effect.scoped),
          )
        }
        const error = await failure(
          `reply(1, Buffer.from(JSON.stringify({ message: "ValueError: no\\nenv", index: 0, traceback: "line 3" })))`,
        )
        assert.strictEqual(error.message, "mine: env 0, episode 0, step 1: ValueError: no; env")
        assert.strictEqual(error.userStack, "line 3")
        assert.match((await failure("reply(0, Buffer.alloc(3))")).message, /a reply of 3 bytes; expected 10/)
        assert.match(
          (await failure("console.error('out of fuel'); process.exit(3)")).message,
          /^mine: the process of env 0 ended with exit code 3: out of fuel$/,
        )
        for (const text of ["debug: a long line", "no", ""]) {
          const stray = await failure(`console.log(${JSON.stringify(text)}); reply(0, Buffer.alloc(10))`)
          assert.match(
            stray.message,
            /^mine: the process of env 0 wrote something to its standard output that is no reply/,
          )
          assert.include(stray.message, text === "" ? "(a reply would have" : `: "${text}"; only replies`)
        }
        // The start of the program has the same deadline, which must suffice for it on a busy machine.
        assert.match((await failure("", 10)).message, /the process of env 0 did not answer within 10 seconds/)
      }),
    ),
  )

  it.effect("reads a reply that came while the run itself was stopped for longer than the time limit", () =>
    Effect.gen(function* () {
      const batch = yield* opened(corridor({ timeoutSeconds: 10 }), 1)
      yield* batch.reset(1)
      const step = yield* Effect.forkChild(batch.step(Int32Array.of(1)), { startImmediately: true })
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_500)
      yield* Fiber.join(step)
      assert.notStrictEqual(batch.rewards[0], 0)
    }).pipe(Effect.scoped),
  )

  it.effect("fails a training whose program is killed, and resumes it to the same bits", () =>
    Effect.promise(() =>
      withFolder(async (folder) => {
        const [file, marker] = [join(folder, "mortal.mjs"), join(folder, "killed")]
        // The program kills itself in its 150th step, but only once.
        const mortal = readFileSync(script, "utf8")
          .replace("import { readSync", "import { existsSync, writeFileSync, readSync")
          .replace("let envs = []", "let envs = []\nlet steps = 0")
          .replace(
            "  const count = envs.length",
            `  if (++steps === 150 && !existsSync(${JSON.stringify(marker)})) {
    writeFileSync(${JSON.stringify(marker)}, "")
    process.kill(process.pid, "SIGKILL")
  }
  const count = envs.length`,
          )
        write(folder, "mortal.mjs", mortal)
        const settings = {
          env: command([process.execPath, file], { id: "corridor" }),
          numEnvs: 4,
          algorithm: Ppo.make({ nsteps: 32, epochs: 1 }),
          totalSteps: 1024,
          checkpoint: { everySteps: 256 },
        }
        const store = RunStore.memory()
        const train = (layer: Layer.Layer<RunStore>) =>
          Train.run(settings).pipe(Effect.provide(Layer.mergeAll(Wasm.layer, layer, Recorder.layerSilent)))
        const error = await Effect.runPromise(Effect.flip(train(store.layer)))
        assert.strictEqual(error.message, "corridor: the process of envs 0 to 3 ended by SIGKILL")
        const runDir = [...store.files.keys()][0].replace(/\/(checkpoints\/.*|[^/]*)$/, "")
        const resumed = await Effect.runPromise(train(RunStore.memory({ files: store.files, resume: runDir }).layer))
        const whole = await Effect.runPromise(train(RunStore.memory().layer))
        assert.isTrue([...store.files.keys()].some((path) => path.includes("/checkpoints/step_")))
        assert.strictEqual(resumed.runDir, runDir)
        assert.strictEqual(resumed.digest, whole.digest)
      }),
    ),
  )

  it("leaves no process when either side is killed, and the other side says so", () =>
    withFolder(async (folder) => {
      write(
        folder,
        "run.ts",
        `
import { Effect } from ${JSON.stringify(import.meta.resolve("effect"))}
import { Batch } from ${JSON.stringify(join(root, "src/index.ts"))}
import { ForeignEnv } from ${JSON.stringify(join(root, "src/node.ts"))}
const env = ForeignEnv.command([${JSON.stringify(process.execPath)}, ${JSON.stringify(script)}], { id: "corridor" })
const program = Effect.gen(function* () {
  const batch = yield* Batch.open(env, 2)
  if (batch.isAsync !== true) return
  yield* batch.reset(1)
  console.log("ready")
  while (true) { yield* batch.step(new Int32Array(2)); yield* Effect.yieldNow }
})
Effect.runPromise(Effect.scoped(program)).catch((error) => { console.log(error.message); process.exit(1) })
`,
      )
      const started = async () => {
        const run = spawn(process.execPath, [join(folder, "run.ts")], { stdio: ["ignore", "pipe", "inherit"] })
        const lines = createInterface({ input: run.stdout })[Symbol.asyncIterator]()
        assert.strictEqual((await lines.next()).value, "ready")
        const children = readFileSync(`/proc/${run.pid}/task/${run.pid}/children`, "utf8").trim().split(" ").map(Number)
        assert.lengthOf(children, 1)
        return { run, lines, child: children[0] }
      }
      if (!existsSync("/proc/self/task")) return

      const { run, child } = await started()
      const ended = once(run, "exit")
      run.kill("SIGKILL")
      await ended
      while (isRunning(child)) await new Promise((resolve) => setImmediate(resolve))

      const other = await started()
      process.kill(other.child, "SIGKILL")
      assert.strictEqual((await other.lines.next()).value, "corridor: the process of envs 0 to 1 ended by SIGKILL")
      if (other.run.exitCode === null) await once(other.run, "exit")
    }))
})
