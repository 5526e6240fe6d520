/**
 * Loads trained policies and acts with them, without their envs and without a training. Programs call `load`.
 *
 * @example
 * ```ts
 * import * as Node from "effect-rl/node"
 *
 * const act = Effect.gen(function* () {
 *   const policy = yield* Policy.load(runDir)
 *   return yield* policy.act([0.01, 0, 0.02, 0])
 * }).pipe(Effect.scoped, Effect.provide(Layer.merge(Node.backend("wasm"), Node.platform)))
 * const { action } = await Effect.runPromise(act) // 1
 * ```
 */
import { Effect, type FileSystem, type Path, type Scope, Semaphore } from "effect"
import { Backend, type BackendError, type BackendUnavailable, type Program } from "../../tensor/backend/Backend.ts"
import { mostBytes, namesIn, readBytes, statOf } from "../../base/files/files.ts"
import { messageOf } from "../../base/text/text.ts"
import { emptyMaskProblem } from "../env/internal/rows.ts"
import { writerOf } from "../env/internal/values.ts"
import { type ActionSpace, box, choicesOf, multiBinary, type Space, sizeOf, type SpaceValue } from "../env/Space.ts"
import type { GraphError } from "../../tensor/graph/GraphError.ts"
import * as Rng from "../../base/rng/Rng.ts"
import * as Checkpoint from "../../run/Checkpoint.ts"
import * as Layout from "../../run/Layout.ts"
import { foldersOnDisk, savedAt } from "../../run/savedAt.ts"
import type { PolicyAbout } from "./about.ts"
import { decodePolicy } from "./decodePolicy.ts"
import { PolicyError } from "./PolicyError.ts"

export { PolicyError } from "./PolicyError.ts"

export interface PolicyLoadOptions {
  /** Draws actions as in training, if the algorithm draws actions. By default the policy takes the best action. */
  readonly sampled?: boolean
  /** The seed of the draws: the same seed gives the same actions for the same calls. @default 1 */
  readonly seed?: number
  /**
   * The checkpoint in the folder of a run: `latest`, `best` (with the best validation score), or a checkpoint's name.
   * @default "latest"
   */
  readonly checkpoint?: string
  /** The name of the policy to load, if the run trained separate policies for the agents of a game. */
  readonly policy?: string
}

/**
 * The memory of a recurrent policy between two steps of an episode; undefined or null for other policies and at the start
 * of an episode, as for `act` of an exported worker.
 */
export type PolicyState = ArrayLike<number> | null | undefined

/**
 * The choices that are allowed, as the env says: a 1 for each of them, else a 0. `"all"` allows every choice. A policy of an
 * env with action masks needs one, because it has never learned which choices are not allowed.
 */
export type PolicyMask = ArrayLike<number | boolean> | "all" | null | undefined

/** An action, and the state for the next step of the episode. */
export interface PolicyAction {
  /**
   * A discrete action is the index of the choice. Other actions are lists: the indices of several choices, or the
   * numbers of a continuous action, within its bounds.
   */
  readonly action: number | ReadonlyArray<number>
  readonly state: ReadonlyArray<number> | undefined
}

/** A policy that acts. Its programs live as long as the scope in which it was loaded. */
export interface LoadedPolicy {
  /** The id of the env in which the policy was trained. */
  readonly env: string
  /** The name of the algorithm that trained the policy. */
  readonly algorithm: string
  /** The step of the training at which the policy was saved. */
  readonly step: number
  readonly observationSpace: Space
  readonly actionSpace: ActionSpace
  /** Whether the env says by a mask which choices are allowed. */
  readonly hasActionMask: boolean
  /** The length of the state of a recurrent policy; 0 for other policies. */
  readonly stateSize: number
  /**
   * Returns the action for an observation as the env gives it: the numbers of a box in one flat list, an object for a
   * space with named parts. The policy itself normalises it as the training did. A recurrent policy also takes the
   * state that the previous call of the episode returned, and none at the start of an episode. `mask` has a 1 for each
   * choice that is allowed, or is `"all"`; a policy of an env with action masks fails without it.
   */
  readonly act: (
    observation: SpaceValue,
    state?: PolicyState,
    mask?: PolicyMask,
  ) => Effect.Effect<PolicyAction, PolicyError | BackendError>
  /** Returns the actions for several observations, each with its own state and mask. */
  readonly actAll: (
    observations: ReadonlyArray<SpaceValue>,
    states?: ReadonlyArray<PolicyState>,
    masks?: ReadonlyArray<PolicyMask>,
  ) => Effect.Effect<ReadonlyArray<PolicyAction>, PolicyError | BackendError>
}

