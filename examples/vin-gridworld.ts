// A network that plans learns the shortest ways that it is shown, and finds them on maps that it has never seen.
//   npx effect run examples/vin-gridworld.ts --seed 1
//   npx effect run examples/vin-gridworld.ts --seed 1 --set algorithm.planning=null --set algorithm.hidden=[64]
import { Bc, Demonstrations, GridWorld, Train } from "effect-rl"

const shown = Demonstrations.record(GridWorld.env, {
  episodes: 8000,
  policy: (seen) => GridWorld.optimalAction(GridWorld.stateOf(seen)),
})

export default Train.run({
  env: GridWorld.env,
  algorithm: Bc.make(shown, { planning: { actions: 16 }, hidden: [], batchSize: 32 }),
  totalSteps: 800_000,
  validation: { everySteps: 200_000, episodes: 200 },
})
