/** Combines several learners into one. Each of them learns the policy of some agents of a game. */
import { Effect, Predicate, Record, type Scope } from "effect"
import type { Backend } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { programError } from "../../../tensor/graph/GraphError.ts"
import { stream } from "../../../base/rng/Rng.ts"
import {
  capabilitiesOf,
  crossed,
  type Learner,
  LearningError,
  type LearnerState,
  type Position,
  type SetupError,
  type Task,
} from "../Learner.ts"
import type { NamedArrays, NamedTensors } from "../../../tensor/graph/Parameters.ts"
import { jointPolicy, type Seated } from "./jointPolicy.ts"
import { makeMeeting, type Meeting } from "./Meeting.ts"
import { type Played, type Seat, seatsOf } from "./seats.ts"

/** A policy, the agents that it plays, and the function that makes its learner. */
export interface SeparatePolicy extends Played {
  /** The name of the algorithm. */
  readonly algorithm: string
  readonly setup: (task: Task) => Effect.Effect<Learner, SetupError, Backend | Scope.Scope>
}

/**
 * Makes one learner for each policy, and combines them into one. In each iteration they play a rollout together in the
 * same games, then each one updates its own networks from the rows of its agents. A learner counts only the steps of
 * its own rows, and draws its random numbers from a seed that depends on the run's seed and the name of its policy.
 *
 * @example
 * ```ts
 * separateLearner(task, [
 *   { name: "wolf", algorithm: "mine", agents: ["wolf"], setup: (own) => myLearner({ learningRate: 1e-3 }, own) },
 *   { name: "sheep", algorithm: "mine", agents: ["sheep"], setup: (own) => myLearner({ learningRate: 1e-4 }, own) },
 * ])
 * ```
 */
export const separateLearner = Effect.fnUntraced(function* (
  task: Task,
  policies: ReadonlyArray<SeparatePolicy>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const agents = yield* checkedAgents(task, policies)
  const members = yield* membersOf(task, policies, seatsOf(agents, policies, task.numEnvs))
  const capabilities = members.map(({ learner }) => capabilitiesOf(learner))
  const onlyPlays = capabilities.some((member) => member.onlyPlays)
  if (!onlyPlays) yield* checkRollouts(members)

  /** Joins records of all learners, with the name of the policy and a dot before each key. */
  const joined = <A>(parts: ReadonlyArray<Readonly<Record<string, A>>>): Readonly<Record<string, A>> =>
    Object.assign({}, ...parts.map((part, index) => Record.mapKeys(part, (key) => `${members[index].name}.${key}`)))
  const hasPolicies = members.every(({ learner }) => learner.policy !== undefined)
  const hasData = members.some(({ learner }) => learner.data !== undefined)
  const starts = members.flatMap(({ learner: { start } }) => start ?? [])
  return {
    devices: joined(members.map(({ learner }) => learner.devices)),
    separate: members.map(({ name, learner }, index) => {
      const { algorithm, agents: own } = policies[index]
      return { name, algorithm, agents: own, learner }
    }),
    capabilities: {
      onlyPlays,
      imitates: capabilities.some(({ imitates }) => imitates),
      totalLoss: capabilities.every(({ totalLoss }) => totalLoss),
    },
    ...(hasData ? { data: joined(members.map(({ learner }) => learner.data ?? {})) } : {}),
    rollout: rolloutOf(members),
    update: (position) => updateAll(members, position),
    metrics: () =>
      Object.assign(
        {},
        ...members.map(({ name, learner }) => Record.mapKeys(learner.metrics(), (metric) => `${metric}/${name}`)),
      ),
    ...(hasPolicies ? { policy: policyOf(agents, policies, members) } : {}),
    weights: Effect.map(
      Effect.forEach(members, ({ learner }) => learner.weights),
      joined,
    ),
    state: stateOf(members),
    ...(starts.length < members.length
      ? {}
      : {
          start: (weights: NamedTensors) =>
            Effect.forEach(starts, (start, index) => start(below(members[index].name, weights)), { discard: true }),
        }),
    restore: (weights, saved) => restoreAll(members, weights, saved),
  }
})