export type LoadError = PolicyError | GraphError | BackendUnavailable | BackendError

/**
 * Loads a policy from the folder of a run (its newest checkpoint, or the one that `checkpoint` names), the folder of a
 * checkpoint, or an exported ONNX file. It needs neither the env nor the code of the training.
 */
export const load = Effect.fnUntraced(function* (
  path: string,
  options: PolicyLoadOptions = {},
): Effect.fn.Return<LoadedPolicy, LoadError, Backend | FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const asPolicyError = Effect.mapError(({ message }: { readonly message: string }) => new PolicyError({ message }))
  const stat = yield* statOf(path)
  if (stat === undefined) {
    return yield* new PolicyError({
      message: `${path}: expected a run, a checkpoint or an ONNX file, found nothing`,
    })
  }
  const exported = `${path}/${Layout.inStep.onnxOf(options.policy)}`
  const file = stat.type !== "Directory" ? path : (yield* statOf(exported)) === undefined ? undefined : exported
  const namesOne = (place: string, key: "checkpoint" | "policy") => {
    const message = `${place}: expected the folder of a run to choose ${key} "${options[key]}" from, found one policy`
    return new PolicyError({ message })
  }
  if (file !== undefined) {
    if (options.checkpoint !== undefined) return yield* namesOne(file, "checkpoint")
    if (options.policy !== undefined && file === path) return yield* namesOne(file, "policy")
    return yield* fromOnnx(yield* asPolicyError(readBytes(file, mostBytes.binary)), { ...options, path: file })
  }
  const separate = new Set((yield* namesIn(path)).flatMap((name) => Layout.separatePolicyOf(name) ?? []))
  const hintOf = (): string => `it has separate policies: set the option policy to ${[...separate].join(" or ")}`
  const { tree, wanted, pathOf } = yield* savedAt(path, yield* foldersOnDisk).pipe(
    // A step folder (`steps/{STEP}/`) has policies, but is neither a run nor a checkpoint.
    Effect.mapError((error) => (separate.size === 0 ? error : { message: `${path}: ${hintOf()}` })),
    asPolicyError,
  )
  const wantedFile = Layout.inCheckpoint.policyOf(options.policy)
  const isWanted = (name: string): boolean => {
    const policy = Layout.separatePolicyOf(name)
    if (policy !== undefined) separate.add(policy)
    return name === wantedFile
  }
  if (options.checkpoint !== undefined && wanted !== Layout.latest) return yield* namesOne(path, "checkpoint")
  const checkpoint = options.checkpoint ?? wanted
  const { name, files } = yield* asPolicyError(Checkpoint.loadFiles(tree, checkpoint, isWanted))
  const place = pathOf(name)
  const bytes = files[wantedFile]
  if (bytes === undefined) {
    const hint =
      separate.size > 0
        ? hintOf()
        : options.policy === undefined
          ? "its algorithm exports no policy"
          : "its run has trained one policy: leave out the option policy"
    return yield* new PolicyError({ message: `${place}: the checkpoint has no ${wantedFile}; ${hint}` })
  }
  return yield* fromOnnx(bytes, { ...options, path: `${place}/${wantedFile}` })
})

/**
 * Makes a policy from the bytes of an ONNX file that this library exported, for programs without a file system. Error
 * messages name the file by `path`.
 *
 * @example
 * ```ts
 * const inBrowser = Effect.gen(function* () {
 *   const response = yield* Effect.promise(() => fetch("policy.onnx"))
 *   return yield* Policy.fromOnnx(new Uint8Array(yield* Effect.promise(() => response.arrayBuffer())))
 * })
 * ```
 */
