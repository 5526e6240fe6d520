/**
 * Makes envs whose bodies move as MuJoCo computes it, from any model in its format MJCF. They need the package
 * `@mujoco/mujoco` (`npm install @mujoco/mujoco@3.14.0`), which is loaded when the first batch of them opens; no Python.
 *
 * @example
 * ```ts
 * import { Mujoco, Space } from "effect-rl"
 *
 * const ball = Mujoco.env({
 *   id: "ball",
 *   model: { xml: `<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size="0.1"/></body></worldbody>
 *     <actuator><motor joint="x" ctrlrange="-1 1"/></actuator></mujoco>` },
 *   frameSkip: 5,
 *   observationSpace: Space.box(-Infinity, Infinity, [2]),
 *   actionSpace: Space.box(-1, 1),
 *   maxSteps: 200,
 *   reset: ({ data }, random) => {
 *     data.qpos[0] = random.between(-1, 1)
 *   },
 *   observe: ({ data }) => [data.qpos[0], data.qvel[0]],
 *   reward: ({ world, action }) => ({ near: -Math.abs(world.data.qpos[0]), control: -0.1 * action[0] ** 2 }),
 * })
 * ```
 */
import { Effect, Semaphore } from "effect"
import type { Stream } from "../../../base/rng/Rng.ts"
import { attempt } from "../../../base/config/attempt.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { type Env, make } from "../Env.ts"
import { type Box, sizeOf } from "../Space.ts"
import { picturesOfStates } from "../ui/pictures.ts"
import { type Camera, scene } from "../ui/scene.ts"
import { loadMujoco } from "./engine.ts"
import { type LiveBody, liveBody } from "./live.ts"
import type { Mjcf, MujocoWorld, Simulation } from "./Simulation.ts"

export type { Mjcf, MujocoArrays, MujocoModel, MujocoWorld } from "./Simulation.ts"

/** The state of an episode: all numbers from which MuJoCo goes on, and what the env's functions read after the last step. */
export interface MujocoState {
  readonly simulation: Float64Array
  readonly observation: ReadonlyArray<number> | Float64Array
  readonly measured: ReadonlyArray<number>
  /** The terms of the last reward. */
  readonly terms: Readonly<Record<string, number>>
  /** The shapes and the contact forces for a picture: see `ui/scene.ts`. */
  readonly scene: Float32Array
  readonly forces: Float32Array
  /** Why the step after this state was cut off, if the simulation diverged in it. */
  readonly divergence?: string
}

/** What a step did, for `reward` and `terminated`. */
export interface MujocoStep {
  /** The world after the step. */
  readonly world: MujocoWorld
  /** The action as the motors got it: within the bounds, and in single precision. */
  readonly action: Float32Array
  /** What `measure` returned before the step, and after it. */
  readonly before: ReadonlyArray<number>
  readonly after: ReadonlyArray<number>
  /** The simulated seconds that a step of the env takes. */
  readonly seconds: number
}

export interface MujocoDefinition extends Pick<Env<unknown, Box, Box>, "id" | "maxSteps" | "rewardThreshold"> {
  /** The model, or an Effect that reads it: `mjcfFile("robot.xml")` of `effect-rl/node`. */
  readonly model: Mjcf | Effect.Effect<Mjcf, EnvError>
  /** The number of the simulation's steps in a step of the env, all with the same action. Default: 1. */
  readonly frameSkip?: number
  readonly observationSpace: Box
  /** A number for each actuator of the model. Actions beyond the bounds are clipped to them. */
  readonly actionSpace: Box
  /** Changes positions and velocities at the start of an episode. Default: the model's own start. */
  readonly reset?: (world: MujocoWorld, random: Stream) => void
  readonly observe: (world: MujocoWorld) => ReadonlyArray<number> | Float64Array
  /** Reads what a reward compares: a step receives what was measured before and after it. */
  readonly measure?: (world: MujocoWorld) => ReadonlyArray<number>
  /** Returns the terms of the reward, which is their sum. */
  readonly reward: (step: MujocoStep) => Readonly<Record<string, number>>
  /** Says whether a step ends the episode. Default: never. */
  readonly terminated?: (step: MujocoStep) => boolean
  /** Where pictures are taken from. Default: from the front, at the height of a knee. */
  readonly camera?: Partial<Camera>
}

