import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ddpg from "../../../src/rl/algorithms/replay/Ddpg.ts"
import * as DiscreteSac from "../../../src/rl/algorithms/replay/DiscreteSac.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Tqc from "../../../src/rl/algorithms/replay/Tqc.ts"
import * as Ddqn from "../../../src/rl/algorithms/rollouts/Ddqn.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Graph from "../../../src/tensor/graph/ops.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import type * as Learner from "../../../src/rl/learner/public.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import { keep, textOf } from "../train/inMemory.ts"
import { resumable } from "../train/resumable.ts"

const { abs, huber, mean, minimum, mul, neg, square, stopGradient, sub } = Graph
const add = (...terms: ReadonlyArray<Graph.Tensor>): Graph.Tensor => terms.reduce((sum, term) => Graph.add(sum, term))

const small = { hidden: [8], learningStarts: 32, batchSize: 16, bufferSize: 64 }
const cartPole = { env: CartPole.env, numEnvs: 2, totalSteps: 96 }
const pendulum = { env: Pendulum.env, numEnvs: 1, totalSteps: 80 }
type Place = typeof cartPole | typeof pendulum

const digestsOf = (place: Place, algorithms: ReadonlyArray<Algorithm>) =>
  Effect.forEach(algorithms, (algorithm) => Effect.map(keep({ ...place, algorithm }), ({ result }) => result.digest))

/** Asserts that all algorithms of `same` end with the same bits, and each of `others` with its own. */
const compare = (name: string, place: Place, same: ReadonlyArray<Algorithm>, others: ReadonlyArray<Algorithm>) =>
  Effect.gen(function* () {
    const equal = yield* digestsOf(place, same)
    assert.strictEqual(new Set(equal).size, 1, `${name}: the same losses`)
    const different = yield* digestsOf(place, others)
    assert.strictEqual(new Set([equal[0], ...different]).size, others.length + 1, `${name}: other losses`)
  })

type Transitions = Pick<Learner.TransitionBatch, "rewards" | "discounts">
const stepOf = ({ rewards, discounts }: Transitions) => ({ r_t: rewards, discount_t: discounts })

/** The errors of double DQN, composed of public functions. */
const errorsOf = (batch: Learner.TransitionBatch, { values, evaluate, evaluateTarget }: Dqn.DqnLossOutputs) => {
  const v_t = Losses.doubleQValue({
    q_t: evaluateTarget(batch.nextObservations).values,
    selector_t: evaluate(batch.nextObservations).values,
  })
  return huber(sub(Losses.valueOfAction(values, batch.actions), Losses.tdTarget({ ...stepOf(batch), v_t })))
}

const numbersOf = ({ distributions }: Losses.ActionValues): Graph.Tensor =>
  distributions ?? assert.fail("expected distributions")

/** The loss of QR-DQN with double Q-learning, composed of public functions. */
const doubleQuantiles: Dqn.DqnOwnLoss = (batch, out) => {
  const selector_t = out.evaluate(batch.nextObservations).values
  const quantiles_t = Losses.distributionOfBest(numbersOf(out.evaluateTarget(batch.nextObservations)), selector_t)
  const target = Losses.quantileTarget({ ...stepOf(batch), quantiles_t })
  const quantiles_tm1 = Losses.distributionOfAction(numbersOf(out), batch.actions)
  return mean(Losses.quantileLoss({ quantiles_tm1, target }))
}