export const fromOnnx = Effect.fnUntraced(function* (
  bytes: Uint8Array,
  {
    path = Layout.inCheckpoint.policy,
    sampled = false,
    seed = 1,
  }: Omit<PolicyLoadOptions, "checkpoint" | "policy"> & { readonly path?: string } = {},
): Effect.fn.Return<LoadedPolicy, LoadError, Backend | Scope.Scope> {
  const { about, programs } = yield* decodePolicy(bytes, path)
  const spec = (sampled ? programs.sampled : undefined) ?? programs.main
  // The ops are checked, but a graph may still be one that no code of this library builds, such as a very deep one.
  const program = yield* Effect.catchDefect((yield* Backend).compile(spec), (defect) =>
    Effect.fail(new PolicyError({ message: `${path}: its program cannot be compiled: ${messageOf(defect)}` })),
  )
  return { ...about, ...acting(program, about, seed) }
})

/** Makes the functions of a policy from its compiled program, which acts on one observation at a time. */
const acting = (
  program: Program,
  { observationSpace, actionSpace, hasActionMask }: PolicyAbout,
  seed: number,
): Pick<LoadedPolicy, "act" | "actAll" | "stateSize"> => {
  const { observations, noise, memory } = program.feeds
  const { actions, nextMemory } = program.results
  const stateSize = memory?.length ?? 0
  const random = Rng.stream(seed, "policy")
  const uniform = noise === undefined ? undefined : new Float32Array(noise.length)
  let calls = 0

  const row = new Float32Array(observations.length)
  const size = sizeOf(observationSpace)
  const choices = (hasActionMask ? choicesOf(actionSpace) : undefined) ?? []
  const writeObservation = writerOf(observationSpace, "observation")
  const writeNumbers = hasActionMask ? writerOf(multiBinary(row.length - size), "mask") : undefined
  const writeMask =
    writeNumbers &&
    ((mask: Exclude<PolicyMask, null | undefined>): string | undefined => {
      if (mask === "all") return void row.fill(1, size)
      if (typeof mask === "string")
        return `mask: expected ${row.length - size} zeros and ones, or "all", found "${mask}"`
      const problem = writeNumbers(mask, row, size)
      if (problem !== undefined) return problem
      const empty = emptyMaskProblem(choices, row, size)
      return empty === undefined ? undefined : `mask: it ${empty}`
    })
  const writeState = stateSize === 0 ? undefined : writerOf(box(-Infinity, Infinity, [stateSize]), "state")
  const remembered = new Float32Array(stateSize)

  /** Fills the inputs of the program. Describes what is wrong with the values; returns undefined if they are right. */
  const fill = (observation: SpaceValue, givenState: PolicyState, givenMask: PolicyMask): string | undefined => {
    const [state, mask] = [givenState ?? undefined, givenMask ?? undefined]
    if (mask !== undefined && writeMask === undefined) return "mask: the env has no action masks, so it takes none"
    if (state !== undefined && writeState === undefined) return "state: the policy has no memory, so it takes none"
    if (mask === undefined && writeMask !== undefined)
      return `mask: expected ${row.length - size} zeros and ones, a 1 for each choice that the env allows, or "all"; found none`
    remembered.fill(0)
    const problem =
      writeObservation(observation, row, 0) ??
      (mask === undefined ? undefined : writeMask?.(mask)) ??
      (state === undefined ? undefined : writeState?.(state, remembered, 0))
    if (problem !== undefined) return problem
    observations.set(row)
    memory?.set(remembered)
    if (uniform !== undefined) {
      random.child(calls++).fillUniform(uniform)
      noise.set(uniform)
    }
    return undefined
  }
  const taken = (): PolicyAction => ({
    action: actionSpace._tag === "Discrete" ? actions[0] : Array.from(actions),
    state: nextMemory === undefined ? undefined : Array.from(nextMemory),
  })
  const once = (observation: SpaceValue, state: PolicyState, mask: PolicyMask, where = "") =>
    Effect.suspend((): Effect.Effect<PolicyAction, PolicyError | BackendError> => {
      const problem = fill(observation, state, mask)
      if (problem !== undefined) return Effect.fail(new PolicyError({ message: `${where}${problem}` }))
      return Effect.map(program.run, taken)
    })
  // All calls use the same arrays of the program, so a call waits until the previous one has ended.
  const oneAtATime = Semaphore.makeUnsafe(1).withPermits(1)
  return {
    stateSize,
    act: (observation, state, mask) => oneAtATime(once(observation, state, mask)),
    actAll: (all, states = [], masks = []) =>
      oneAtATime(Effect.forEach(all, (one, at) => once(one, states[at], masks[at], `at ${at}: `))),
  }
}
