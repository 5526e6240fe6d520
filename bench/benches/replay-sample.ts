import { Batch, Pendulum, Rng } from "effect-rl"
import { makePriorities } from "../../src/rl/learner/replay/Priorities.ts"
import { makeReplay } from "../../src/rl/learner/replay/Replay.ts"
import { defineBench } from "../Bench.ts"

const rows = 256
const numEnvs = 100
const capacity = 1_000_000

export default defineBench({
  name: "replay-sample",
  unit: "µs",
  higherIsBetter: false,
  about: "Drawing and gathering 256 transitions of Pendulum from a full buffer of a million",
  run: async ({ time }) => {
    const envs = Batch.make(Pendulum.env, numEnvs)
    envs.reset(1, "bench")
    const replay = makeReplay({ numEnvs, observationSize: 3, actionSize: 1, capacity, gamma: 0.99 })
    const actions = new Float32Array(numEnvs)
    replay.begin(envs)
    for (let step = 0; step < capacity / numEnvs; step++) {
      envs.step(actions)
      replay.add(actions, envs)
    }
    const places = new Int32Array(rows)
    const into = {
      observations: new Float32Array(3 * rows),
      actions: new Float32Array(rows),
      rewards: new Float32Array(rows),
      nextObservations: new Float32Array(3 * rows),
      discounts: new Float32Array(rows),
    }
    const random = Rng.stream(1, "bench")
    const uniform = time(
      () => {
        replay.draw(random, places)
        replay.gather(places, into)
      },
      { minimumSeconds: 1 },
    )
    const priorities = makePriorities(capacity)
    for (let place = 0; place < capacity; place++) priorities.set(place, 1 + (place % 7))
    const prioritised = time(
      () => {
        priorities.draw(random, places)
        replay.gather(places, into)
      },
      { minimumSeconds: 1 },
    )
    return { value: uniform.seconds * 1e6, details: { "by priority, µs": Math.round(prioritised.seconds * 1e7) / 10 } }
  },
})
