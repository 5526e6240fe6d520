import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import type { TrainInput } from "../../../src/rl/train/Settings.ts"

const layers = Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layerSilent)

const messageOf = (training: Train.Run) =>
  Effect.map(Effect.flip(Effect.provide(training, layers)), ({ message }) => message)

const fits = { env: "CartPole-v1", algorithm: "ppo", totalSteps: 64 }

describe("a config that asks for too much is refused before anything is made", () => {
  const cases: ReadonlyArray<readonly [title: string, config: object, expected: string]> = [
    [
      "envs",
      { ...fits, numEnvs: 1e9 },
      "numEnvs: expected a value between 1 and 65536 (each takes memory), found 1000000000",
    ],
    [
      "threads",
      { ...fits, workers: 100_000 },
      "workers: expected a value between 0 and 1024 (each is a thread), found 100000",
    ],
    [
      "threads of validations",
      { ...fits, validation: { workers: 100_000 } },
      "validation.workers: expected a value between 0 and 1024 (each is a thread), found 100000",
    ],
    [
      "episodes at once",
      { ...fits, validation: { episodes: 1e9 } },
      "validation.episodes: expected a value between 1 and 100000 (they are played at the same time), found 1000000000",
    ],
    [
      "units",
      { ...fits, algorithm: { name: "ppo", hidden: [100_000_000] } },
      "algorithm.hidden.0: expected a value between 1 and 65536 (the weights are a matrix), found 100000000",
    ],
    [
      "letters in a name",
      { ...fits, name: "x".repeat(5000) },
      `name: expected a value with a length of at most 200, found "${"x".repeat(56)}…`,
    ],
    [
      "weights",
      { ...fits, algorithm: { name: "ppo", hidden: [65_536, 65_536] } },
      "Train.run: more memory needed than there is (8590917635 weights; expected at most 268435456); make some of these smaller: num_envs 8, algorithm.nsteps 128, algorithm.hidden [65536,65536]",
    ],
    [
      "memory of transitions",
      { ...fits, algorithm: { name: "dqn", bufferSize: 1e9 } },
      "algorithm.buffer_size: 1000000000 transitions need 27 GiB of memory; make it smaller, so that at most 16 GiB are needed",
    ],
    [
      "rows of a rollout",
      { ...fits, numEnvs: 65_536, algorithm: { name: "ppo", nsteps: 100_000 } },
      "algorithm.nsteps: 100000 steps of 65536 envs, each with 4 numbers to observe, are more than 536870912 numbers; make nsteps or num_envs smaller",
    ],
    [
      "cells",
      { ...fits, env: { name: "GridWorld", size: 1_000_000 } },
      "env.size: expected a value between 1 and 1000 (a board has so many squared), found 1000000",
    ],
  ]
  for (const [title, config, expected] of cases) {
    it.effect(`: ${title}`, () =>
      Effect.map(messageOf(Train.fromConfig(config)), (message) =>
        assert.include(message.replaceAll("num_envs: ", "numEnvs: "), expected),
      ),
    )
  }
})

describe("an env or an algorithm that is none is told of in one line", () => {
  const inConfig: ReadonlyArray<readonly [config: object, expected: string]> = [
    [{ ...fits, env: null }, "env: expected an env's id, or its name with options, found null"],
    [{ ...fits, env: { name: { name: "CartPole" } } }, `env.name: expected an env's name, found {"name":"CartPole"}`],
    [{ ...fits, algorithm: null }, "algorithm: expected an algorithm's name, or its name with settings, found null"],
    [
      { ...fits, algorithm: ["ppo"] },
      `algorithm: expected an algorithm's name, or its name with settings, found ["ppo"]`,
    ],
    [
      { ...fits, algorithm: { name: { name: "ppo" } } },
      `algorithm: expected an algorithm's name, or its name with settings, found {"name":"ppo"}`,
    ],
  ]
  for (const [config, expected] of inConfig) {
    it.effect(`in a config: ${expected}`, () =>
      Effect.map(messageOf(Train.fromConfig(config)), (message) =>
        assert.strictEqual(message, `Train.run: ${expected}`),
      ),
    )
  }

  // A program without types can pass this.
  const untyped = (json: string, more: object = {}): TrainInput => Object.assign(JSON.parse(json), more)
  const inCode: ReadonlyArray<readonly [title: string, input: TrainInput, expected: string]> = [
    ["nothing at all", untyped("{}"), "env: missing key"],
    ["no algorithm", untyped('{"totalSteps":64}', { env: CartPole.env }), "algorithm: missing key"],
    [
      "null for both",
      untyped('{"env":null,"algorithm":null,"totalSteps":64}'),
      "env: expected an env, as Env.make gives, or the id of one, found null; Train.run: algorithm: expected an algorithm, as Ppo.make() gives, or the name of one, found null",
    ],
    [
      "the module of an algorithm",
      untyped('{"env":"CartPole-v1","totalSteps":64}', { algorithm: Ppo }),
      "algorithm: expected an algorithm, as Ppo.make() gives, or the name of one, found a module; did you mean its .make()?",
    ],
  ]
  for (const [title, input, expected] of inCode) {
    it.effect(`in code: ${title}`, () =>
      Effect.map(messageOf(Train.run(input)), (message) => assert.include(message, expected)),
    )
  }
})