/** The largest `frameSkip`: more would be a mistake, and would take minutes. */
const mostFrames = 10_000
const usualCamera: Camera = {
  around: 0,
  above: 0.15,
  far: 4,
  at: [0, 0, 0.6],
  follows: 0,
  focus: 560,
  forces: false,
}
const noMeasures: ReadonlyArray<number> = []

/** Makes an env from a model and the functions that read its world. */
export const env = (definition: MujocoDefinition): Env<MujocoState, Box, Box> => {
  const { id, frameSkip = 1, observationSpace, actionSpace, maxSteps, rewardThreshold } = definition
  if (!Number.isInteger(frameSkip) || frameSkip < 1 || frameSkip > mostFrames)
    throw invalid(id, `frameSkip: expected a whole number from 1 to ${mostFrames}, found ${frameSkip}`)
  const shared = sharedOf()
  const ready = (): Simulation => {
    if (shared.simulation !== undefined) return shared.simulation
    throw invalid(id, "MuJoCo is not loaded; open a batch by Batch.open, or run env.prepare")
  }
  const camera = { ...usualCamera, ...definition.camera }
  const pictures = picturesOfStates(id, scene, camera)
  const live = liveBody(camera, ready)
  const { at, ...functions } = functionsOf(definition, frameSkip, ready, live)
  const made = {
    ...make({
      id,
      observationSpace,
      actionSpace,
      ...(maxSteps !== undefined && { maxSteps }),
      ...(rewardThreshold !== undefined && { rewardThreshold }),
      ...functions,
      ...pictures,
    }),
    body: { ui: pictures.ui, width: scene.width, height: scene.height, watch: live.watch },
    prepare: Effect.acquireRelease(opened(definition, shared), () => closed(shared)).pipe(Effect.asVoid),
  }
  simulations.set(made, { ready, at })
  return made
}

/** The simulation that all batches of an env share, and how many scopes use it: the last one to close frees its memory. */
interface Shared {
  simulation: Simulation | undefined
  users: number
  /** So that two batches that open at once compile the model once. */
  readonly lock: Semaphore.Semaphore
}

const sharedOf = (): Shared => ({ simulation: undefined, users: 0, lock: Semaphore.makeUnsafe(1) })

const opened = (definition: MujocoDefinition, shared: Shared) =>
  shared.lock.withPermits(1)(
    Effect.gen(function* () {
      if (shared.simulation === undefined) {
        const model = Effect.isEffect(definition.model) ? yield* definition.model : definition.model
        const compile = yield* loadMujoco(definition.id)
        shared.simulation = yield* attempt(() => checked(definition, compile(model)), EnvError)
      }
      shared.users++
    }),
  )

const closed = (shared: Shared) =>
  Effect.sync(() => {
    shared.users--
    if (shared.users > 0) return
    shared.simulation?.free()
    shared.simulation = undefined
  })

/** What belongs to an env besides its functions. */
interface Access {
  readonly ready: () => Simulation
  readonly at: (start: MujocoStart) => MujocoState
}

// The key is the env itself, so that the env stays a record of functions.
const simulations = new WeakMap<object, Access>()

const accessOf = (env: Pick<Env, "id">): Access => {
  const access = simulations.get(env)
  if (access !== undefined) return access
  throw invalid(env.id, "it was not made by Mujoco.env; pass the env without its wrappers")
}

/** Where a body is and how it moves. */
export interface MujocoStart {
  readonly qpos: ArrayLike<number>
  readonly qvel: ArrayLike<number>
  /** The accelerations from which MuJoCo's solver begins. Default: those of this start. */
  readonly warmstart?: ArrayLike<number>
}

/** Returns the state of a loaded env (see `Env.prepare`) with these positions and velocities. */
export const stateAt = (env: Env<MujocoState, Box, Box>, start: MujocoStart): MujocoState => accessOf(env).at(start)

