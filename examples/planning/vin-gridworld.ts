// A network that plans learns the shortest ways that it is shown, and finds them on maps that it has never seen.
//   npx effect run examples/planning/vin-gridworld.ts --seed 1
//   npx effect run examples/planning/vin-gridworld.ts --seed 1 --config examples/planning/plain-conv.yaml
import { Bc, Demonstrations, GridWorld, Train } from "effect-rl"

const shown = Demonstrations.record(GridWorld.env, {
  episodes: 40_000,
  policy: (seen) => GridWorld.optimalAction(GridWorld.stateOf(seen)),
})

export default Train.run({
  env: GridWorld.env,
  algorithm: Bc.make(shown, {
    planning: { iterations: 20, filters: 64, actions: 16 },
    hidden: [],
    batchSize: 16,
    schedule: "linear",
  }),
  totalSteps: 1_500_000,
  validation: { everySteps: 300_000, episodes: 400 },
})