/** A policy's learner, with the rows of its agents. */
interface PolicyMember {
  readonly name: string
  readonly learner: Learner
  readonly seat: Seat
  /** Converts a number of steps of all policies to this policy's part of them. */
  readonly share: (steps: number) => number
}

/** Makes the learner of each policy. */
const membersOf = (task: Task, policies: ReadonlyArray<SeparatePolicy>, seats: ReadonlyArray<Seat>) =>
  Effect.forEach(policies, ({ name, setup }, index) => {
    const seat = seats[index]
    const share = (steps: number): number => (steps * seat.rows.length) / task.numEnvs
    const own: Task = {
      observationSpace: task.observationSpace,
      actionSpace: task.actionSpace,
      maxSteps: task.maxSteps,
      numEnvs: seat.rows.length,
      totalSteps: Math.ceil(share(task.totalSteps)),
      seed: seedOf(task.seed, name),
    }
    return Effect.map(setup(own), (learner): PolicyMember => ({ name, learner, seat, share }))
  })

/** Returns the run's position as a policy's learner sees it, which counts only its own steps. */
const positionOf = ({ share }: PolicyMember, position: Position): Position => ({
  ...position,
  step: Math.round(share(position.step)),
})

/** Returns the function that plays the rollouts of all learners in the same games. */
const rolloutOf = (members: ReadonlyArray<PolicyMember>): Learner["rollout"] => {
  let meeting: { readonly envs: AnyBatchEnv; readonly made: Meeting } | undefined
  const seats = members.map(({ seat }) => seat)
  return Effect.fnUntraced(function* (envs, position) {
    if (meeting?.envs !== envs) meeting = { envs, made: makeMeeting(envs, seats) }
    const { views, play } = meeting.made
    const steps = yield* play(
      members.map((member, index) => member.learner.rollout(views[index], positionOf(member, position))),
    )
    return steps.reduce((sum, own) => sum + own, 0)
  })
}

/** Puts the name of a policy before the message of its learner's error. */
const named = <A, E>(name: string, effect: Effect.Effect<A, E | LearningError>): Effect.Effect<A, E | LearningError> =>
  Effect.mapError(effect, (error) =>
    Predicate.isTagged(error, "LearningError") ? new LearningError({ message: `${name}: ${error.message}` }) : error,
  )

/** Updates the networks of all policies, and the target networks that are due. */
const updateAll = Effect.fnUntraced(function* (members: ReadonlyArray<PolicyMember>, position: Position) {
  for (const member of members) {
    const { name, learner, seat } = member
    const own = positionOf(member, position)
    yield* named(name, learner.update(own))
    const steps = (capabilitiesOf(learner).rolloutSteps ?? 0) * seat.rows.length
    const { target } = learner
    if (target !== undefined && crossed(own.step, own.step + steps, target.everySteps)) yield* target.update
  }
})

/** Returns the function that compiles the policies of all members for a batch of games. */
const policyOf = (
  agents: ReadonlyArray<string>,
  policies: ReadonlyArray<SeparatePolicy>,
  members: ReadonlyArray<PolicyMember>,
): NonNullable<Learner["policy"]> =>
  Effect.fnUntraced(function* (numEnvs, options) {
    if (numEnvs % agents.length !== 0) {
      const problem = `separate policies play whole games of ${agents.length} agents; expected such a number of rows, found ${numEnvs}`
      return yield* programError("policy", problem)
    }
    const seated: Array<Seated> = []
    for (const [index, seat] of seatsOf(agents, policies, numEnvs).entries()) {
      const { name, learner } = members[index]
      if (learner.policy === undefined) return yield* programError("policy", `the learner of ${name} has no policy`)
      seated.push({ ...seat, policy: yield* learner.policy(seat.rows.length, options) })
    }
    const [first, ...rest] = seated
    return jointPolicy("separate.policy", [first, ...rest])
  })

