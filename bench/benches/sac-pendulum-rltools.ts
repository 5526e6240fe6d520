import { Pendulum, Sac } from "effect-rl"
import { defineBench } from "../Bench.ts"
import { measureTraining } from "../training.ts"

export default defineBench({
  name: "sac-pendulum-rltools",
  unit: "steps/s",
  higherIsBetter: true,
  about: "SAC on Pendulum with RLtools' settings: one env, an update of 100 a step, 64-64, 10,000 steps",
  run: () =>
    measureTraining({
      env: Pendulum.env,
      numEnvs: 1,
      algorithm: Sac.make({ learningRate: 1e-3, batchSize: 100, learningStarts: 100, bufferSize: 10_000 }),
      totalSteps: 10_000,
    }),
})