/**
 * Returns the world of a loaded env in a state, for what an observation lacks, such as where the shapes are. The next call of a
 * function of the env changes it.
 */
export const worldAt = (env: Env<MujocoState, Box, Box>, state: MujocoState): MujocoWorld => {
  const simulation = accessOf(env).ready()
  simulation.load(state.simulation)
  simulation.forward()
  return simulation.world
}

/** Returns the simulation unless its model does not fit to the env's spaces. */
const checked = ({ id, actionSpace }: MujocoDefinition, simulation: Simulation): Simulation => {
  const { nu } = simulation.world.model
  if (sizeOf(actionSpace) === nu && nu > 0) return simulation
  simulation.free()
  throw invalid(
    id,
    nu === 0
      ? "the model has no actuators, so no action can move it; add <actuator> with a motor for each joint that an action moves"
      : `actionSpace: the model has ${nu} actuators, but an action has ${sizeOf(actionSpace)} numbers`,
  )
}

/** Returns an action as the motors get it. Throws an `EnvError` if it has a number that is not finite, or too few or many. */
const takenOf = (id: string, action: ArrayLike<number>, { low, high }: Box): Float32Array => {
  const taken = new Float32Array(low.length)
  if (action.length !== taken.length)
    throw invalid(id, `action: expected ${taken.length} numbers, found ${action.length}`)
  for (let at = 0; at < taken.length; at++) {
    if (!Number.isFinite(action[at])) throw invalid(id, `action[${at}]: expected a finite number, found ${action[at]}`)
    taken[at] = Math.min(Math.max(action[at], low[at]), high[at])
  }
  return taken
}

/** Returns the pure functions of an env: each of them goes on from the state that it gets. */
const functionsOf = (
  { measure = () => noMeasures, observe, reward, terminated = () => false, reset, actionSpace, id }: MujocoDefinition,
  frameSkip: number,
  ready: () => Simulation,
  live: LiveBody,
): Pick<Env<MujocoState, Box, Box>, "reset" | "observe" | "step"> & Pick<Access, "at"> => {
  const stateOf = (simulation: Simulation, measured: ReadonlyArray<number>, terms: MujocoState["terms"]) => ({
    simulation: simulation.save(),
    // Copied, because what a function returns may be a view of MuJoCo's memory.
    observation: observe(simulation.world).slice(),
    measured,
    terms,
    scene: simulation.scene(),
    forces: simulation.forces(),
  })
  return {
    reset: (random) => {
      const simulation = ready()
      simulation.restart()
      reset?.(simulation.world, random)
      simulation.forward()
      return stateOf(simulation, measure(simulation.world).slice(), {})
    },
    observe: ({ observation }) => observation,
    step: (state, action) => {
      const simulation = ready()
      const { world } = simulation
      simulation.load(state.simulation)
      const taken = takenOf(id, action, actionSpace)
      world.data.ctrl.set(taken)
      const divergence = simulation.step(frameSkip, live.watching())
      if (divergence !== undefined)
        return { state: { ...state, divergence }, reward: 0, terminated: false, truncated: true, diverged: true }
      const after = measure(world).slice()
      const seconds = frameSkip * simulation.timestep
      const step: MujocoStep = { world, action: taken, before: state.measured, after, seconds }
      const terms = reward(step)
      live.earned(terms)
      let sum = 0
      for (const name in terms) sum += terms[name]
      return { state: stateOf(simulation, after, terms), reward: sum, terminated: terminated(step) }
    },
    at: ({ qpos, qvel, warmstart }) => {
      const simulation = ready()
      const { model, data } = simulation.world
      if (qpos.length !== model.nq || qvel.length !== model.nv)
        throw invalid(
          id,
          `expected ${model.nq} positions and ${model.nv} velocities, found ${qpos.length} and ${qvel.length}`,
        )
      simulation.restart()
      data.qpos.set(qpos)
      data.qvel.set(qvel)
      simulation.forward()
      if (warmstart !== undefined) data.qacc_warmstart.set(warmstart)
      return stateOf(simulation, measure(simulation.world).slice(), {})
    },
  }
}