describe("losses of one's own in algorithms with a replay buffer", () => {
  it.effect(
    "of action values, without and with priorities and several steps",
    () =>
      Effect.gen(function* () {
        const identity: Dqn.DqnOwnLoss = (_, { loss }) => loss
        const composed: Dqn.DqnOwnLoss = (batch, out) => Losses.weightedMean(errorsOf(batch, out), batch.importance)
        const unweighted: Dqn.DqnOwnLoss = (batch, out) => mean(errorsOf(batch, out))
        const conservative: Dqn.DqnOwnLoss = ({ actions }, { loss, values: q_t }) =>
          add(loss, Losses.conservativePenalty({ q_t, actions }))
        const all = { prioritised: {}, nsteps: 3, dueling: true }
        const cases = [
          { settings: {}, same: [identity, composed, unweighted], others: [conservative] },
          { settings: all, same: [identity, composed], others: [conservative, unweighted] },
          // The next action follows from another draw of noisy weights than that of `evaluate`, so `composed` may differ.
          { settings: { ...all, noisy: true }, same: [identity], others: [conservative, unweighted] },
        ]
        for (const { settings, same, others } of cases) {
          const plain = Dqn.make({ ...small, ...settings })
          const withLoss = (loss: Dqn.DqnOwnLoss) => Dqn.make({ ...small, ...settings, loss })
          yield* compare("dqn", cartPole, [plain, ...same.map(withLoss)], others.map(withLoss))
        }
      }),
    { tags: "slow" },
  )

  it.effect("of distributions", () =>
    Effect.gen(function* () {
      const quantiles = (loss?: Dqn.DqnOwnLoss) =>
        Dqn.make({
          ...small,
          distribution: { type: "quantiles", count: 5 },
          ...(loss === undefined ? {} : { loss }),
        })
      yield* compare(
        "quantiles",
        cartPole,
        [quantiles(), quantiles((_, out) => out.loss), quantiles(doubleQuantiles)],
        [quantiles((_, { loss, values }) => add(loss, mean(square(values))))],
      )
    }),
  )

  it.effect("of action values without a buffer", () =>
    Effect.gen(function* () {
      const ddqn = (loss?: Ddqn.DdqnOwnLoss) => Ddqn.make({ hidden: [8], ...(loss === undefined ? {} : { loss }) })
      yield* compare(
        "ddqn",
        cartPole,
        [
          ddqn(),
          ddqn((_, out) => out.loss),
          ddqn(({ actions, targets }, { values }) =>
            mean(huber(sub(Losses.valueOfAction(values, actions), stopGradient(targets)))),
          ),
          ddqn(({ observations, actions, targets }, { evaluate }) =>
            mean(huber(sub(Losses.valueOfAction(evaluate(observations), actions), stopGradient(targets)))),
          ),
        ],
        [ddqn((_, { loss, values }) => add(loss, mean(square(values))))],
      )
    }),
  )

  it.effect(
    "of deterministic actors and their critics",
    () =>
      Effect.gen(function* () {
        for (const { make, name } of [
          { make: Td3.make, name: "td3" },
          { make: Ddpg.make, name: "ddpg" },
        ]) {
          const own = (losses: Pick<Td3.DeterministicOptions, "criticLoss" | "actorLoss"> = {}) =>
            make({ ...small, ...losses })
          yield* compare(
            name,
            pendulum,
            [
              own(),
              own({ criticLoss: (_, out) => out.loss, actorLoss: (_, out) => out.loss }),
              own({
                criticLoss: (_, { values, target }) => Losses.criticLoss({ q_tm1: values, target }),
                actorLoss: (_, { values }) => Losses.deterministicPolicyLoss(values[0]),
              }),
              // Pendulum's torques are from −2 to 2, so scaling them changes no bit.
              own({
                criticLoss: ({ observations, actions }, { evaluate, target }) =>
                  Losses.criticLoss({ q_tm1: evaluate(observations, actions), target }),
                actorLoss: ({ observations }, { evaluate, act }) =>
                  Losses.deterministicPolicyLoss(evaluate(observations, act(observations))[0]),
              }),
            ],
            [
              own({ criticLoss: (_, { loss, values }) => add(loss, mean(square(values[0]))) }),
              own({
                criticLoss: ({ observations }, { loss, evaluate, act }) =>
                  add(loss, mean(evaluate(observations, act(observations))[0])),
              }),
              // TD3 with behaviour cloning, but of its own buffer.
              own({ actorLoss: (batch, { loss, actions }) => add(loss, mean(square(sub(actions, batch.actions)))) }),
              own({
                actorLoss: (batch, { loss, actions, act }) =>
                  add(loss, mean(square(sub(actions, act(batch.nextObservations))))),
              }),
            ],
          )
        }
      }),
    { tags: "slow" },
  )

  it.effect(
    "of soft actors and their critics",
    () =>
      Effect.gen(function* () {
        type Own = Pick<Sac.SacOptions, "criticLoss" | "actorLoss">
        const actorLoss: Own["actorLoss"] = (_, { values: q, logProbability, alpha }) =>
          Losses.softPolicyLoss({ q, logProbability, alpha })
        const evaluated: Own["actorLoss"] = ({ observations }, { evaluate, actions, logProbability, alpha }) =>
          Losses.softPolicyLoss({ q: evaluate(observations, actions), logProbability, alpha })
        const cloning: Own["actorLoss"] = (batch, { loss, logProbabilityOf }) =>
          add(loss, Losses.behaviourCloning(logProbabilityOf(batch.observations, batch.actions)))
        const sac = (losses: Own = {}) => Sac.make({ ...small, ...losses })
        yield* compare(
          "sac",
          pendulum,
          [
            sac(),
            sac({ criticLoss: (_, out) => out.loss, actorLoss: (_, out) => out.loss }),
            sac({
              criticLoss: (_, { values, target }) => mul(Losses.criticLoss({ q_tm1: values, target }), 0.5),
              actorLoss,
            }),
            sac({
              criticLoss: ({ observations, actions }, { evaluate, target }) =>
                mul(Losses.criticLoss({ q_tm1: evaluate(observations, actions), target }), 0.5),
              actorLoss: evaluated,
            }),
          ],
          [
            // A gradient through the critics' step into the actor would make its weights NaN.
            sac({
              criticLoss: ({ observations }, { loss, evaluate, act }) =>
                add(loss, mean(evaluate(observations, act(observations))[0])),
            }),
            sac({ actorLoss: cloning }),
          ],
        )
        const tqc = (losses: Own = {}) => Tqc.make({ ...small, quantiles: 5, ...losses })
        const quantiles: Own["criticLoss"] = (_, { values, target }) => {
          const losses = values.map((quantiles_tm1) => Losses.quantileLoss({ quantiles_tm1, target }))
          return mul(mean(add(...losses)), 1 / (losses.length * 5))
        }
        yield* compare(
          "tqc",
          pendulum,
          [tqc(), tqc({ criticLoss: quantiles, actorLoss }), tqc({ actorLoss: evaluated })],
          [
            tqc({ criticLoss: (_, { loss, values }) => add(loss, mean(square(values[1]))) }),
            tqc({ actorLoss: cloning }),
          ],
        )
      }),
    { tags: "slow" },
  )

  it.effect(
    "of soft actors over choices and their critics",
    () =>
      Effect.gen(function* () {
        const own = (losses: Pick<DiscreteSac.DiscreteSacOptions, "criticLoss" | "actorLoss"> = {}) =>
          DiscreteSac.make({ ...small, ...losses })
        const taken = ([one, other]: readonly [Graph.Tensor, Graph.Tensor], actions: Graph.Tensor) => [
          Losses.valueOfAction(one, actions),
          Losses.valueOfAction(other, actions),
        ]
        yield* compare(
          "discrete-sac",
          cartPole,
          [
            own(),
            own({
              criticLoss: ({ actions }, { values, target }) =>
                mul(Losses.criticLoss({ q_tm1: taken(values, actions), target }), 0.5),
              actorLoss: (_, { values, distribution: { logProbabilities: logProbabilities_t }, alpha }) =>
                neg(mean(Losses.softValue({ q_t: minimum(...values), logProbabilities_t, alpha }))),
            }),
            own({
              criticLoss: ({ observations, actions }, { evaluate, target }) =>
                mul(Losses.criticLoss({ q_tm1: taken(evaluate(observations), actions), target }), 0.5),
              actorLoss: ({ observations }, { values, evaluate, alpha }) => {
                const { logProbabilities: logProbabilities_t } = evaluate(observations)
                return neg(mean(Losses.softValue({ q_t: minimum(...values), logProbabilities_t, alpha })))
              },
            }),
          ],
          [
            own({
              criticLoss: ({ actions }, { loss, values }) =>
                add(loss, ...values.map((q_t) => Losses.conservativePenalty({ q_t, actions }))),
            }),
            own({
              actorLoss: ({ actions }, { loss, distribution }) =>
                add(loss, Losses.behaviourCloning(distribution.logProbability(actions))),
            }),
          ],
        )
      }),
    { tags: "slow" },
  )

  it.effect("resume to the same bits, and record their metrics beside the algorithm's", () =>
    Effect.gen(function* () {
      const smooth: Learner.OwnReplayLoss<Learner.ActorOutputs> = function smooth(batch, { loss, actions, act }) {
        const change = mean(abs(sub(actions, act(batch.nextObservations))))
        return { loss: add(loss, change), metrics: { "losses/change": change } }
      }
      const algorithm = Td3.make({ ...small, actorLoss: smooth })
      const { whole, resumed, stoppedAt } = yield* resumable({ ...pendulum, algorithm }, 48)
      assert.isBelow(stoppedAt, whole.steps)
      assert.strictEqual(resumed.digest, whole.digest)
      const kept = yield* keep({ ...pendulum, algorithm })
      assert.include(textOf(kept, "config.yaml"), "actor_loss:\n    code: smooth\n")
      const metrics = kept.events.flatMap((event) => (event._tag === "UpdateApplied" ? Object.keys(event.metrics) : []))
      assert.includeMembers(metrics, ["losses/change", "losses/actor_loss", "losses/critic_loss", "losses/q_values"])
    }),
  )

  it.effect("are refused before anything is written if they do not fit", () =>
    Effect.gen(function* () {
      const problemOf = (place: Place, algorithm: Algorithm) =>
        Effect.map(Effect.flip(keep({ ...place, algorithm })), ({ message }) => message)
      const expected = "expected a scalar, such as Graph.mean(…) of the rows, found f32 of shape"
      assert.strictEqual(
        yield* problemOf(pendulum, Sac.make({ ...small, criticLoss: (_, { target }) => target })),
        `algorithm.critic_loss: ${expected} [16]`,
      )
      assert.strictEqual(
        yield* problemOf(cartPole, DiscreteSac.make({ ...small, actorLoss: (_, { values }) => values[0] })),
        `algorithm.actor_loss: ${expected} [16, 2]`,
      )
      assert.strictEqual(
        yield* problemOf(cartPole, Dqn.make({ ...small, loss: (_, { values }) => values })),
        `algorithm.loss: ${expected} [16, 2]`,
      )
      const recurrent = Dqn.make({ ...small, bufferSize: 200, lstm: 4, loss: (_, { loss }) => loss })
      assert.include(
        yield* problemOf(cartPole, recurrent),
        "algorithm.loss: expected null with algorithm.lstm, which learns from sequences",
      )
    }),
  )
})