/** Reads the states of all learners. The name of the policy is put before the name of each array. */
const stateOf = (members: ReadonlyArray<PolicyMember>): Learner["state"] =>
  Effect.gen(function* () {
    const files: Record<string, NamedArrays> = {}
    for (const { name, learner } of members) {
      for (const [file, arrays] of Object.entries(yield* learner.state)) {
        files[file] = { ...files[file], ...Record.mapKeys(arrays, (key) => `${name}.${key}`) }
      }
    }
    return files
  })

const restoreAll = Effect.fnUntraced(function* (
  members: ReadonlyArray<PolicyMember>,
  weights: NamedTensors,
  saved: LearnerState,
) {
  for (const { name, learner } of members) {
    const own: LearnerState = Object.fromEntries(
      Object.entries(saved).flatMap(([file, arrays]) => {
        const part = below(name, arrays)
        return Object.keys(part).length === 0 ? [] : [[file, part]]
      }),
    )
    yield* named(name, learner.restore(below(name, weights), own))
  }
})

/** Selects the entries whose keys begin with the name of a policy, and removes the name from the keys. */
const below = <A>(name: string, values: Readonly<Record<string, A>>): Readonly<Record<string, A>> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) =>
      key.startsWith(`${name}.`) ? [[key.slice(name.length + 1), value] as const] : [],
    ),
  )

/** Returns the seed of a policy's learner, an integer of 53 bits. */
const seedOf = (seed: number, name: string): number => {
  const random = stream(seed, "policies", name)
  return random.uint32At(0) * 2 ** 21 + (random.uint32At(1) >>> 11)
}

const refuse = (problem: string, key = "algorithm.policies"): Effect.Effect<never, ConfigError> =>
  Effect.fail(ConfigError.at({ source: "separate" }, key, problem))

/** Returns the agents of the game. Fails unless each has exactly one policy and the batch has whole games. */
const checkedAgents = (
  { agents, numEnvs }: Task,
  policies: ReadonlyArray<Played>,
): Effect.Effect<ReadonlyArray<string>, ConfigError> => {
  if (agents === undefined) {
    return refuse("separate policies need a game of several agents, as MultiEnv or PettingZoo makes", "algorithm")
  }
  const owners = policies.flatMap(({ name, agents: own }) => own.map((agent) => ({ name, agent })))
  const stranger = owners.find(({ agent }) => !agents.includes(agent))
  if (stranger !== undefined) {
    return refuse(`"${stranger.agent}" is no agent of the game; its agents are ${agents.join(", ")}`)
  }
  const without = agents.find((agent) => !owners.some((owner) => owner.agent === agent))
  if (without !== undefined) return refuse(`the agent "${without}" has no policy; expected one for each agent`)
  const twice = owners.find(({ agent }, at) => owners.findIndex((owner) => owner.agent === agent) < at)
  if (twice !== undefined) return refuse(`the agent "${twice.agent}" has two policies; expected one for each agent`)
  if (numEnvs % agents.length === 0) return Effect.succeed(agents)
  const problem = `the game has a row for each of its ${agents.length} agents; expected a multiple of ${agents.length}, found ${numEnvs}`
  return refuse(problem, "num_envs")
}

/** Fails unless all learners play rollouts of the same number of steps. */
const checkRollouts = (
  members: ReadonlyArray<{ readonly name: string; readonly learner: Learner }>,
): Effect.Effect<void, ConfigError> => {
  const lengths = members.map(({ learner }) => capabilitiesOf(learner).rolloutSteps)
  const other = lengths.indexOf(undefined)
  if (other >= 0) {
    const problem = `the algorithm of "${members[other].name}" plays no rollouts of a fixed number of steps, which separate policies need; algorithms of rollouts such as ppo do, and those with a replay buffer such as dqn`
    return refuse(problem, `algorithm.policies.${other}.name`)
  }
  if (new Set(lengths).size === 1) return Effect.void
  const found = members.map(({ name }, index) => `${lengths[index]} of ${name}`)
  return refuse(
    `expected rollouts of equally many steps, found ${found.join(", ")}; set nsteps of each policy, or for one with a replay buffer train_every, which counts the steps of all its envs`,
  )
}
