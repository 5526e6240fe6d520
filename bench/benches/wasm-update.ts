/**
 * Measures a whole PPO minibatch update on the wasm backend: gathering rows, forward pass, clipped losses, backward pass,
 * clipping by the global norm, and Adam. Both networks have 4 inputs and two hidden layers of 64 units with tanh. One call
 * does sixteen updates; the result is the time of one. A second benchmark compares the times with one and with two threads.
 */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../src/tensor/backend/Backend.ts"
import { categorical } from "../../src/tensor/graph/distributions.ts"
import { gradients } from "../../src/tensor/graph/gradients.ts"
import { mlp } from "../../src/tensor/graph/layers.ts"
import * as G from "../../src/tensor/graph/ops.ts"
import { adam, clipGlobalNorm } from "../../src/tensor/graph/optimisers.ts"
import { layout } from "../../src/tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../src/tensor/graph/Program.ts"
import { stream } from "../../src/base/rng/Rng.ts"
import { backend } from "../../src/node.ts"
import { chosenBackend } from "../chosenBackend.ts"
import { defineBench } from "../Bench.ts"

const count = 16
const actor = mlp("actor", { sizes: [4, 64, 64, 2], activation: "tanh", outputGain: 0.01 })
const critic = mlp("critic", { sizes: [4, 64, 64, 1], activation: "tanh" })
const parameters = layout({ ...actor.parameters, ...critic.parameters })
/** Counts multiply-adds of the forward pass, and of the backward pass without the gradient of the observations. */
const multiplyAddsARow = 2 * (2 * 4 * 64 + 3 * 64 * 64) + 3 * 64 * 3

const update = (batch: number): ProgramSpec => {
  const theta = G.state("theta", [parameters.size])
  const weights = parameters.tensorsOf(theta)
  const observation = G.input("observation", [batch, 4])
  const action = G.input("action", [batch], "i32")
  const column = (name: string) => G.input(name, [batch])
  const [oldLogProbability, advantage, target] = [column("oldLogProbability"), column("advantage"), column("target")]
  const policy = categorical(actor.apply(weights, observation))
  const value = G.reshape(critic.apply(weights, observation), [batch])
  const logRatio = G.sub(policy.logProbability(action), oldLogProbability)
  const ratio = G.exp(logRatio)
  const surrogate = G.minimum(G.mul(ratio, advantage), G.mul(G.clip(ratio, 0.8, 1.2), advantage))
  const policyLoss = G.neg(G.mean(surrogate))
  const valueLoss = G.mul(G.mean(G.square(G.sub(value, target))), 0.5)
  const entropy = G.mean(policy.entropy())
  const loss = G.sub(G.add(policyLoss, G.mul(valueLoss, 0.5)), G.mul(entropy, 0.01))
  const slopes = gradients(loss, Object.values(weights))
  const flat = parameters.flatten(Object.fromEntries(Object.keys(weights).map((name, i) => [name, slopes[i]])))
  const { moments, next } = adam({ size: parameters.size, learningRate: 2.5e-4, epsilon: 1e-5 }).update(
    theta,
    clipGlobalNorm(flat, 0.5),
  )
  const approximateKl = G.mean(G.sub(G.sub(ratio, 1), logRatio))
  const inputs = { observation, action, oldLogProbability, advantage, target }
  return {
    name: `ppo update ${batch}`,
    inputs,
    state: { theta: { tensor: theta, next }, ...moments },
    outputs: { policyLoss, valueLoss, entropy, approximateKl },
    minibatches: { rows: 4 * batch, batch, count, gathered: Object.keys(inputs) },
  }
}

const compile = (batch: number, threads = 1): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.gen(function* () {
    const backend = yield* Backend
    const program = yield* backend.compile(update(batch))
    yield* program.write("theta", parameters.initialise(stream(1, "bench", "wasm-update")))
    const { action, advantage, indices, observation, oldLogProbability, target } = program.feeds
    observation.forEach((_, i) => (observation[i] = Math.sin(i)))
    action.forEach((_, i) => (action[i] = i % 2))
    oldLogProbability.fill(Math.log(0.5))
    advantage.forEach((_, i) => (advantage[i] = Math.cos(i)))
    target.forEach((_, i) => (target[i] = Math.cos(2 * i)))
    indices.forEach((_, i) => (indices[i] = (i * 37) % (4 * batch)))
    return program
  }).pipe(Effect.provide(backend(chosenBackend("wasm"), { threads })), Effect.orDie)

const usual = defineBench({
  name: "wasm-update",
  unit: "µs",
  higherIsBetter: false,
  about: "A PPO minibatch update of 128 (4-64-64-{2,1}), compiled to WebAssembly, sixteen in one call",
  run: async ({ time }) => {
    const microseconds = async (batch: number): Promise<number> => {
      const program = await Effect.runPromise(Effect.scoped(compile(batch)))
      return (time(() => program.runSync?.()).seconds * 1e6) / count
    }
    const [small, usual, large, huge] = [
      await microseconds(64),
      await microseconds(128),
      await microseconds(256),
      await microseconds(1024),
    ]
    return {
      value: usual,
      details: {
        "64, µs": small,
        "256, µs": large,
        "1024, µs": huge,
        "billion multiply-adds/s at 128": (multiplyAddsARow * 128) / usual / 1000,
      },
    }
  },
})

/** How often the times with one and with two threads are measured, in turn. */
const rounds = 60

/** Measures one update with one and with two threads in turn: the times in milliseconds, and the processor's time. */
const withTwoThreads = (batch: number) =>
  Effect.gen(function* () {
    const programs = [yield* compile(batch), yield* compile(batch, 2)]
    for (const program of programs) program.runSync?.()
    // The second thread starts while this one waits.
    yield* Effect.sleep("1 second")
    const times: ReadonlyArray<Array<number>> = [[], []]
    const cpu = [0, 0]
    for (let round = 0; round < rounds; round++) {
      for (const [i, program] of programs.entries()) {
        const before = process.cpuUsage()
        const start = performance.now()
        program.runSync?.()
        times[i].push(performance.now() - start)
        const { system, user } = process.cpuUsage(before)
        cpu[i] += system + user
      }
    }
    const [one, two] = times.map((list) => list.toSorted((a, b) => a - b))
    const weights = yield* Effect.forEach(programs, (program) => program.read("theta"))
    if (weights[0].some((weight, i) => weight !== weights[1][i])) return yield* Effect.die("the weights differ")
    const middle = rounds / 2
    return { best: one[0] / two[0], median: one[middle] / two[middle], cpu: cpu[1] / cpu[0] }
  }).pipe(Effect.scoped, Effect.orDie)

const threads = defineBench({
  name: "wasm-update-threads",
  unit: "times",
  higherIsBetter: true,
  about: "How many times faster a PPO minibatch update of 1,024 is with two threads than with one (best of 60 runs)",
  run: async () => {
    const at1024 = await Effect.runPromise(withTwoThreads(1024))
    const at4096 = await Effect.runPromise(withTwoThreads(4096))
    const at128 = await Effect.runPromise(withTwoThreads(128))
    return {
      value: at1024.best,
      details: {
        "1024, median": at1024.median,
        "1024, processor's time": at1024.cpu,
        "4096": at4096.best,
        "4096, median": at4096.median,
        "4096, processor's time": at4096.cpu,
        "128": at128.best,
        "128, median": at128.median,
        "128, processor's time": at128.cpu,
      },
    }
  },
})

export default [usual, threads]
