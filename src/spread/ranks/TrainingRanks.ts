/** Declares the service that starts the ranks of a training by reinforcement learning; `ranks-node.ts` implements it. */
import { Context, type Effect, type Scope } from "effect"
import type { RanksService } from "./Ranks.ts"

/** Starts ranks. `Node.trainingRanks` is the Layer for Node. */
export class TrainingRanks extends Context.Service<
  TrainingRanks,
  {
    /**
     * Starts all ranks except this process, which is the master, and keeps them running until the scope closes. The training
     * does not wait for them: ranks join when they are ready, and lost ones are started again.
     */
    readonly start: (ranks: number) => Effect.Effect<RanksService, never, Scope.Scope>
  }
>()("effect-rl/ranks/TrainingRanks") {}
