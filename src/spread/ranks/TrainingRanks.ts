/** Declares the service that starts the ranks of a training by reinforcement learning; `ranks-node.ts` implements it. */
import { Context, type Effect, type Scope } from "effect"
import type { RanksService } from "./Ranks.ts"

/** Starts ranks. `Node.trainingRanks` is the Layer for Node. */
export class TrainingRanks extends Context.Service<
  TrainingRanks,
  {
    /**
     * Starts all ranks but this process, which is the master, and keeps them until the scope closes. They join as soon as
     * they can, and lost ones are replaced; the training does not wait for them.
     */
    readonly start: (ranks: number) => Effect.Effect<RanksService, never, Scope.Scope>
  }
>()("effect-rl/ranks/TrainingRanks") {}
