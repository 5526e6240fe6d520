import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Record } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import { auto, prefersWasm } from "../../../src/tensor/backend/auto.ts"
import { Backend, BackendUnavailable, type Program, type TensorData } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { indicesFeed, type ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import { sizeOf, type Tensor } from "../../../src/tensor/graph/Tensor.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import * as Train from "../../../src/rl/train/Train.ts"

/** A backend whose programs compute nothing. */
const idle = (device: string): Backend["Service"] => ({
  name: device,
  compile: (spec) => Effect.succeed(idleProgram(spec, device)),
  compileAll: (specs) => Effect.succeed(Record.map(specs, (spec) => idleProgram(spec, device))),
})

const idleProgram = ({ inputs, minibatches, name, outputs, state }: ProgramSpec, device: string): Program => {
  const array = ({ dtype, shape }: Tensor, times: number): TensorData => {
    const length = sizeOf(shape) * times
    return dtype === "f32"
      ? new Float32Array(length)
      : dtype === "i32"
        ? new Int32Array(length)
        : new Uint8Array(length)
  }
  const { batch = 1, count = 1, gathered = [], rows = 1 } = minibatches ?? {}
  const feeds = Object.entries(inputs).map(
    ([key, input]) => [key, array(input, gathered.includes(key) ? rows / batch : 1)] as const,
  )
  return {
    name,
    device,
    feeds: { ...Object.fromEntries(feeds), [indicesFeed]: new Int32Array(batch * count) },
    results: Object.fromEntries(Object.entries(outputs).map(([key, output]) => [key, array(output, count)])),
    iterations: () => count,
    run: Effect.void,
    runSync: () => {},
    read: (key) => Effect.succeed(new Float32Array(sizeOf(state[key].tensor.shape))),
    write: () => Effect.void,
  }
}

/** The device of each program of a training, which ends before its first step. */
const devicesOf = (input: Parameters<typeof Train.run>[0]) =>
  Effect.gen(function* () {
    let devices: Readonly<Record<string, string>> = {}
    const recorder = Recorder.layer((_, about) => {
      devices = about.devices
      return Effect.die("the devices are known")
    })
    const backend = auto({ wasm: idle("wasm"), session: Effect.succeed(idle("session")) })
    const layers = Layer.mergeAll(Layer.succeed(Backend, backend), RunStore.layerMemory, recorder)
    yield* Effect.exit(Train.run(input).pipe(Effect.provide(layers)))
    return devices
  })

const cartPole = (numEnvs: number, options: Parameters<typeof Ppo.make>[0] = {}) => ({
  env: CartPole.env,
  numEnvs,
  algorithm: Ppo.make(options),
  totalSteps: 1e6,
})

/** The choice is part of what a seed means: changing a row changes results, and needs a line in the release notes. */
const choices = {
  "PPO with CleanRL's settings for CartPole": {
    input: cartPole(4),
    devices: { "ppo.act": "wasm", "ppo.update": "wasm" },
  },
  "PPO with RLtools' settings for Pendulum": {
    input: {
      env: Pendulum.env,
      numEnvs: 4,
      algorithm: Ppo.make({ nsteps: 1024, epochs: 2, minibatches: 16, activation: "relu" }),
      totalSteps: 303_104,
    },
    devices: { "ppo.act": "wasm", "ppo.update": "wasm" },
  },
  "SAC with RLtools' settings for Pendulum": {
    input: {
      env: Pendulum.env,
      numEnvs: 1,
      algorithm: Sac.make({ batchSize: 100, learningStarts: 100, bufferSize: 1000 }),
      totalSteps: 1e4,
    },
    devices: { "sac.act": "wasm", "sac.update": "wasm" },
  },
  "PPO with 1,024 envs of 128 steps": {
    input: cartPole(1024),
    devices: { "ppo.act": "session", "ppo.update": "wasm" },
  },
  "PPO with 128 envs of 128 steps": {
    input: cartPole(128),
    devices: { "ppo.act": "wasm", "ppo.update": "session" },
  },
  "PPO with 1,024 envs of 128 steps and 256-256 units": {
    input: cartPole(1024, { hidden: [256, 256] }),
    devices: { "ppo.act": "session", "ppo.update": "session" },
  },
  "PPO with 256-256 units": {
    input: cartPole(8, { hidden: [256, 256] }),
    devices: { "ppo.act": "wasm", "ppo.update": "session" },
  },
}

describe("auto picks the device that is faster", () => {
  for (const [name, { devices, input }] of Object.entries(choices)) {
    it.effect(name, () => Effect.map(devicesOf(input), (found) => assert.deepStrictEqual(found, devices)))
  }
})

const product = (name: string, size: number): ProgramSpec => {
  const inputs = { x: G.input("x", [size, size]), y: G.input("y", [size, size]) }
  return { name, inputs, state: {}, outputs: { z: G.matmul(inputs.x, inputs.y) } }
}

describe("auto picks one device for programs that share states", () => {
  const backend = auto({ wasm: idle("wasm"), session: Effect.succeed(idle("session")) })
  const devicesOfGroup = (specs: Readonly<Record<string, ProgramSpec>>) =>
    Effect.map(
      Effect.scoped(backend.compileAll(specs)),
      Record.map(({ device }) => device),
    )

  it.effect("by the sum of their times", () =>
    Effect.gen(function* () {
      const [small, large] = [product("small", 8), product("large", 512)]
      assert.deepStrictEqual(yield* devicesOfGroup({ small, other: small }), { small: "wasm", other: "wasm" })
      assert.deepStrictEqual(yield* devicesOfGroup({ small, large }), { small: "session", large: "session" })
    }),
  )
})

const missing = new BackendUnavailable({
  backend: "cpu",
  missing: "the package onnxruntime-node is not installed",
  remedy: "Add it.",
})

describe("auto without ONNX Runtime", () => {
  it.effect("runs everything on wasm, and names the programs that would have run in a session", () =>
    Effect.gen(function* () {
      const wasm = Context.get(yield* Layer.build(Wasm.layer), Backend)
      const backend = auto({ wasm, session: Effect.fail(missing) })
      const [small, large] = [product("act", 8), product("update", 512)]
      assert.isTrue(prefersWasm(small))
      assert.isFalse(prefersWasm(large))

      assert.strictEqual((yield* backend.compile(small)).device, "wasm")
      assert.deepStrictEqual(yield* backend.warnings ?? Effect.succeed([]), [])

      assert.strictEqual((yield* backend.compile(large)).device, "wasm")
      assert.deepStrictEqual(yield* backend.warnings ?? Effect.succeed([]), [
        `on "wasm" instead of "cpu", with other last bits: update. ${missing.message}`,
      ])
    }).pipe(Effect.scoped),
  )
})
