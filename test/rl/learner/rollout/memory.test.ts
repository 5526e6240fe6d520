import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as A2c from "../../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as RepeatCue from "../../../../src/rl/env/games/RepeatCue.ts"
import * as Graph from "../../../../src/tensor/graph/ops.ts"
import type { Algorithm } from "../../../../src/rl/learner/Algorithm.ts"
import type { OwnLoss } from "../../../../src/rl/learner/rollout/ownLoss.ts"
import { keep } from "../../train/inMemory.ts"

/** The algorithm's loss, with the largest difference from the log-probabilities that the rollout stored. */
const compared: OwnLoss = (batch, out) => {
  const actual = out.distribution.logProbability(batch.actions)
  const difference = Graph.max(Graph.abs(Graph.sub(actual, batch.logProbs)))
  return { loss: out.loss, metrics: { "losses/difference": difference } }
}

/** One step on the whole rollout, so that its loss is computed with the weights that played. */
const once = { epochs: 1, minibatches: 1, nsteps: 12, learningRate: 0.02, lstm: 4, hidden: [4], loss: compared }
const cases: Readonly<Record<string, Algorithm>> = {
  "sequences as long as the rollout": Ppo.make(once),
  "sequences of 4 steps": Ppo.make({ ...once, sequence: 4 }),
  "sequences of 1 step": Ppo.make({ ...once, sequence: 1 }),
  "a shared memory between hidden layers": Ppo.make({
    ...once,
    hidden: [4, 4],
    lstmAfter: 1,
    criticMemory: "shared",
    sequence: 6,
  }),
  A2C: A2c.make({ nsteps: 12, learningRate: 0.02, lstm: 4, hidden: [4], sequence: 4, loss: compared }),
}

describe("the update of a recurrent network evaluates each step with the memory that the rollout had there", () => {
  for (const [name, algorithm] of Object.entries(cases)) {
    it.effect(name, () =>
      Effect.gen(function* () {
        // Episodes of 6 steps end in the middle of sequences and of rollouts.
        const { events } = yield* keep({ env: RepeatCue.make({ delay: 5 }), numEnvs: 3, algorithm, totalSteps: 36 * 8 })
        const differences = events.flatMap((event) =>
          event._tag === "UpdateApplied" ? [event.metrics["losses/difference"]] : [],
        )
        assert.strictEqual(differences.length, 8)
        for (const difference of differences) assert.isBelow(difference, 1e-5)
      }),
    )
  }
})
