// An algorithm of your own, REINFORCE with a baseline: it trains, validates, saves and resumes as the built-in ones do.
//   npx effect run examples/own-parts/own-algorithm.ts
import { Effect, Schema } from "effect"
import { Algorithm, CartPole, Fields, Graph, Learner, Losses, Model, Optimisers, Train } from "effect-rl"

const Config = Schema.Struct({ ...Learner.actorCriticFields, learningRate: Fields.withDefault(Fields.positive, 3e-3) })

const setup = Effect.fnUntraced(function* (config: typeof Config.Type, task: Algorithm.Task) {
  const network = yield* Learner.build(() => Model.actorCritic({ ...task, ...config }))
  const returns = { gamma: config.gamma, lambda: 1 }
  const rollout = Learner.experience({ name: "reinforce", task, actor: network, steps: 100, returns })
  return Learner.rolloutLearner(rollout, {
    learningRate: Learner.learningRateOf(config),
    phases: [
      {
        name: "update",
        epochs: 1,
        minibatches: 1,
        maxGradNorm: config.maxGradNorm,
        optimiser: Learner.chosenOptimiser(config, Optimisers.adam),
        loss: ({ batch, weights }) => {
          const { distribution, value } = network.evaluate(weights, batch.observations)
          const logProbability_t = distribution.logProbability(batch.actions)
          const policyLoss = Losses.policyGradient({ logProbability_t, advantage_t: batch.advantages })
          const baselineLoss = Losses.valueLoss({ v_t: value, target_t: batch.targets })
          const metrics = { "losses/policy_loss": policyLoss, "losses/value_loss": baselineLoss }
          return { loss: Graph.add(policyLoss, Graph.mul(baselineLoss, config.valueCoefficient)), metrics }
        },
      },
    ],
  })
})

const reinforce = Algorithm.define({ name: "reinforce", config: Config, setup })
const algorithm = reinforce.make({ hidden: [64] })
export default Train.run({ env: CartPole.env, algorithm, totalSteps: 200_000, validation: { everySteps: 50_000 } })
